package modeltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Generate returns a value that fits a JSON Schema: the same for the same seed. It knows what
// providers take of JSON Schema, and ignores the rest. The schema is JSON as [encoding/json] has
// it; nil takes any value.
func Generate(schema any, seed uint64) any {
	g := &generator{root: schema, rand: rand.New(rand.NewPCG(seed, 1))}
	return g.value(schema, 0)
}

// maxGenerated is the depth from which on as little as possible is generated.
const maxGenerated = 6

type generator struct {
	root any
	rand *rand.Rand
}

// value returns a value for a schema at a depth.
func (g *generator) value(schema any, depth int) any {
	o, ok := schema.(map[string]any)
	if !ok {
		return g.any()
	}
	if v, ok := o["const"]; ok {
		return v
	}
	if values, _ := o["enum"].([]any); len(values) > 0 {
		return values[g.rand.IntN(len(values))]
	}
	if ref, ok := o["$ref"].(string); ok && depth < 64 {
		return g.value(g.resolve(ref), depth+1)
	}
	for _, union := range []string{"anyOf", "oneOf"} {
		if branches, _ := o[union].([]any); len(branches) > 0 {
			return g.value(merged(o, g.branch(branches, depth)), depth+1)
		}
	}
	if all, _ := o["allOf"].([]any); len(all) > 0 {
		whole := any(without(o, "allOf"))
		for _, part := range all {
			whole = merged(whole.(map[string]any), g.followed(part))
		}
		return g.value(whole, depth+1)
	}
	return g.typed(o, depth)
}

// typed returns a value of one of the types of a schema.
func (g *generator) typed(o map[string]any, depth int) any {
	kind, _ := o["type"].(string)
	if kinds, _ := o["type"].([]any); len(kinds) > 0 {
		kind, _ = kinds[g.rand.IntN(len(kinds))].(string)
	}
	switch {
	case kind == "object", kind == "" && o["properties"] != nil:
		return g.object(o, depth)
	case kind == "array", kind == "" && o["items"] != nil:
		return g.array(o, depth)
	case kind == "string":
		return g.text(o)
	case kind == "integer", kind == "number":
		return g.number(o, kind == "integer")
	case kind == "boolean":
		return g.rand.IntN(2) == 0
	case kind == "null":
		return nil
	}
	return g.any()
}

// any returns some scalar.
func (g *generator) any() any {
	return []any{nil, true, "text", json.Number("7"), json.Number("-1.5")}[g.rand.IntN(5)]
}

// branch chooses one of the branches of a union: beyond the greatest depth, the shortest.
func (g *generator) branch(branches []any, depth int) any {
	chosen := branches[g.rand.IntN(len(branches))]
	if depth > maxGenerated {
		shortest := math.MaxInt
		for _, b := range branches {
			if text, _ := json.Marshal(g.followed(b)); len(text) < shortest {
				chosen, shortest = b, len(text)
			}
		}
	}
	return g.followed(chosen)
}

// followed returns a schema, or the one that it refers to.
func (g *generator) followed(schema any) any {
	for range 16 {
		o, _ := schema.(map[string]any)
		ref, ok := o["$ref"].(string)
		if !ok {
			break
		}
		schema = g.resolve(ref)
	}
	return schema
}

// resolve returns the target of a reference within the schema; nil if it is not there.
func (g *generator) resolve(ref string) any {
	at := g.root
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		o, _ := at.(map[string]any)
		at = o[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return at
}

// without returns a schema without a keyword.
func without(o map[string]any, name string) map[string]any {
	o = maps.Clone(o)
	delete(o, name)
	return o
}

// merged returns a schema, without its unions, together with another: properties and required of
// both.
func merged(o map[string]any, other any) map[string]any {
	all := without(without(o, "anyOf"), "oneOf")
	with, _ := other.(map[string]any)
	for name, v := range with {
		switch old := all[name].(type) {
		case map[string]any:
			if more, ok := v.(map[string]any); ok && name == "properties" {
				both := maps.Clone(old)
				maps.Copy(both, more)
				v = both
			}
		case []any:
			if more, ok := v.([]any); ok && name == "required" {
				v = slices.Concat(old, more)
			}
		}
		all[name] = v
	}
	return all
}

// object returns an object with the required properties and, by chance, the others.
func (g *generator) object(o map[string]any, depth int) any {
	properties, _ := o["properties"].(map[string]any)
	required, _ := o["required"].([]any)
	v := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth <= maxGenerated && g.rand.IntN(2) == 0 {
			v[name] = g.value(properties[name], depth+1)
		}
	}
	more := o["additionalProperties"]
	for _, name := range required {
		if name, ok := name.(string); ok && properties[name] == nil {
			v[name] = g.value(more, depth+1)
		}
	}
	if _, ok := more.(map[string]any); ok && depth <= maxGenerated {
		for i := range g.rand.IntN(3) {
			if name := fmt.Sprint("key", i); properties[name] == nil {
				v[name] = g.value(more, depth+1)
			}
		}
	}
	return v
}

