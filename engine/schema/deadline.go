package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/regex"
)

// maxCheckTime is how long a value may be held against a schema. Nearly all take some
// microseconds, and a million rows a second or two.
var maxCheckTime = 5 * time.Second

// deadline ends a check of a value against a schema that takes too long. The library can't be
// interrupted: each part of a schema charges the deadline for each part of a value that it looks
// at. One check has it at a time.
type deadline struct {
	mu      sync.Mutex
	charged int       // steps of some hundred nanoseconds since the clock was read last
	began   time.Time // start of the check, or shortly after; zero before the clock is read

	trial arrayTrial // the trial that the check is for; nil for none
}

// errSlow is the panic of a charge after the deadline.
var errSlow = errors.New("a check against a schema takes too long")

// errStack is the panic of a pattern that would take too much memory.
var errStack = errors.New("a pattern has too many ways to match a text")

// locked runs a check, one at a time.
func (d *deadline) locked(do func() error) error {
	d.mu.Lock()
	return d.runLocked(do)
}

// runLocked runs a check from the beginning of the deadline, and unlocks the mutex, which the
// caller has locked.
func (d *deadline) runLocked(do func() error) (err error) {
	defer d.mu.Unlock()
	d.charged, d.began, d.trial = 0, time.Time{}, nil
	defer func() {
		switch failure := recover(); failure {
		case nil:
		case errSlow, errStack:
			err = failure.(error)
		// A last resort: schemas and values come from outside, and the library is another's code.
		default:
			err = crash.PanicError("the check against a schema broke", failure)
		}
	}()
	return do()
}

// charge adds n steps, and panics with errSlow after the deadline.
func (d *deadline) charge(n int) {
	if d.charged += n; d.charged < 4096 {
		return
	}
	d.charged = 0
	switch {
	case d.began.IsZero():
		d.began = time.Now()
	case time.Since(d.began) > maxCheckTime:
		panic(errSlow)
	}
}

// left returns the time until the deadline.
func (d *deadline) left() time.Duration {
	if d.began.IsZero() {
		d.began = time.Now()
	}
	return maxCheckTime - time.Since(d.began)
}

// schemaCompiler compiles one schema so that its checks have a deadline.
type schemaCompiler struct {
	*jsonschema.Compiler
	deadline *deadline
	patterns map[string]*meteredPattern // each is compiled twice, once to check it
	left     int                        // of regex.MaxInstructions, for further patterns

	ignoreFormats bool
}

// compileSchema compiles a schema whose checks charge a deadline.
func compileSchema(schema any, options []Option) (*Schema, error) {
	c := &schemaCompiler{Compiler: jsonschema.NewCompiler(), deadline: &deadline{}, patterns: map[string]*meteredPattern{}, left: regex.MaxInstructions}
	for _, option := range options {
		option(c)
	}
	if !c.ignoreFormats {
		c.AssertFormat()
	}
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(c.pattern)
	if err := c.AddResource(schemaURL, schema); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	roots := []*jsonschema.Schema{compiled}
	for _, pointer := range dynamicAnchors(schema, "") { // no other schema need refer to it
		if anchored, err := c.Compile(schemaURL + "#" + pointer); err == nil {
			roots = append(roots, anchored)
		}
	}
	s := &Schema{compiled: compiled, measures: measures(schema), deadline: c.deadline, shapes: map[*jsonschema.Schema]*shape{}}
	all, constraining := reached(roots), []*jsonschema.Schema(nil)
	for _, one := range all { // before watch adds to them
		shapeOf(one, s.shapes)
	}
	for _, one := range all {
		if constrainsWhole(one) { // checked by the keywords that watch removes
			constraining = append(constraining, one)
		}
		s.dynamic = s.dynamic || one.DynamicRef != nil || one.RecursiveRef != nil
		c.watch(one)
		s.measures = s.measures || !strings.HasPrefix(one.Location, schemaURL) // of a draft itself
	}
	s.PartialSchemas = partialSchemasOf(constraining, all)
	return s, nil
}

// dynamicAnchors are the pointers to the subschemas of a schema that have one.
func dynamicAnchors(v any, pointer string) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		if v["$dynamicAnchor"] != nil {
			all = append(all, pointer)
		}
		for key, within := range v {
			all = append(all, dynamicAnchors(within, pointer+"/"+pointerToken(key))...)
		}
	case []any:
		for i, within := range v {
			all = append(all, dynamicAnchors(within, pointer+"/"+strconv.Itoa(i))...)
		}
	}
	return all
}

// pointerToken is a key as a pointer in a URL has it.
func pointerToken(key string) string {
	return url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"))
}

