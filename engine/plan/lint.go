package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// lint warns of parts of a call that are probable mistakes.
func (c *Call) lint(registry *Registry) []error {
	return slices.Concat(c.unresolvable(), c.replacing(), c.returnless(), c.constant(), c.toolless(registry))
}

// toolless warns of a delegate whose model is offered no tools, though its own texts name one that
// there is.
func (c *Call) toolless(registry *Registry) []error {
	if c.Delegate == nil || c.Delegate.Request == nil {
		return nil
	}
	request := c.Delegate.Isolated()
	planning, ok := request.Planner.(*Planning)
	if !ok || planning.Offer != nil {
		return nil
	}
	there := c.Delegate.RegistryFor(registry).WithRequest(request)
	if len(planning.Offers(there)) > 0 {
		return nil
	}
	notInName := func(r rune) bool {
		isLetter := unicode.IsLetter(r) || unicode.IsDigit(r)
		return !isLetter && !strings.ContainsRune("_-.", r)
	}
	for _, m := range request.Context {
		text, _ := m.Data.Value.(string)
		for _, word := range strings.FieldsFunc(text, notInName) {
			word = strings.Trim(word, ".-")
			if _, named := there.Tool(word); named {
				return []error{Faultf(CodeUnknownTool, "the model that plans its delegate %s is offered no tools, and is told of %q: list it in the offer of the delegate, or give an empty offer", c.Delegate.Name, word)}
			}
		}
	}
	return nil
}

// constant warns of a result that was written by hand and does not follow what its call reads.
func (c *Call) constant() []error {
	if !c.IsConstant() {
		return nil
	}
	return []error{Faultf(CodeTypes, "%s", ConstantWarning)}
}

// IsConstant reports whether the call refers to values, and brings a result that does not follow
// them.
func (c *Call) IsConstant() bool { return c.Given.Set && !c.accepted && len(c.Refs) > 0 }

// ConstantWarning is the warning of a call's own result.
const ConstantWarning = "_output: written by hand: it does not follow what the call reads"

// returnless warns of a result that is written and that no activity gives.
func (c *Call) returnless() []error {
	if c.Output == nil || c.Delegate != nil || c.Activity == nil || !c.Activity.ReturnsNothing {
		return nil
	}
	of := "its activity"
	if c.Activity.Script != "" {
		of += " in " + c.Activity.Script
	}
	mend := "return one, or leave _outputPath out"
	if len(c.Output.Alternatives) > 1 {
		mend = "return one"
	}
	var paths []string
	for _, path := range c.Output.Alternatives[0] {
		paths = append(paths, path.String())
	}
	return []error{Faultf(CodeTypes, "%s returns no value, so that null is written to %s: %s", of, strings.Join(paths, " and "), mend)}
}

// replacing warns of a fan-out to two errors, the second of which replaces the first.
func (c *Call) replacing() []error {
	if c.Output == nil {
		return nil
	}
	for _, paths := range c.Output.Alternatives {
		errors := slices.DeleteFunc(slices.Clone(paths), func(p store.Path) bool { return p.Kind() != store.KindError })
		if len(errors) > 1 {
			return []error{Faultf(CodeExpression, "_outputPath: %s replaces %s: an error takes the place of the one before", errors[1], errors[0])}
		}
	}
	return nil
}

// metaProperties are the properties of a call that the protocol defines, beside its tool.
var metaProperties = []string{"_after", "_at", "_backoff", "_delegate", "_if", "_in", "_instance", "_model", "_output", "_outputMethod", "_outputPath", "_reasoningForCall", "_retries", "_scopes", "_timeout"}

// checkMetaNames refuses meta-properties that neither the protocol nor the tool declares: they
// would have no effect. There is an error for each.
func (c *Call) checkMetaNames() (errs []error) {
	var known []string
	for _, name := range c.unknown() {
		if !strings.HasPrefix(name, "_") || name == allowProperty {
			continue
		}
		if known == nil {
			known = append([]string{"_tool"}, metaProperties...)
			for _, declared := range jsonvalue.SortedKeys(c.Definition.meta) {
				if !slices.Contains(known, declared) && declared != allowProperty {
					known = append(known, declared)
				}
			}
		}
		hint := spell.DidYouMean(name, known)
		if name == "_activity" {
			hint = " (it belongs into the tool)"
		}
		errs = append(errs, Faultf(CodeSchema, "%s is not known%s: a call of this tool can have %s", name, hint, strings.Join(known, ", ")))
	}
	return errs
}

// unknownProperties are properties that neither the protocol nor the tool knows: parameters of a
// tool that names some and does not say that it takes others, and any meta-property, which only a
// plan that was accepted before can have.
func (c *Call) unknownProperties() (faults []error) {
	unknown := c.unknown()
	if len(unknown) == 0 {
		return nil
	}
	notGiven := c.notGiven()
	whole := schema.Node{Root: c.Definition.Schema, At: c.Definition.Schema}
	for _, name := range unknown[:min(len(unknown), maxHints)] {
		if strings.HasPrefix(name, "_") {
			if c.accepted {
				faults = append(faults, Faultf(CodeSchema, "%s is not known, and only handed on%s", name, spell.DidYouMean(name, metaProperties)))
			}
			continue
		}
		near := ""
		if i := slices.IndexFunc(notGiven, func(other string) bool { return isMisspelling(name, other) }); i >= 0 {
			near = fmt.Sprintf(" (did you mean %q?)", notGiven[i])
		}
		if near != "" || whole.Admits([]string{name}) != schema.Admitted {
			near = cmp.Or(near, spell.DidYouMean(name, notGiven))
			faults = append(faults, Faultf(CodeSchema, "parameter %q is not known, and only handed on%s", name, near))
		}
	}
	return faults
}

