package host

import (
	"slices"
	"strconv"
	"strings"
)

// schemaNode is a place in a JSON Schema. The codec asks it what an empty
// table means there and goes down with the value; whether the value fits is
// the engine's to say.
type schemaNode struct {
	alternatives []map[string]any // the schema and those that it is made of
	root         any
}

// schemaAt begins at a schema; known is false if it says nothing.
func schemaAt(schema, root any) (at schemaNode, known bool) {
	object, ok := schema.(map[string]any)
	if !ok {
		return schemaNode{}, false
	}
	at = schemaNode{root: root}
	at.gather(object, 0)
	return at, true
}

// gather follows $ref and the combinators, as far as is sensible.
func (n *schemaNode) gather(object map[string]any, depth int) {
	if depth > 8 || len(n.alternatives) > 32 {
		return
	}
	n.alternatives = append(n.alternatives, object)
	if ref, ok := object["$ref"].(string); ok {
		if target, ok := resolveRef(n.root, ref); ok {
			n.gather(target, depth+1)
		}
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := object[word].([]any)
		for _, e := range list {
			if inner, ok := e.(map[string]any); ok {
				n.gather(inner, depth+1)
			}
		}
	}
}

// resolveRef follows a reference into the same schema: "#", "#/$defs/item".
func resolveRef(root any, ref string) (map[string]any, bool) {
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

// wants reports whether the schema allows one of the types by name.
func (n schemaNode) wants(types ...string) bool {
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

// property is the schema of a field, nil if nothing is said.
func (n schemaNode) property(name string) any {
	for _, object := range n.alternatives {
		if properties, ok := object["properties"].(map[string]any); ok {
			if schema, ok := properties[name]; ok {
				return schema
			}
		}
	}
	for _, object := range n.alternatives {
		if schema, ok := object["additionalProperties"].(map[string]any); ok {
			return schema
		}
	}
	return nil
}

// item is the schema of an element, from 0, nil if nothing is said.
func (n schemaNode) item(i int) any {
	for _, object := range n.alternatives {
		if prefix, ok := object["prefixItems"].([]any); ok && i < len(prefix) {
			return prefix[i]
		}
	}
	for _, object := range n.alternatives {
		if schema, ok := object["items"].(map[string]any); ok {
			return schema
		}
	}
	return nil
}

// schemaOfSchemas says where JSON Schema itself has arrays: {} in Lua after
// "required" is no object. It contains itself.
var schemaOfSchemas = func() map[string]any {
	self := map[string]any{"type": "object"}
	list := map[string]any{"type": "array"}
	schemas := map[string]any{"type": "array", "items": self}
	named := map[string]any{"type": "object", "additionalProperties": self}
	properties := map[string]any{}
	for _, word := range []string{"enum", "examples", "required"} {
		properties[word] = list
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		properties[word] = schemas
	}
	for _, word := range []string{"$defs", "dependentSchemas", "patternProperties"} {
		properties[word] = named
	}
	properties["properties"] = map[string]any{
		"type": "object", "additionalProperties": self,
		"properties": map[string]any{"_scopes": scopesSchema},
	}
	properties["_scopes"] = scopesSchema
	for _, word := range []string{"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "_output"} {
		properties[word] = self
	}
	self["properties"] = properties
	return self
}()

// scopesSchema is how a tool may write _scopes: a list, or a schema of one.
var scopesSchema = map[string]any{
	"anyOf": []any{
		map[string]any{"type": "object", "properties": map[string]any{"const": map[string]any{"type": "array"}, "enum": map[string]any{"type": "array"}}},
	},
}

// callSchema is what a call of a tool looks like: its parameters, and the
// meta-properties that hold lists.
func callSchema(tool any) map[string]any {
	object, _ := tool.(map[string]any)
	properties := map[string]any{}
	if given, ok := object["properties"].(map[string]any); ok {
		for name, schema := range given {
			if !strings.HasPrefix(name, "_") {
				properties[name] = schema
			}
		}
	}
	properties["_scopes"] = map[string]any{"type": "array"}
	properties["_output"] = schemaOfSchemas
	schema := map[string]any{"type": "object", "properties": properties}
	for _, word := range []string{"$defs", "additionalProperties", "allOf", "anyOf", "oneOf"} {
		if v, ok := object[word]; ok {
			schema[word] = v
		}
	}
	return schema
}
