package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/spell"
)

// olderKeywords are accepted beside the keywords of JSON Schema 2020-12: they come from older
// drafts, and from OpenAPI.
var olderKeywords = strings.Fields(`id definitions dependencies additionalItems $recursiveRef $recursiveAnchor
	discriminator example externalDocs xml`)

// Keywords that hold schemas: one, a list of them, or some by name.
var (
	schemaKeywords = strings.Fields(`items contains additionalProperties propertyNames if then else not
		unevaluatedItems unevaluatedProperties contentSchema additionalItems`)
	schemaListKeywords = strings.Fields("prefixItems allOf anyOf oneOf items")
	schemaMapKeywords  = strings.Fields("$defs definitions properties patternProperties dependentSchemas dependencies")
)

// maxKeyword is how long a key may be that is taken for a misspelt keyword.
const maxKeyword = 32

// MisspeltKeywords lists keywords of a schema that mean nothing and all but are one that
// does. Others are notes for people. A keyword that begins with _ is the tool's own.
func MisspeltKeywords(schema any, location ...string) (all []string) {
	object, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	location = slices.Clip(location)
	for _, key := range jsonvalue.SortedKeys(object) {
		v := object[key]
		if slices.Contains(schemaKeywords, key) {
			all = append(all, MisspeltKeywords(v, append(location, key)...)...)
		}
		if list, ok := v.([]any); ok && slices.Contains(schemaListKeywords, key) {
			for i, e := range list {
				all = append(all, MisspeltKeywords(e, append(location, key, strconv.Itoa(i))...)...)
			}
		}
		if named, ok := v.(map[string]any); ok && slices.Contains(schemaMapKeywords, key) {
			for _, name := range jsonvalue.SortedKeys(named) {
				all = append(all, MisspeltKeywords(named[name], append(location, key, name)...)...)
			}
		}
		if IsKeyword(key) || slices.Contains(olderKeywords, key) || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "x-") {
			continue
		}
		hint := meantAsSchema(key, v)
		near := ""
		if len(key) >= 3 && len(key) <= maxKeyword {
			near = spell.DidYouMean(key, keywords)
		}
		if near != "" && hint != resultHint {
			hint = near
		}
		if hint != "" {
			all = append(all, fmt.Sprintf("%sthe keyword %q is not known, and does nothing%s", phrase.PlacePrefix("", location), key, hint))
		}
	}
	return all
}

// typeNames are the values of the keyword type.
var typeNames = strings.Fields("array boolean integer null number object string")

const resultHint = " (the schema of the result is written as _output)"

// meantAsSchema returns a hint for an unknown keyword whose value is a schema, schemas by name or a
// type, or which other formats have; empty for none.
func meantAsSchema(key string, v any) string {
	object, _ := v.(map[string]any)
	named := len(object) > 0
	for _, part := range object {
		named = named && looksLikeSchema(part)
	}
	switch {
	case key == "nullable":
		return ` (write type = { "string", "null" } for what may be null)`
	case isType(v):
		return " (a type is written as type)"
	case !looksLikeSchema(v) && !named:
		return ""
	case strings.HasPrefix(strings.ToLower(key), "output") || strings.HasPrefix(strings.ToLower(key), "return"):
		return resultHint
	case !looksLikeSchema(v):
		return " (parameters by name are written as properties)"
	}
	return " (register what stands in it, or write that in its place)"
}

// looksLikeSchema reports whether a value says what a schema says: of which type it is, or what it
// consists of.
func looksLikeSchema(v any) bool {
	object, _ := v.(map[string]any)
	if isType(object["type"]) {
		return true
	}
	for _, key := range []string{"properties", "patternProperties", "$defs", "parameters"} {
		if _, ok := object[key].(map[string]any); ok {
			return true
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "enum", "prefixItems"} {
		if list, ok := object[key].([]any); ok && len(list) > 0 {
			return true
		}
	}
	_, refers := object["$ref"].(string)
	return refers
}

// isType reports whether a value names a type of JSON, or several.
func isType(v any) bool {
	switch v := v.(type) {
	case string:
		return slices.Contains(typeNames, v)
	case []any:
		return len(v) > 0 && !slices.ContainsFunc(v, func(e any) bool { _, ok := e.(string); return !ok || !isType(e) })
	}
	return false
}

// keywords are the keywords of JSON Schema 2020-12, by its vocabularies.
var keywords = strings.Fields(`
	$id $schema $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment $defs
	prefixItems items contains additionalProperties properties patternProperties dependentSchemas propertyNames
	if then else allOf anyOf oneOf not unevaluatedItems unevaluatedProperties
	type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
	maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired
	title description default deprecated readOnly writeOnly examples
	format contentEncoding contentMediaType contentSchema`)

// IsKeyword reports whether a key of a schema is a keyword of JSON Schema 2020-12.
func IsKeyword(key string) bool { return slices.Contains(keywords, key) }
