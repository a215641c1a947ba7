package fit

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"obelus/engine/schema"
	"obelus/store"
)

// Forms of a keyword's value that holds schemas.
const (
	oneSchema = iota + 1
	schemaList
	schemaMap
)

// subschemas are the keywords whose values are schemas.
var subschemas = map[string]int{
	"additionalProperties": oneSchema, "items": oneSchema, "not": oneSchema, "if": oneSchema, "then": oneSchema, "else": oneSchema,
	"contains": oneSchema, "propertyNames": oneSchema, "unevaluatedItems": oneSchema, "unevaluatedProperties": oneSchema, "contentSchema": oneSchema,
	"anyOf": schemaList, "oneOf": schemaList, "allOf": schemaList, "prefixItems": schemaList,
	"properties": schemaMap, "patternProperties": schemaMap, "dependentSchemas": schemaMap, "$defs": schemaMap, "definitions": schemaMap,
}

// keywordOrder is the order of a schema's keywords where a Go map has lost it. Others follow,
// sorted.
var keywordOrder = []string{"$ref", "type", "const", "enum", "title", "description", "properties", "required", "additionalProperties", "prefixItems", "items", "anyOf", "oneOf", "allOf"}

// Order returns a schema in which each schema that is an object is an [Object]. Members of
// maps are put in order: the required properties before the others, each sorted.
func Order(schema any) (any, error) {
	switch s := schema.(type) {
	case bool:
		return s, nil
	case Object:
		return orderMembers(s)
	case map[string]any:
		members := make(Object, 0, len(s))
		for _, name := range sortedKeywords(s) {
			value := s[name]
			if properties, ok := value.(map[string]any); ok && name == "properties" {
				value = orderProperties(properties, s["required"])
			}
			members = append(members, Member{name, value})
		}
		return orderMembers(members)
	case nil:
		return nil, errors.New("a schema is an object, not null")
	}
	made, err := store.FromGo(schema, "")
	if err != nil {
		return nil, err
	}
	switch made.(type) {
	case map[string]any, bool:
		return Order(made)
	}
	return nil, fmt.Errorf("a schema is an object, not %s", store.Describe(made))
}

// orderMembers orders the schemas within a schema, and makes JSON of its other values.
func orderMembers(schema Object) (any, error) {
	var failed error
	keep := func(made any, err error) any {
		if err != nil && failed == nil {
			failed = err
		}
		return made
	}
	ordered := mapSchemas(schema, func(inner any) any { return keep(Order(inner)) })
	for i, m := range ordered {
		if subschemas[m.Name] == 0 {
			ordered[i].Value = keep(store.FromGo(m.Value, m.Name))
		}
	}
	return ordered, failed
}

// mapSchemas returns a schema with each schema directly within it replaced. A value that is
// no schema where one is expected stays as it is.
func mapSchemas(schema Object, replace func(any) any) Object {
	made := make(Object, 0, len(schema))
	for _, m := range schema {
		switch subschemas[m.Name] {
		case oneSchema:
			m.Value = replace(m.Value)
		case schemaList:
			if list, ok := m.Value.([]any); ok {
				replaced := make([]any, len(list))
				for i, inner := range list {
					replaced[i] = replace(inner)
				}
				m.Value = replaced
			}
		case schemaMap:
			replaced := Object{}
			for _, p := range membersOf(m.Value) {
				replaced = append(replaced, Member{p.Name, replace(p.Value)})
			}
			m.Value = replaced
		}
		made = append(made, m)
	}
	return made
}

// membersOf returns the members of an object, sorted if it is a map; nil for any other value.
func membersOf(v any) Object {
	switch v := v.(type) {
	case Object:
		return v
	case map[string]any:
		members := make(Object, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			members = append(members, Member{name, v[name]})
		}
		return members
	}
	return nil
}

// orderProperties puts the required properties first, in the order of their list.
func orderProperties(properties map[string]any, required any) Object {
	made := make(Object, 0, len(properties))
	for _, name := range Texts(required) {
		if value, ok := properties[name]; ok && !made.Has(name) {
			made = append(made, Member{name, value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !made.Has(name) {
			made = append(made, Member{name, properties[name]})
		}
	}
	return made
}

func sortedKeywords(schema map[string]any) []string {
	names := slices.Sorted(maps.Keys(schema))
	rank := func(name string) int {
		if name == "$defs" {
			return len(keywordOrder) + 1
		}
		if i := slices.Index(keywordOrder, name); i >= 0 {
			return i
		}
		return len(keywordOrder)
	}
	sort.SliceStable(names, func(i, j int) bool { return rank(names[i]) < rank(names[j]) })
	return names
}

// Texts returns the texts of a list.
func Texts(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		var texts []string
		for _, e := range v {
			if text, ok := e.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}

// annotations are keywords that say something to people and bound nothing.
var annotations = []string{"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$anchor", "$defs", "definitions"}

// IsUnbounded reports whether a schema bounds nothing.
func IsUnbounded(s Object) bool {
	return !slices.ContainsFunc(s, func(m Member) bool { return schema.IsKeyword(m.Name) && !slices.Contains(annotations, m.Name) })
}

// Annotate returns a schema with the title and the description of another, where it has none.
func Annotate(schema, from Object) Object {
	for _, name := range []string{"title", "description"} {
		if from.Has(name) && !schema.Has(name) && !schema.Has("$ref") {
			schema = schema.With(name, from.Get(name))
		}
	}
	return schema
}

// Constants returns the values of a const or an enum.
func Constants(schema Object) []any {
	if schema.Has("const") {
		return []any{schema.Get("const")}
	}
	return schema.List("enum")
}

// RewriteRefs returns a schema with its references replaced.
func RewriteRefs(schema any, replace func(ref string) string) any {
	o, ok := schema.(Object)
	if !ok {
		return schema
	}
	made := mapSchemas(o, func(inner any) any { return RewriteRefs(inner, replace) })
	for i, m := range made {
		if ref, ok := m.Value.(string); ok && m.Name == "$ref" {
			made[i].Value = replace(ref)
		}
	}
	return made.Without("$id", "$schema")
}

// SafeName returns a name for a definition, of characters that a reference holds as they are.
func SafeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r) {
			return r
		}
		return '_'
	}, name)
}

// Types returns the types that a schema's type names.
func Types(schema Object) []string {
	if text, ok := schema.Get("type").(string); ok {
		return []string{text}
	}
	return Texts(schema.Get("type"))
}

// PointerSteps returns the steps of a reference that is a pointer within its document; ok is false
// for any other reference.
func PointerSteps(ref string) (steps []string, ok bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	if pointer == "" {
		return nil, true
	}
	for _, step := range strings.Split(pointer[1:], "/") {
		steps = append(steps, unescapeStep(step))
	}
	return steps, true
}

func unescapeStep(step string) string {
	if decoded, err := url.PathUnescape(step); err == nil {
		step = decoded
	}
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// Resolve returns the value at a place in a schema.
func Resolve(root any, steps []string) (any, bool) {
	at := root
	for _, step := range steps {
		switch v := at.(type) {
		case Object:
			if !v.Has(step) {
				return nil, false
			}
			at = v.Get(step)
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}