// array returns an array of a few elements.
func (g *generator) array(o map[string]any, depth int) any {
	first, _ := o["prefixItems"].([]any)
	least, most := int(limit(o, "minItems", float64(len(first)))), int(limit(o, "maxItems", math.MaxInt32))
	n := min(most, max(least, len(first)+g.rand.IntN(3)))
	if depth > maxGenerated || o["items"] == false {
		n = max(least, min(len(first), most))
	}
	v := make([]any, 0, n)
	for i := range n {
		if i < len(first) {
			v = append(v, g.value(first[i], depth+1))
		} else {
			v = append(v, g.value(o["items"], depth+1))
		}
	}
	return v
}

// limit returns a number of a schema.
func limit(o map[string]any, name string, otherwise float64) float64 {
	switch n := o[name].(type) {
	case float64:
		return n
	case json.Number:
		if f, err := n.Float64(); err == nil {
			return f
		}
	}
	return otherwise
}

// number returns a number within the bounds.
func (g *generator) number(o map[string]any, whole bool) any {
	step := limit(o, "multipleOf", 0)
	if step == 0 {
		step = 1
		if !whole {
			step = 0.25
		}
	}
	from := max(limit(o, "minimum", math.Inf(-1)), limit(o, "exclusiveMinimum", math.Inf(-1)))
	to := min(limit(o, "maximum", math.Inf(1)), limit(o, "exclusiveMaximum", math.Inf(1)))
	switch {
	case math.IsInf(from, 0) && math.IsInf(to, 0):
		from, to = -100, 100
	case math.IsInf(from, 0):
		from = to - 200*step
	case math.IsInf(to, 0):
		to = from + 200*step
	}
	low, high := math.Ceil(from/step), math.Floor(to/step)
	if low*step <= limit(o, "exclusiveMinimum", math.Inf(-1)) {
		low++
	}
	if high*step >= limit(o, "exclusiveMaximum", math.Inf(1)) {
		high--
	}
	if high < low { // no multiple of the step is within
		return json.Number(strconv.FormatFloat((from+to)/2, 'f', -1, 64))
	}
	n := low + math.Floor(g.rand.Float64()*(min(high-low, 1e6)+1))
	return json.Number(strconv.FormatFloat(n*step, 'f', -1, 64))
}

// words are what texts are made of: some are not ASCII, some must be escaped.
var words = []string{"a", "wide", "née", "†", "quote\"d", "back\\slash", "new\nline", "雨", "🙂", "<b>", "end"}

// text returns a text that fits format, pattern and lengths.
func (g *generator) text(o map[string]any) any {
	format, _ := o["format"].(string)
	if sample, ok := map[string]string{
		"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "duration": "P1D", "email": "a@example.com",
		"hostname": "example.com", "uri": "https://example.com/a", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "01234567-89ab-4cde-8f01-23456789abcd",
	}[format]; ok {
		return sample
	}
	if pattern, ok := o["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			var b strings.Builder
			g.match(&b, re.Simplify())
			return b.String()
		}
	}
	var chosen []string
	for range 1 + g.rand.IntN(3) {
		chosen = append(chosen, words[g.rand.IntN(len(words))])
	}
	runes := []rune(strings.Join(chosen, " "))
	for len(runes) < int(limit(o, "minLength", 0)) {
		runes = append(runes, 'x')
	}
	return string(runes[:min(len(runes), int(limit(o, "maxLength", math.MaxInt32)))])
}

// match writes a text that a regular expression matches.
func (g *generator) match(b *strings.Builder, re *syntax.Regexp) {
	times := func(n int) {
		for range n {
			g.match(b, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		i := g.rand.IntN(len(re.Rune)/2) * 2
		from, to := re.Rune[i], min(re.Rune[i+1], re.Rune[i]+25)
		b.WriteRune(max(from, ' ') + rune(g.rand.IntN(int(max(to, from)-from)+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('z')
	case syntax.OpCapture:
		g.match(b, re.Sub[0])
	case syntax.OpStar:
		times(g.rand.IntN(3))
	case syntax.OpPlus:
		times(1 + g.rand.IntN(3))
	case syntax.OpQuest:
		times(g.rand.IntN(2))
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			g.match(b, sub)
		}
	case syntax.OpAlternate:
		g.match(b, re.Sub[g.rand.IntN(len(re.Sub))])
	}
}