// reached are schemas and all others that they hold against anything.
func reached(next []*jsonschema.Schema) (all []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{nil: true}
	for len(next) > 0 {
		s := next[len(next)-1]
		if next = next[:len(next)-1]; seen[s] {
			continue
		}
		seen[s] = true
		all = append(all, s)
		next = append(append(append(next, itself(s)...), within(s)...), s.RecursiveRef)
		if s.DynamicRef != nil {
			next = append(next, s.DynamicRef.Ref)
		}
		for _, v := range append(slices.Collect(maps.Values(s.Dependencies)), s.Items, s.AdditionalItems) {
			switch v := v.(type) {
			case *jsonschema.Schema:
				next = append(next, v)
			case []*jsonschema.Schema:
				next = append(next, v...)
			}
		}
	}
	return all
}

// watch makes a schema charge the deadline before it looks at a value: a format is the one function
// that the library calls for every value, before it goes on to its parts.
func (c *schemaCompiler) watch(s *jsonschema.Schema) {
	namesArray := namesArray(s)
	rules := rulesOf(s)
	if s.UniqueItems {
		s.UniqueItems = false
		s.Extensions = append(s.Extensions, unique{c.deadline})
	}
	format := s.Format
	if c.ignoreFormats || format != nil && format.Name == "uri-template" {
		format = nil // older drafts assert it always; the library refuses good templates ({?page})
	}
	if format != nil && format.Name == "regex" {
		format = &jsonschema.Format{Name: format.Name, Validate: c.deadline.isPattern}
	}
	itself := 2 + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf) + len(s.DependentSchemas) + len(s.DependentRequired) + len(s.Dependencies)
	for _, name := range slices.Concat(slices.Concat(slices.Collect(maps.Values(s.DependentRequired))...), s.Required) {
		itself += 1 + len(name)/64
	}
	each := 2 + len(s.PatternProperties)
	name := "value"
	if format != nil {
		name = format.Name
	}
	s.Format = &jsonschema.Format{Name: name, Validate: func(v any) error {
		c.deadline.charge(itself + each*size(v))
		if namesArray {
			c.deadline.trial.record(s, v)
		}
		if err := rules.check(v, c.deadline); err != nil || format == nil {
			return err
		}
		return format.Validate(v)
	}}
}

// size is how many parts a value has, or how long it is.
func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	case string:
		return len(v) / 64
	case json.Number:
		return len(v) / 16
	}
	return 0
}

func (c *schemaCompiler) pattern(text string) (jsonschema.Regexp, error) {
	if p := c.patterns[text]; p != nil {
		return p, nil
	}
	p := &meteredPattern{source: text, deadline: c.deadline}
	var err error
	if p.linear, p.backtracking, err = ecmaPattern(text); err != nil {
		return nil, err
	}
	if p.linear != nil {
		c.left -= p.linear.Price
	}
	price := len(text)
	if p.backtracking != nil { // which takes longer to compile
		price *= 1 + groupDepth(text)
	}
	if c.left -= price; c.left < 0 {
		return nil, regex.ErrTooLarge
	}
	c.patterns[text] = p
	return p, nil
}

// isPattern is the format regex of values.
func (d *deadline) isPattern(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	d.charge(10 * len(text))
	linear, _, err := strictPattern(text)
	if linear != nil {
		d.charge(10 * linear.Price)
	}
	return err
}

// meteredPattern charges the deadline while it looks at a text.
type meteredPattern struct {
	source       string
	linear       *regex.Pattern  // used where it can decide
	backtracking *regexp2.Regexp // used only under a deadline
	deadline     *deadline
}

func (p *meteredPattern) String() string { return p.source }

// MatchString reports whether a text matches.
func (p *meteredPattern) MatchString(text string) bool {
	if p.linear == nil {
		return p.backtrack(text)
	}
	worst := len(text) * p.linear.Price / 10
	p.deadline.charge(1 + worst)
	if worst < 100_000 {
		return p.linear.MatchString(text)
	}
	return p.linear.MatchReader(&meteredReader{strings.NewReader(text), p})
}

// backtrack is MatchString by the engine that takes as long as it is let.
func (p *meteredPattern) backtrack(text string) bool {
	p.deadline.charge(1 + len(text)/regex.MaxBytes)
	if p.backtracking.MatchTimeout = p.deadline.left(); p.backtracking.MatchTimeout <= 0 {
		panic(errSlow)
	}
	matches, err := p.backtracking.MatchString(text)
	switch {
	case errors.Is(err, regexp2.ErrBacktrackingStackLimit):
		panic(errStack)
	case err != nil: // the time is over
		panic(errSlow)
	}
	return matches
}

// meteredReader charges the deadline at every character.
type meteredReader struct {
	*strings.Reader
	pattern *meteredPattern
}

// ReadRune reads a character.
func (r *meteredReader) ReadRune() (rune, int, error) {
	r.pattern.deadline.charge(1 + r.pattern.linear.Price/10)
	return r.Reader.ReadRune()
}