// unknown lists the properties of the call that neither the protocol nor the tool declares.
func (c *Call) unknown() []string {
	return slices.DeleteFunc(jsonvalue.SortedKeys(c.Issued), func(name string) bool {
		return name == "_tool" || slices.Contains(metaProperties, name) || slices.Contains(c.Definition.required, name) || c.Definition.declares(name)
	})
}

// notGiven lists the parameters that the tool declares and the call leaves out, and the
// meta-properties about its output.
func (c *Call) notGiven() []string {
	return slices.DeleteFunc(append(c.Definition.parameters(), "_outputPath", "_outputMethod"), func(name string) bool {
		_, given := c.Issued[name]
		return given
	})
}

// isMisspelling reports whether a name can only be a misspelling of another, and not a word of its
// own, nor the next of a series.
func isMisspelling(name, other string) bool {
	a, b := plainName(name), plainName(other)
	if string(a) == string(b) || len(a) == 0 || len(a) > spell.MaxSpelled {
		return string(a) == string(b) && len(a) > 0
	}
	most := len(b) / 7
	if most == 0 || len(a)-len(b) > most || len(b)-len(a) > most {
		return false
	}
	return !numbered(a, b) && spell.Distance(a, b) <= most
}

// numbered reports whether two different names differ only in their digits.
func numbered(a, b []rune) bool {
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), unicode.IsDigit), slices.DeleteFunc(slices.Clone(b), unicode.IsDigit))
}

// plainName is a name without what names are written in different ways by.
func plainName(name string) []rune {
	return []rune(strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(name, "_", "")), "s"))
}

// insideText finds references in a text: with a key at least, so that a year of death (†1832) is
// none.
var insideText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(store.Dagger + `[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}\p{N}_]+|\[\d+\]|\["[^"]*"\])+`)
})

// unresolvable warns of references inside a text, which is left as it stands (protocol §4). A
// reader of prose, a model or a delegate, may be meant to see them, and ††… is text on purpose.
func (c *Call) unresolvable() (warnings []error) {
	if c.latent() || c.Delegate != nil {
		return nil
	}
	for _, p := range c.Params {
		if found := referenceWithin(c.Issued[p.Name]); found != "" {
			warnings = append(warnings, Faultf(CodeExpression, `%s: the text has %s in its midst, which stays as it stands (an expression has its value: †("…" + string(%s)))`, p.Name, found, found))
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
		for _, key := range jsonvalue.SortedKeys(v) {
			if found := referenceWithin(v[key]); found != "" {
				return found
			}
		}
	}
	return ""
}

// knownPaths are the paths that a plan writes and reads, and the schemas that its request declares.
type knownPaths struct {
	paths    map[string]bool
	declared declarations
}

func knownPathsOf(p *Plan, declared declarations) knownPaths {
	known := knownPaths{map[string]bool{}, declared}
	for _, call := range p.Calls {
		for _, path := range slices.Concat(call.Output.Writes(), call.Refs) {
			known.paths[path.String()] = true
		}
	}
	return known
}

// has reports whether a path is one of them, or a schema names its first key.
func (k knownPaths) has(path store.Path) bool {
	segments := path.Segments()
	declared, _ := k.declared.of(path.Kind(), "")
	return k.paths[path.String()] || len(segments) > 0 && slices.Contains(declared.Names(), segments[0])
}

// daggerless finds the first text in a value that equals, without its †, a path below a kind that
// the plan or its schemas know. It returns the place and the text.
func (k knownPaths) daggerless(v any, name string) (place, text string) {
	switch v := v.(type) {
	case string:
		if !strings.ContainsAny(v, ".[") || len(v) > maxForgotten || strings.Contains(v, store.Dagger) {
			return "", ""
		}
		path, err := store.ParsePath(store.Dagger + v)
		if err == nil && k.has(path) {
			return name, v
		}
	case []any:
		for i, e := range v {
			if at, text := k.daggerless(e, placeIn(name, strconv.Itoa(i))); text != "" {
				return at, text
			}
		}
	case map[string]any:
		for _, key := range jsonvalue.SortedKeys(v) {
			if at, text := k.daggerless(v[key], placeIn(name, key)); text != "" {
				return at, text
			}
		}
	}
	return "", ""
}

// maxForgotten is how long a text may be that is taken for a path without its †.
const maxForgotten = 200

func placeIn(name, key string) string { return phrase.Place(name, []string{key}) }

// forgotten is the warning for a text that is a path without its †.
func forgotten(at, text string) string {
	return fmt.Sprintf("%s: %q is a text: did you mean %q, its value?", at, text, store.Dagger+text)
}
