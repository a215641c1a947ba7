package luatypes

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"obelus/host/internal/codec"
)

// maxTypeNesting is the depth to which a schema is followed.
const maxTypeNesting = 8

// gathered returns a schema joined with the schemas of its $ref and its allOf.
func (w *typeWriter) gathered(schema map[string]any) map[string]any {
	all := map[string]any{}
	w.gather(all, schema, 0)
	return all
}

func (w *typeWriter) gather(all, schema map[string]any, depth int) {
	if depth > maxTypeNesting {
		return
	}
	if ref, ok := schema["$ref"].(string); ok {
		if target, ok := codec.ResolveRef(w.root, ref); ok {
			w.gather(all, target, depth+1)
		}
	}
	list, _ := schema["allOf"].([]any)
	for _, e := range list {
		inner, _ := e.(map[string]any)
		w.gather(all, inner, depth+1)
	}
	for word, v := range schema {
		switch word {
		case "properties":
			before, _ := all[word].(map[string]any)
			now, _ := v.(map[string]any)
			properties := map[string]any{}
			maps.Copy(properties, before)
			maps.Copy(properties, now)
			all[word] = properties
		case "required":
			before, _ := all[word].([]any)
			now, _ := v.([]any)
			all[word] = slices.Concat(before, now)
		case "$ref", "allOf":
		default:
			all[word] = v
		}
	}
}

func isObject(schema map[string]any) bool {
	_, properties := schema["properties"].(map[string]any)
	return properties && (schema["type"] == nil || schema["type"] == "object")
}

// choosesOne reports whether a schema has alternatives, which no class can have.
func choosesOne(schema map[string]any) bool {
	return schema["anyOf"] != nil || schema["oneOf"] != nil || schema["enum"] != nil || schema["const"] != nil
}

// typeOf returns the type of the values that a schema allows. name is the name of a class for it,
// if it needs one.
func (w *typeWriter) typeOf(schema any, name string, depth int) string {
	object, ok := schema.(map[string]any)
	if !ok || depth > maxTypeNesting {
		return "any"
	}
	if class := w.referred(object); class != "" {
		return class
	}
	object = w.gathered(object)
	if v, ok := object["const"]; ok {
		return typeLiteral(v)
	}
	var types []string
	list, enum := object["enum"].([]any)
	for _, v := range list {
		types = append(types, typeLiteral(v))
	}
	if enum {
		return union(types)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		list, _ := object[word].([]any)
		for _, e := range list {
			types = append(types, w.typeOf(e, name, depth+1))
		}
	}
	if len(types) > 0 {
		return union(types)
	}
	switch t := object["type"].(type) {
	case string:
		return w.named(t, object, name, depth)
	case []any:
		for _, e := range t {
			text, _ := e.(string)
			types = append(types, w.named(text, object, name, depth))
		}
		return union(types)
	}
	if object["properties"] != nil {
		return w.named("object", object, name, depth)
	}
	if object["items"] != nil || object["prefixItems"] != nil {
		return w.named("array", object, name, depth)
	}
	return "any"
}

// referred returns the class of the object that a schema refers to, "" if there is none. The class
// has its name before it is written, since it may refer to itself.
func (w *typeWriter) referred(schema map[string]any) string {
	ref, ok := schema["$ref"].(string)
	if !ok || w.refs[ref] != "" {
		return w.refs[ref]
	}
	target, ok := codec.ResolveRef(w.root, ref)
	if !ok {
		return ""
	}
	all := w.gathered(target)
	if !isObject(all) {
		return ""
	}
	w.refs[ref] = w.class(w.current + "." + ref[strings.LastIndex(ref, "/")+1:])
	w.object(w.refs[ref], "", all)
	return w.refs[ref]
}

// named returns the type for one of JSON Schema's types.
func (w *typeWriter) named(typ string, schema map[string]any, name string, depth int) string {
	switch typ {
	case "string", "number", "integer", "boolean":
		return typ
	case "null":
		return "nil"
	case "array":
		item := w.typeOf(schema["items"], name+".item", depth+1)
		if strings.ContainsAny(item, "|?") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 {
			class := w.class(name)
			w.object(class, "", schema)
			return class
		}
		if more, ok := schema["additionalProperties"].(map[string]any); ok {
			return "table<string, " + w.typeOf(more, name+".value", depth+1) + ">"
		}
		return "table"
	}
	return "any"
}

// typeLiteral returns a constant as a type.
func typeLiteral(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		if _, err := v.Int64(); err != nil {
			return "number"
		}
		return v.String()
	case nil:
		return "nil"
	}
	return "table"
}

func union(types []string) string {
	var all []string
	for _, t := range types {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	if len(all) == 0 || slices.Contains(all, "any") {
		return "any"
	}
	return strings.Join(all, "|")
}

func optionalType(t string) string {
	if t == "any" || strings.HasSuffix(t, "|nil") {
		return t
	}
	return t + "|nil"
}
