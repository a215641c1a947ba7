package codec

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// schemaNode is a place in a JSON Schema. The codec asks it about empty tables and long integers,
// and descends with the value. The engine decides whether the value is valid.
type schemaNode struct {
	alternatives []map[string]any // the schema and the schemas that it is composed of
	root         any
}

// schemaAt returns the node of a schema; known is false if it is not an object. Alternatives count
// if they may describe t, which is nil for any value but a table.
func schemaAt(schema, root any, t *lua.LTable) (at schemaNode, known bool) {
	object, ok := schema.(map[string]any)
	if !ok {
		return schemaNode{}, false
	}
	at = schemaNode{root: root}
	at.addAlternatives(object, t, 0)
	return at, true
}

// addAlternatives follows $ref and the combinators, to a limited depth.
func (n *schemaNode) addAlternatives(object map[string]any, t *lua.LTable, depth int) {
	if depth > 8 || len(n.alternatives) > 32 {
		return
	}
	n.alternatives = append(n.alternatives, object)
	if target, ok := n.resolve(object); ok {
		n.addAlternatives(target, t, depth+1)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := object[word].([]any)
		for _, e := range list {
			if inner, ok := e.(map[string]any); ok && (word == "allOf" || n.mayDescribe(inner, t, 0)) {
				n.addAlternatives(inner, t, depth+1)
			}
		}
	}
}

func (n *schemaNode) resolve(object map[string]any) (target map[string]any, ok bool) {
	ref, ok := object["$ref"].(string)
	if !ok {
		return nil, false
	}
	return ResolveRef(n.root, ref)
}

// mayDescribe reports whether a schema may describe a table, by the fields that the table has and
// lacks.
func (n *schemaNode) mayDescribe(object map[string]any, t *lua.LTable, depth int) bool {
	if t == nil || depth > 8 {
		return true
	}
	if target, ok := n.resolve(object); ok && !n.mayDescribe(target, t, depth+1) {
		return false
	}
	parts, _ := object["allOf"].([]any)
	for _, part := range parts {
		if part, ok := part.(map[string]any); ok && !n.mayDescribe(part, t, depth+1) {
			return false
		}
	}
	required, _ := object["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok && t.RawGetString(name) == lua.LNil && !wasNull(t, name) {
			return false
		}
	}
	properties, _ := object["properties"].(map[string]any)
	for name, schema := range properties {
		field, ok := schema.(map[string]any)
		if v := t.RawGetString(name); ok && v != lua.LNil && !mayAllow(field, v) {
			return false
		}
	}
	return true
}

// wasNull reports whether a field was null, which Lua does not distinguish from an absent one.
func wasNull(t *lua.LTable, name string) bool {
	k := keptOf(t)
	return k != nil && !k.array && slices.Contains(k.nulls, name)
}

// mayAllow reports whether a field's schema may describe a value. It does not look into tables.
func mayAllow(field map[string]any, v lua.LValue) bool {
	values, some := field["enum"].([]any)
	if value, one := field["const"]; one {
		values, some = []any{value}, true
	}
	if some && !slices.ContainsFunc(values, func(value any) bool { return mayEqual(v, value) }) {
		return false
	}
	node, types := schemaNode{alternatives: []map[string]any{field}}, []string(nil)
	switch v := v.(type) {
	case lua.LBool:
		types = []string{"boolean"}
	case lua.LNumber:
		types = []string{"integer", "number"}
	case lua.LString:
		types = []string{"string"}
		if len(v) >= 16 && isBigInteger(string(v)) {
			types = []string{"string", "integer", "number"}
		}
	case *lua.LTable:
		types = []string{"array", "object"}
	}
	return field["type"] == nil || types == nil || node.allows(types...)
}

// mayEqual reports whether a value of Lua may equal one of JSON. It does not look into tables.
func mayEqual(v lua.LValue, value any) bool {
	switch value := value.(type) {
	case string:
		return v == lua.LString(value)
	case bool:
		return v == lua.LBool(value)
	case json.Number:
		f, err := value.Float64()
		return err == nil && v == lua.LNumber(f) || v == lua.LString(value)
	case nil:
		return v.Type() == lua.LTUserData
	}
	return v.Type() == lua.LTTable
}

// ResolveRef returns the schema that a reference into root refers to: "#", "#/$defs/item".
func ResolveRef(root any, ref string) (map[string]any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := root
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if segment == "" {
			continue
		}
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		switch v := at.(type) {
		case map[string]any:
			at = v[segment]
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	object, ok := at.(map[string]any)
	return object, ok
}

// wantsNumber reports whether digits stand for a number, by the first alternative that allows a
// number or a text.
func (n schemaNode) wantsNumber() bool {
	for _, object := range n.alternatives {
		one := schemaNode{alternatives: []map[string]any{object}}
		if text, number := one.allows("string"), one.allows("integer", "number"); text || number {
			return number && !text
		}
	}
	return false
}

// allows reports whether the schema allows one of the types by name.
func (n schemaNode) allows(types ...string) bool {
	for _, object := range n.alternatives {
		switch t := object["type"].(type) {
		case string:
			if slices.Contains(types, t) {
				return true
			}
		case []any:
			for _, e := range t {
				if name, ok := e.(string); ok && slices.Contains(types, name) {
					return true
				}
			}
		case nil:
			if slices.Contains(types, "array") && (object["items"] != nil || object["prefixItems"] != nil) {
				return true
			}
			if slices.Contains(types, "object") && object["properties"] != nil {
				return true
			}
		}
	}
	return false
}

// property returns the schema of a field, or nil.
func (n schemaNode) property(name string) any {
	return n.collect(func(object map[string]any) (any, bool) {
		properties, _ := object["properties"].(map[string]any)
		schema, ok := properties[name]
		if !ok {
			schema, ok = object["additionalProperties"].(map[string]any)
		}
		return schema, ok
	})
}

// item returns the schema of an element, from 0, or nil.
func (n schemaNode) item(i int) any {
	return n.collect(func(object map[string]any) (any, bool) {
		if prefix, ok := object["prefixItems"].([]any); ok && i < len(prefix) {
			return prefix[i], true
		}
		schema, ok := object["items"].(map[string]any)
		return schema, ok
	})
}

// collect returns the schemas that the alternatives have for a part of the value, joined by anyOf.
func (n schemaNode) collect(says func(object map[string]any) (any, bool)) any {
	var one any
	var several []any
	for _, object := range n.alternatives {
		schema, ok := says(object)
		switch {
		case !ok:
		case one == nil:
			one = schema
		case several == nil:
			several = []any{one, schema}
		default:
			several = append(several, schema)
		}
	}
	if several == nil {
		return one
	}
	return map[string]any{"anyOf": several}
}
