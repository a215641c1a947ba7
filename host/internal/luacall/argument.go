package luacall

import (
	"maps"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
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
