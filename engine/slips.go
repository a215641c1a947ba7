package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"obelus/store"
)

// slips warn of what a call says and hardly means.
func (c *Call) slips() []error {
	return append(c.misspelled(), c.unresolvable()...)
}

// metaProperties are what a call may say of itself beside its tool.
var metaProperties = []string{"_delegate", "_instance", "_output", "_outputMethod", "_outputPath", "_scopes"}

// misspelled warns of what means nothing to us nor to the tool, and all but is a
// meta-property or a parameter that does. Undeclared ones are free, and a tool may
// declare one that looks like ours, so that it is no error.
func (c *Call) misspelled() (warnings []error) {
	for _, name := range c.unknown() {
		known, what := metaProperties, name
		if !strings.HasPrefix(name, "_") {
			known, what = append(c.notGiven(), "_outputPath", "_outputMethod"), fmt.Sprintf("parameter %q", name)
		}
		if i := slices.IndexFunc(known, func(other string) bool { return slipOf(name, other) }); i >= 0 {
			warnings = append(warnings, faultf(CodeSchema, "%s is not known, and only handed on (did you mean %q?)", what, known[i]))
		}
	}
	return warnings
}

// unknown is what the call gives and neither we know nor the tool declares.
func (c *Call) unknown() []string {
	return slices.DeleteFunc(sortedKeys(c.Issued), func(name string) bool {
		return name == "_tool" || slices.Contains(metaProperties, name) || slices.Contains(c.tool.required, name) || c.tool.declares(name)
	})
}

// notGiven are the parameters that the tool declares by name and the call leaves out.
func (c *Call) notGiven() []string {
	return slices.DeleteFunc(c.tool.parameters(), func(name string) bool {
		_, given := c.Issued[name]
		return given
	})
}

// slipOf tells whether a name can only be a slip of another, and not a word of its own.
func slipOf(name, other string) bool {
	plain := func(name string) string {
		return strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(name, "_", "")), "s")
	}
	a, b := plain(name), plain(other)
	if a == b || len(a) > maxSpelled {
		return a == b
	}
	return distance([]rune(a), []rune(b)) <= len(b)/7
}

// insideText finds references in a text, with a key at least.
var insideText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(store.Dagger + `[\p{L}\p{N}_]+(\.[\p{L}\p{N}_]+)+`) })

// unresolvable warns of references in the midst of a text, which is left as it stands
// (protocol §4). What reads prose, a model or a delegate, may be meant to see them, and
// ††… is text on purpose.
func (c *Call) unresolvable() (warnings []error) {
	if c.latent() || c.delegate != nil {
		return nil
	}
	for _, p := range c.params {
		if found := referenceWithin(c.Issued[p.name]); found != "" {
			warnings = append(warnings, faultf(CodeExpression, `%s: the text has %s in its midst, which stays as it stands (an expression has its value: †("…" + %s))`, p.name, found, found))
		}
	}
	return warnings
}

// referenceWithin finds the first reference in the midst of a text of a value.
func referenceWithin(v any) string {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, store.Dagger) && !strings.HasPrefix(v, store.Dagger) {
			return insideText().FindString(v)
		}
	case []any:
		for _, e := range v {
			if found := referenceWithin(e); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if found := referenceWithin(v[key]); found != "" {
				return found
			}
		}
	}
	return ""
}
