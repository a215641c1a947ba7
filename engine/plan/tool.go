package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// Tool is a JSON Schema (2020-12) that calls name; its properties are the call's parameters.
// [NewTool] makes it; it is immutable from then on.
type Tool struct {
	Name   string
	Schema any // as it was given, in JSON's values

	// File and Line are where it is defined, for problems; empty and 0 if that is not
	// known. Whoever makes the tool may set them.
	File string
	Line int

	// Made by NewTool: its schema has been compiled into the fields below.
	made bool
	// Of the parameters, meta-properties left out; nil accepts all.
	params   *schema.Schema
	required []string                  // parameters and meta-properties that a call must have
	meta     map[string]*schema.Schema // schemas of a call's own meta-properties
	consts   map[string]any            // values that the host fills in where a call gives none
	// Schemas of the parameters, where some of them have a default.
	defaults map[string]any
	output   *schema.Schema // of the result; nil accepts all
	Result   any            // the schema of output in JSON's values
	activity string         // the activity that it names; "" for the one of its own name
	within   []any          // the _allow of each tool that it replaces
	focus    string         // its _focus; empty for focusFirst
	brought  bool           // a request or a message defines it, and no script
}

// NewTool compiles a tool's schema. Its meta-properties stand in "properties"
// or beside it, and a plain value there means const. It may be made of whatever
// [store.FromGo] takes.
func NewTool(name string, schema any, options ...schema.Option) (*Tool, error) {
	schema, err := store.FromGo(schema, "")
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	t := &Tool{Name: name, Schema: schema, made: true}
	object, ok := schema.(map[string]any)
	if !ok {
		if b, isBool := schema.(bool); isBool && b {
			return t, nil
		}
		return nil, fmt.Errorf("tool %q: its definition must be a JSON Schema object, not %s", name, store.TypeName(schema))
	}
	if err := t.compile(object, options); err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	return t, nil
}

// NewBroughtTool is [NewTool] for a tool that a request or a message of a context defines: a model
// that plans a delegate may call it.
func NewBroughtTool(name string, schema any, options ...schema.Option) (*Tool, error) {
	t, err := NewTool(name, schema, options...)
	if err == nil {
		t.brought = true
	}
	return t, err
}

// Check refuses a tool that would take anything, whatever its schema says.
func (t *Tool) Check() error {
	switch {
	case t == nil:
		return errors.New("there is nothing under its name: make the tool by NewTool")
	case !t.made && t.Schema != nil:
		return errors.New("its schema has not been compiled: make the tool by NewTool")
	}
	return nil
}

