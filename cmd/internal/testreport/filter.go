package testreport

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/usage"
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

// CheckTags returns an error for one of Tags that is in none of the names of all tests.
func (f *Filter) CheckTags(names []string) error {
	known := map[string]bool{}
	for _, name := range names {
		for _, word := range strings.Fields(name) {
			if tag, ok := strings.CutPrefix(word, "#"); ok {
				known[tag] = true
			}
		}
	}
	tags, otherwise := slices.Sorted(maps.Keys(known)), "a tag is a word with # in a test's name, as in #slow"
	if len(tags) > 0 {
		otherwise = "the tags are " + strings.Join(tags, ", ")
	}
	for _, tag := range f.Tags {
		if tag = strings.TrimPrefix(tag, "#"); !known[tag] {
			return exit.Usagef("--tags %s: no test has this tag: %s", tag, usage.Hint(tag, tags, otherwise))
		}
	}
	return nil
}

// errNothing returns the error of a filter that picks no test.
func (f *Filter) errNothing() error {
	pattern := f.Pattern.String()
	if pattern != "" && len(f.Tags)+len(f.Excluded) == 0 {
		return exit.Usagef("--run %s: no test has such a name", pattern)
	}
	var flags []string
	for _, flag := range [][2]string{{"run", pattern}, {"tags", strings.Join(f.Tags, ",")}, {"exclude-tags", strings.Join(f.Excluded, ",")}} {
		if flag[1] != "" {
			flags = append(flags, fmt.Sprintf("--%s %s", flag[0], flag[1]))
		}
	}
	return exit.Usagef("%s: this leaves no test to run", strings.Join(flags, " "))
}
