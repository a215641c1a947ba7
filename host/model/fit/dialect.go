package fit

import (
	"fmt"
	"slices"
	"strings"

	"obelus/store"
)

// Dialect is the part of JSON Schema that a provider takes. Its zero value takes nothing but types,
// properties, items, enum and anyOf; [DialectOf] returns those that are known.
type Dialect struct {
	Name string

	// InPrompt reports that the provider uses the schema to decode alone: the model is not shown it,
	// so a prompt has to hold it too .
	InPrompt bool

	AllRequired bool // every property is required: one that may be missing is null instead
	Closed      bool // every object has additionalProperties false
	Untyped     bool // maps and values of any type are taken; else they are written as JSON text
	Const       bool // const is taken; else it becomes an enum of one
	Constants   bool // enum and const may hold objects and arrays
	Typed       bool // enum and const need a type beside them
	Refs        bool // $ref and $defs are taken; else they are resolved in place
	RootObject  bool // the schema of the answer is one of an object

	// Grammar reports that a grammar is made of the schema as llama.cpp does it: an empty schema takes
	// objects alone, bounds of an array count beside items alone, and a pattern or format of a text
	// hides its other bounds.
	Grammar bool

	// Keywords that bound a value, such as minimum, which are taken. Others are said in the
	// description.
	Keywords []string
	Formats  []string // values of format that are taken
	Patterns Patterns

	// OneMinItem reports that minItems is taken as 0 and 1 alone, IntegerBounds that bounds are those
	// of integers.
	OneMinItem, IntegerBounds bool

	// Limits of a schema in its exact form; 0 for none.
	MaxSize, MaxProperties, MaxDepth, MaxEnum, MaxUnions int
}

// Patterns says which patterns a dialect takes.
type Patterns int

// Patterns of dialects.
const (
	NoPatterns      Patterns = iota
	AllPatterns              // any regular expression
	GrammarPatterns          // those that can be made a grammar: from ^ to $, without what may be a quote
)

var (
	numberBounds = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
	textBounds   = []string{"minLength", "maxLength"}
	itemBounds   = []string{"minItems", "maxItems"}
	someFormats  = []string{"date-time", "date", "time"}
)

// dialects are all that are known, sorted by name.
var dialects = []Dialect{
	{
		Name: "anthropic", Closed: true, Const: true, Refs: true, RootObject: true,
		Keywords: []string{"minItems"}, OneMinItem: true, Patterns: AllPatterns,
		Formats: append([]string{"duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}, someFormats...),
		MaxSize: 8_000, MaxUnions: 16,
	},
	{
		Name: "gemini", Untyped: true, Typed: true, RootObject: true,
		Keywords: append([]string{"minimum", "maximum"}, itemBounds...), Formats: someFormats,
		MaxSize: 30_000,
	},
	grammarDialect("llama"),
	grammarDialect("ollama"),
	{
		Name: "openai", AllRequired: true, Closed: true, Const: true, Typed: true, Refs: true, RootObject: true,
		Keywords: slices.Concat(numberBounds, itemBounds, []string{"multipleOf"}), Patterns: AllPatterns,
		Formats: append([]string{"duration", "email", "hostname", "ipv4", "ipv6", "uuid"}, someFormats...),
		MaxSize: 120_000, MaxProperties: 5_000, MaxDepth: 10, MaxEnum: 1_000,
	},
	{
		Name: "plain", Untyped: true, Const: true, Constants: true, Refs: true, RootObject: true,
		Keywords: slices.Concat(numberBounds, textBounds, itemBounds, []string{"multipleOf"}),
		MaxSize:  30_000,
	},
}

// grammarDialect returns the dialect of servers that make a grammar of the schema.
func grammarDialect(name string) Dialect {
	return Dialect{
		Name: name, InPrompt: true, Untyped: true, Const: true, Constants: true, Refs: true, Grammar: true,
		Keywords: slices.Concat(numberBounds, textBounds, itemBounds), IntegerBounds: true, Patterns: GrammarPatterns, Formats: someFormats,
		MaxSize: 12_000,
	}
}

// DialectOf returns the dialect of a name.
func DialectOf(name string) (Dialect, bool) {
	i := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Name == name })
	if i < 0 {
		return Dialect{}, false
	}
	return dialects[i], true
}

