package luacall

import (
	"maps"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// OptionalObject returns a copy of an argument as CheckObject does, empty if it is left out.
func OptionalObject(s *sandbox.State, L *lua.LState, arg int, what string, tool *plan.Tool) map[string]any {
	object := map[string]any{}
	if L.Get(arg) == lua.LNil {
		return object
	}
	maps.Copy(object, CheckObject(s, L, arg, L.CheckTable(arg), what, tool))
	return object
}

// CheckObject returns an argument that must be an object: a call of the tool, or any object if tool
// is nil.
func CheckObject(s *sandbox.State, L *lua.LState, arg int, v lua.LValue, what string, tool *plan.Tool) map[string]any {
	var value any
	var err error
	if tool != nil {
		value, err = FromLua(s, v, tool, what)
	} else {
		value, err = s.FromLua(v, what)
	}
	if err != nil {
		L.ArgError(arg, err.Error())
	}
	object, ok := value.(map[string]any)
	if !ok {
		L.ArgError(arg, what+" must be an object, not "+store.Describe(value))
	}
	return object
}

// FromLua returns the JSON value of a call of a tool, which may be nil.
func FromLua(s *sandbox.State, v lua.LValue, tool *plan.Tool, place string) (any, error) {
	var schema any
	if tool != nil {
		schema = callSchema(tool.Schema)
	}
	value, err := s.Encode(v, schema, place)
	if call, ok := value.(map[string]any); ok {
		return tool.Lists(call), err
	}
	return value, err
}

// definitionSchema says at which places a definition of a tool, or a JSON Schema, holds arrays: {}
// in Lua after "required" is one, and after "default" where the definition is one of an array.
const definitionSchema = `{"type": ["object", "boolean"],
	"if": {"properties": {"type": {"const": "array"}}, "required": ["type"]},
	"then": {"properties": {"const": {"type": "array"}, "default": {"type": "array"}}},
	"properties": {
		"$defs": {"$ref": "#/$defs/named"}, "dependentSchemas": {"$ref": "#/$defs/named"}, "patternProperties": {"$ref": "#/$defs/named"},
		"properties": {"$ref": "#/$defs/named", "properties": {"_scopes": {"$ref": "#/$defs/scopes"}}},
		"allOf": {"$ref": "#/$defs/list"}, "anyOf": {"$ref": "#/$defs/list"}, "oneOf": {"$ref": "#/$defs/list"}, "prefixItems": {"$ref": "#/$defs/list"},
		"additionalProperties": {"$ref": "#/$defs/tool"}, "contains": {"$ref": "#/$defs/tool"}, "else": {"$ref": "#/$defs/tool"},
		"if": {"$ref": "#/$defs/tool"}, "items": {"$ref": "#/$defs/tool"}, "not": {"$ref": "#/$defs/tool"}, "propertyNames": {"$ref": "#/$defs/tool"},
		"then": {"$ref": "#/$defs/tool"}, "unevaluatedItems": {"$ref": "#/$defs/tool"}, "unevaluatedProperties": {"$ref": "#/$defs/tool"},
		"enum": {"type": "array"}, "examples": {"type": "array"}, "required": {"type": "array"},
		"dependentRequired": {"additionalProperties": {"type": "array"}},
		"_output": {"$ref": "#/$defs/tool"}, "_scopes": {"$ref": "#/$defs/scopes"}
	}}`

// RequestSchema says at which places a request holds arrays.
var RequestSchema = sync.OnceValue(func() *schema.Schema {
	return mustSchema(`{
		"properties": {
			"context": {"type": "array", "items": {"properties": {
				"plan": {"type": "array", "items": {"properties": {"_scopes": {"type": "array"}}}},
				"schema": {"$ref": "#/$defs/tool"},
				"tool": {"$ref": "#/$defs/named"}}}},
			"schema": {"$ref": "#/$defs/tool"},
			"tools": {"$ref": "#/$defs/named"}
		}`)
})

// Listed returns [schema.Schema.Lists] of a value. The schema is compiled only for a value with
// something empty in it, as few have: compiling takes longer than everything else in loading a
// small project.
func Listed(v any, schema func() *schema.Schema) any {
	if !holdsEmptyObject(v) {
		return v
	}
	return schema().Lists(v)
}

func holdsEmptyObject(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if holdsEmptyObject(e) {
				return true
			}
		}
		return len(v) == 0
	case []any:
		return slices.ContainsFunc(v, holdsEmptyObject)
	}
	return false
}

// ToolSchema says at which places a definition of a tool holds arrays.
var ToolSchema = sync.OnceValue(func() *schema.Schema { return mustSchema(`{"$ref": "#/$defs/tool"`) })

// mustSchema compiles a schema from the beginning of its JSON object, to which it adds the
// definitions.
func mustSchema(open string) *schema.Schema {
	v, err := store.DecodeJSON([]byte(open + `, "$defs": {
		"tool": ` + definitionSchema + `,
		"named": {"additionalProperties": {"$ref": "#/$defs/tool"}},
		"list": {"type": "array", "items": {"$ref": "#/$defs/tool"}},
		"scopes": {"properties": {"const": {"type": "array"}, "enum": {"type": "array"}}}}}`))
	if err != nil {
		panic(err)
	}
	schema, err := schema.New(v)
	if err != nil {
		panic(err)
	}
	return schema
}

// callSchema returns the schema of a tool's calls: its parameters, and its result.
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
	if output := plan.OutputSchema(tool); output != nil { // for a call that has its result already
		properties["_output"] = output
	}
	schema := map[string]any{"type": "object", "properties": properties}
	for _, word := range []string{"$defs", "$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "if", "then", "else"} {
		if v, ok := object[word]; ok {
			schema[word] = v
		}
	}
	return schema
}
