package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/spell"
)

// refKeywords refer to another schema.
var refKeywords = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// describeReference says which reference of a schema leads nowhere, and where it stands; ""
// for any other error.
func describeReference(err error, schema any) string {
	var target string
	what := "leads nowhere"
	if pointer, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		target = pointer.URL
	} else if anchor, ok := errors.AsType[*jsonschema.AnchorNotFoundError](err); ok {
		target = anchor.Reference
	} else if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		target, what = load.URL, "is another document, and a schema must stand by itself"
	} else {
		return ""
	}
	refs := references{named: map[string][]string{}}
	refs.collect(schema, nil)
	i := slices.IndexFunc(refs.all, func(r reference) bool { return r.meansURL(target) })
	if i < 0 {
		return fmt.Sprintf("the reference to %q %s", strings.TrimPrefix(target, schemaURL), what)
	}
	r := refs.all[i]
	message := fmt.Sprintf("%s%s %q %s", phrase.PlacePrefix("", r.location), r.keyword, r.text, what)
	document, _, _ := strings.Cut(r.text, "#")
	if near := spell.Nearest(r.text, refs.targets); near != "" && (document == "" || document == r.text) {
		return message + fmt.Sprintf(" (did you mean %q?)", near)
	}
	if tokens := strings.Split(strings.TrimPrefix(r.text, "#/"), "/"); len(tokens) > 1 && refs.named[tokens[0]+"/"+tokens[1]] != nil {
		keyword, name, at := tokens[0], tokens[1], refs.named[tokens[0]+"/"+tokens[1]]
		return message + fmt.Sprintf(": # is the whole schema, for a parameter the tool's, and %q is defined in %s: move its %s to the top, beside properties",
			name, phrase.Place("", at), keyword)
	}
	return message
}

// reference is one that a schema has.
type reference struct {
	location      []string
	keyword, text string
}

// meansURL reports whether the reference can only be the one that has been made a URL.
func (r reference) meansURL(url string) bool {
	document, fragment, _ := strings.Cut(r.text, "#")
	if fragment != "" {
		return strings.HasSuffix(url, fragment)
	}
	document = strings.TrimLeft(document, "./")
	return document != "" && strings.HasSuffix(url, document)
}

// references are the references of a schema, and their possible targets.
type references struct {
	all     []reference
	targets []string
	// Definitions that are not at the top, as "$defs/name": their places.
	named map[string][]string
}

func (r *references) collect(v any, location []string) {
	location = slices.Clip(location)
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			r.collect(e, append(location, strconv.Itoa(i)))
		}
	case map[string]any:
		for _, key := range jsonvalue.SortedKeys(v) {
			text, isText := v[key].(string)
			switch {
			// These hold no schemas.
			case slices.Contains([]string{"const", "enum", "default", "examples"}, key):
			case slices.Contains(refKeywords, key) && isText:
				r.all = append(r.all, reference{location, key, text})
			case (key == "$anchor" || key == "$dynamicAnchor") && isText:
				r.targets = append(r.targets, "#"+text)
			default:
				r.define(key, v[key], location)
				r.collect(v[key], append(location, key))
			}
		}
	}
}

// define records the definition of a keyword.
func (r *references) define(keyword string, v any, location []string) {
	definitions, ok := v.(map[string]any)
	if !ok || keyword != "$defs" && keyword != "definitions" {
		return
	}
	for _, name := range jsonvalue.SortedKeys(definitions) {
		name = pointerToken(name)
		if len(location) == 0 {
			r.targets = append(r.targets, "#/"+keyword+"/"+name)
		} else if r.named[keyword+"/"+name] == nil {
			r.named[keyword+"/"+name] = location
		}
	}
}