// Dialects returns the names of the dialects that are known, sorted.
func Dialects() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.Name
	}
	return names
}

// excess returns which limit of the dialect a fitted schema is over; empty if it is over none.
func (d Dialect) excess(m measures) string {
	for _, limit := range []struct {
		has, most int
		of        string
	}{
		{m.size, d.MaxSize, "bytes"}, {m.properties, d.MaxProperties, "properties"}, {m.depth, d.MaxDepth, "levels"},
		{m.enums, d.MaxEnum, "values of enums"}, {m.unions, d.MaxUnions, "unions"},
	} {
		if limit.most > 0 && limit.has > limit.most {
			return fmt.Sprintf("the schema has %d %s, and %s takes %d", limit.has, limit.of, d.Name, limit.most)
		}
	}
	return ""
}

// measures are what limits of schemas are about.
type measures struct{ size, properties, depth, enums, unions int }

// measure measures a fitted schema.
func measure(schema any) measures {
	m := measures{size: sizeOf(schema)}
	m.count(schema, 0)
	return m
}

func sizeOf(v any) int {
	text, err := JSON(v)
	if err != nil {
		return 0
	}
	return len(text)
}

func (m *measures) count(schema any, depth int) {
	o, ok := schema.(Object)
	if !ok {
		return
	}
	properties := o.Object("properties")
	m.properties += len(properties)
	m.enums += len(o.List("enum"))
	if o.Has("anyOf") || len(Types(o)) > 1 {
		m.unions++
	}
	if properties != nil || o.Has("items") {
		depth++
	}
	m.depth = max(m.depth, depth)
	mapSchemas(o, func(inner any) any {
		m.count(inner, depth)
		return inner
	})
}

// takes returns the value of a bound as the dialect takes it.
func (d Dialect) takes(m Member, types []string) (any, bool) {
	switch m.Name {
	case "pattern":
		pattern, _ := m.Value.(string)
		return d.takesPattern(pattern)
	case "format":
		name, _ := m.Value.(string)
		return name, slices.Contains(d.Formats, name)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		isOfIntegers := len(types) == 1 && types[0] == "integer" && isOfType(m.Value, "integer")
		if d.IntegerBounds && !isOfIntegers {
			return nil, false
		}
	case "minItems":
		if d.OneMinItem && !sameJSON(m.Value, 0) && !sameJSON(m.Value, 1) {
			return nil, false
		}
	}
	return m.Value, slices.Contains(d.Keywords, m.Name)
}

// ignored returns the bounds of texts that a grammar does not heed beside others in the schema.
func (d Dialect) ignored(s Object) []string {
	for i, name := range []string{"pattern", "format"} {
		if _, ok := d.takes(Member{name, s.Get(name)}, nil); ok && d.Grammar {
			return [][]string{{"format", "minLength", "maxLength"}, {"minLength", "maxLength"}}[i]
		}
	}
	return nil
}

// takesPattern returns a pattern as the dialect takes it.
func (d Dialect) takesPattern(pattern string) (string, bool) {
	switch d.Patterns {
	case AllPatterns:
		return pattern, true
	case GrammarPatterns:
		if strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, store.Dagger) {
			pattern += `[^"\\]+$`
		}
		return pattern, isGrammar(pattern)
	}
	return "", false
}

// isGrammar reports whether a pattern can be made a grammar whose texts need no escapes in JSON: it
// is about the whole text, and has neither quotes nor what may stand for one.
func isGrammar(pattern string) bool {
	if !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") || strings.HasSuffix(pattern, `\$`) || len(pattern) < 2 {
		return false
	}
	inner := strings.ReplaceAll(pattern[1:len(pattern)-1], `[^"\\]`, "x")
	if strings.ContainsAny(inner, `"^$`) {
		return false
	}
	inClass := false
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; c {
		case '\\':
			if i++; i >= len(inner) || !strings.ContainsRune(`.()[]{}|*+?-/`, rune(inner[i])) {
				return false
			}
		case '.', '(':
			if !inClass && (c == '.' || strings.HasPrefix(inner[i:], "(?")) {
				return false
			}
		case '[':
			inClass = true
		case ']':
			inClass = false
		}
	}
	return true
}
