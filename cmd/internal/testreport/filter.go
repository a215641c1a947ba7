package testreport

import (
	"regexp"
	"slices"
	"strings"
)

// Filter picks tests by their names. Its zero fields pick all.
type Filter struct {
	Pattern        *regexp.Regexp
	Tags, Excluded []string // words of a name that begin with #, with or without that
}

// Picks reports whether a test of a name is to run.
func (f *Filter) Picks(name string) bool {
	has := func(tag string) bool { return slices.Contains(strings.Fields(name), "#"+strings.TrimPrefix(tag, "#")) }
	return f.Pattern.MatchString(name) && (len(f.Tags) == 0 || slices.ContainsFunc(f.Tags, has)) && !slices.ContainsFunc(f.Excluded, has)
}

// IsPartial reports whether tests may be left out.
func (f *Filter) IsPartial() bool { return f.Pattern.String() != "" || len(f.Tags)+len(f.Excluded) > 0 }