func (t *Tool) compile(object map[string]any, options []schema.Option) error {
	params, metas := splitMeta(object)
	properties, _ := object["properties"].(map[string]any)
	for _, name := range jsonvalue.SortedKeys(properties) {
		if _, twice := object[name]; twice && strings.HasPrefix(name, "_") {
			return fmt.Errorf("%s stands in its properties and beside them: say it once", name)
		}
	}
	var err error
	if len(params) > 0 {
		if t.params, err = schema.New(params, options...); err != nil {
			if misspelt := schema.MisspeltKeywords(params); len(misspelt) > 0 {
				err = fmt.Errorf("%w; %s", err, misspelt[0])
			}
			return err
		}
	}
	if properties, _ := params["properties"].(map[string]any); hasDefaults(properties) {
		t.defaults = properties
	}
	t.required, _ = requiredOf(object)
	t.meta, t.consts = map[string]*schema.Schema{}, paramConsts(params)
	for _, name := range jsonvalue.SortedKeys(metas) {
		def := metas[name]
		if name == "_output" {
			t.Result = withDefinitions(def, object)
			if t.output, err = schema.New(t.Result, options...); err != nil {
				return fmt.Errorf("_output: %w", err)
			}
			continue
		}
		def = asConst(name, def)
		if name == focusProperty {
			if t.focus, _ = def.(map[string]any)["const"].(string); t.focus != focusFirst && t.focus != focusOnly {
				return fmt.Errorf("_focus is %q, for a model that sees the scopes of a call first, or %q, for one that sees nothing else", focusFirst, focusOnly)
			}
			continue
		}
		if t.meta[name], err = schema.New(withDefinitions(def, object), options...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if value, ok := def.(map[string]any)["const"]; ok {
			t.consts[name] = value
		}
	}
	switch activity := t.consts["_activity"].(type) {
	case string:
		t.activity = activity
	case nil:
	default:
		return errors.New("_activity must be a string")
	}
	return t.checkAllow()
}

// OutputSchema is the schema of the result in a tool's schema, nil if it has none. The tool's $defs
// are available to it.
func OutputSchema(tool any) any {
	object, _ := tool.(map[string]any)
	if def, ok := object["_output"]; ok {
		return withDefinitions(def, object)
	}
	properties, _ := object["properties"].(map[string]any)
	return withDefinitions(properties["_output"], object)
}

// withDefinitions is the schema of a meta-property, the result among them, with what its
// tool defines. Its own definitions go before.
func withDefinitions(def any, tool map[string]any) any {
	object, ok := def.(map[string]any)
	shared, ok2 := tool["$defs"].(map[string]any)
	if !ok || !ok2 {
		return def
	}
	own, _ := object["$defs"].(map[string]any)
	shared = maps.Clone(shared)
	maps.Copy(shared, own)
	object = maps.Clone(object)
	object["$defs"] = shared
	return object
}

// parameters are those that it declares by name.
func (t *Tool) parameters() []string {
	object, _ := t.Schema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	return slices.DeleteFunc(jsonvalue.SortedKeys(properties), func(name string) bool { return strings.HasPrefix(name, "_") })
}

// declares reports whether the tool declares a parameter or a meta-property.
func (t *Tool) declares(name string) bool {
	if strings.HasPrefix(name, "_") {
		return t.meta[name] != nil
	}
	if t.params == nil {
		return false
	}
	property, _ := t.params.Property(name)
	return property != nil
}

// Correctable refuses names that a person can't set: a meta-property, and a parameter that neither
// the tool declares nor the call has, if it resembles one of those. Other names are free, as in a
// plan.
func (t *Tool) Correctable(names []string, call map[string]any) error {
	object, _ := t.Schema.(map[string]any)
	for _, name := range names {
		if strings.HasPrefix(name, "_") {
			return fmt.Errorf("%s can't be corrected: only parameters can", name)
		}
		if _, has := call[name]; has || t.declares(name) || object["additionalProperties"] == true {
			continue
		}
		if hint := spell.DidYouMean(name, append(t.parameters(), jsonvalue.SortedKeys(call)...)); hint != "" {
			return fmt.Errorf("unknown parameter %q%s", name, hint)
		}
	}
	return nil
}

// Accepts checks arguments against the tool's schema, and against the limits of the log.
func (t *Tool) Accepts(arguments map[string]any) error {
	if err := store.CheckDepth(arguments); err != nil || t.params == nil {
		return err
	}
	return t.params.Validate(arguments, "")
}

// Lists is [schema.Schema.Lists] for a call of the tool: its parameters, its scopes, and the result
// that it may bring. A nil Tool knows the scopes alone.
func (t *Tool) Lists(call map[string]any) map[string]any {
	if !schema.HoldsEmptyObject(call) {
		return call
	}
	listed, parameters := map[string]any{}, map[string]any{}
	for name, v := range call {
		if strings.HasPrefix(name, "_") {
			listed[name] = v
		} else {
			parameters[name] = v
		}
	}
	if scopes, ok := call["_scopes"].(map[string]any); ok && len(scopes) == 0 {
		listed["_scopes"] = []any{}
	}
	if t != nil {
		if given, ok := listed["_output"]; ok {
			listed["_output"] = t.output.Lists(given)
		}
		parameters, _ = t.params.Lists(parameters).(map[string]any)
	}
	maps.Copy(listed, parameters)
	return listed
}

// splitMeta takes a tool's schema apart: what concerns the parameters, and the
// definitions of meta-properties, from "properties" or beside it.
func splitMeta(object map[string]any) (params, metas map[string]any) {
	params, metas = map[string]any{}, map[string]any{}
	for key, v := range object {
		switch {
		case strings.HasPrefix(key, "_"):
			metas[key] = v
		case key == "properties":
			props, ok := v.(map[string]any)
			if !ok {
				params[key] = v
				continue
			}
			plain := map[string]any{}
			for name, def := range props {
				if strings.HasPrefix(name, "_") {
					metas[name] = def
				} else {
					plain[name] = def
				}
			}
			params[key] = plain
		default:
			params[key] = v
		}
	}
	if required, ok := requiredOf(object); ok {
		kept := []any{}
		for _, name := range required {
			if !strings.HasPrefix(name, "_") {
				kept = append(kept, name)
			}
		}
		params["required"] = kept
	}
	return params, metas
}

// ToolParts takes a tool's schema apart: the schema of its parameters, and the schemas of the
// meta-properties of its calls, where a plain value has become a const. The schema of its result is
// not among them: see [OutputSchema].
func ToolParts(tool map[string]any) (parameters, meta map[string]any) {
	parameters, meta = splitMeta(tool)
	delete(meta, "_output")
	for name, def := range meta {
		meta[name] = withDefinitions(asConst(name, def), tool)
	}
	return parameters, meta
}

// paramConsts are the parameters that can only have one value, as a call has it.
func paramConsts(params map[string]any) map[string]any {
	consts := map[string]any{}
	properties, _ := params["properties"].(map[string]any)
	for name, def := range properties {
		if def, ok := def.(map[string]any); ok {
			if value, ok := def["const"]; ok {
				consts[name] = Literal(value)
			}
		}
	}
	return consts
}

// asConst reads a meta-property's definition: a schema, or a plain value that
// stands for itself.
func asConst(name string, def any) any {
	object, isObject := def.(map[string]any)
	if isObject && (len(object) == 0 || slices.ContainsFunc(jsonvalue.SortedKeys(object), schema.IsKeyword)) {
		return def
	}
	if b, ok := def.(bool); ok && b && name != "_delegate" {
		return map[string]any{}
	}
	return map[string]any{"const": def}
}

func requiredOf(object map[string]any) ([]string, bool) {
	list, ok := object["required"].([]any)
	var names []string
	for _, e := range list {
		if name, ok := e.(string); ok {
			names = append(names, name)
		}
	}
	return names, ok
}

// Suggested is a value that the tool names for a meta-property of its calls: its
// const, its default or the first of its enum; nil if it leaves the property to
// them.
func (t *Tool) Suggested(property string) any {
	object, _ := t.Schema.(map[string]any)
	_, metas := splitMeta(object)
	def, _ := asConst(property, metas[property]).(map[string]any)
	for _, keyword := range []string{"const", "default"} {
		if value, ok := def[keyword]; ok {
			return value
		}
	}
	if list, _ := def["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	return nil
}

// resultPaths are where a call that is made by itself leaves its result, where its tool
// does not say.
var resultPaths = []string{store.Dagger + "result", store.Dagger + "state.result"}

// ResultPath is the output path of a single call that is made to try a tool: the path that the tool
// prescribes, else the first that it accepts. A call without a tool has one too.
func (t *Tool) ResultPath() string {
	if t == nil {
		return resultPaths[0]
	}
	const property = "_outputPath"
	if path, ok := t.Suggested(property).(string); ok {
		return path
	}
	for _, path := range resultPaths {
		if allowed := t.meta[property]; allowed == nil || allowed.Validate(path, property) == nil {
			return path
		}
	}
	return resultPaths[0]
}
