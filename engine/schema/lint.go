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
	nullable discriminator example externalDocs xml`)

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
		if len(key) < 3 || len(key) > maxKeyword || IsKeyword(key) || slices.Contains(olderKeywords, key) || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "x-") {
			continue
		}
		if hint := spell.DidYouMean(key, keywords); hint != "" {
			all = append(all, fmt.Sprintf("%sthe keyword %q is not known, and does nothing%s", phrase.PlacePrefix("", location), key, hint))
		}
	}
	return all
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
