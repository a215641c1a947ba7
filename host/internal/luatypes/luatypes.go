// Package luatypes writes the tools of a project as annotations for editors, in LuaCATS.
package luatypes

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"obelus/engine/plan"
	"obelus/host/internal/codec"
	"obelus/host/internal/luatext"
)

// Write returns annotations of a registry's tools, in LuaCATS, as editors read them: for each tool
// a class tool.NAME with the fields of its call and, if its schema describes a result,
// tool.NAME.result. Overloads of Activity.register and test.activity take the tools' names.
func Write(registry *plan.Registry) []byte {
	w := &typeWriter{classes: map[string]bool{}}
	w.line("---@meta _\n\n-- Written by obelus types, which writes it again: changes are lost.")
	var registers, activities []string
	names := registry.Names()
	classes, results := make([]string, len(names)), make([]string, len(names))
	for i, name := range names { // named before the classes within others
		classes[i] = w.class("tool." + name)
		results[i] = w.class(classes[i] + ".result")
	}
	for i, name := range names {
		tool, _ := registry.Tool(name)
		class, result := classes[i], w.tool(classes[i], results[i], tool.Schema)
		fn := fmt.Sprintf("fn: fun(call: %s, context: obelus.Context, tool: table, key: string): %s, any", class, optionalType(result))
		literal := strconv.Quote(name)
		registers = append(registers,
			fmt.Sprintf("---@field register fun(name: %s, %s)", literal, fn),
			fmt.Sprintf("---@field register fun(name: %s, options: obelus.ActivityOptions, %s)", literal, fn))
		activities = append(activities, fmt.Sprintf("---@field activity fun(name: %s, call?: %s, context?: obelus.Context): %s, any, string?", literal, class, optionalType(result)))
	}
	if len(registers) > 0 {
		w.line("\n---@class obelus.Activity\n" + strings.Join(registers, "\n"))
		w.line("\n---@class obelus.test\n" + strings.Join(activities, "\n"))
	}
	return []byte(w.text.String())
}

// typeWriter writes classes for JSON Schemas.
type typeWriter struct {
	text    strings.Builder
	classes map[string]bool   // names in use
	current string            // class of the tool that is being written
	refs    map[string]string // classes of the tool's definitions, by $ref
	root    any               // the tool's schema
}

func (w *typeWriter) line(text string) { w.text.WriteString(text + "\n") }

// noClassName matches characters that the name of a class can't have. It is compiled on first use,
// since a pattern with all letters takes long.
var noClassName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^\pL\pN_.-]+`) })

// class returns a name that is not in use, and reserves it.
func (w *typeWriter) class(name string) string {
	name = noClassName().ReplaceAllString(name, "_")
	free := name
	for i := 2; w.classes[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	w.classes[free] = true
	return free
}

// tool writes the class of a tool's call and the type of its result, and returns the name of the
// latter.
func (w *typeWriter) tool(class, result string, schema any) string {
	w.current, w.refs, w.root = class, map[string]string{}, schema
	object, _ := schema.(map[string]any)
	w.object(class, "obelus.Call", w.gathered(object))
	output := plan.OutputSchema(schema)
	if output == nil {
		return "any"
	}
	object, _ = output.(map[string]any)
	if all := w.gathered(object); isObject(all) && !choosesOne(all) {
		w.object(result, "", all)
		return result
	}
	text := w.typeOf(output, result, 0)
	w.line("\n" + comment(object) + "---@alias " + result + " " + text)
	return result
}

// object writes the class of an object.
func (w *typeWriter) object(class, parent string, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if parent != "" && strings.HasPrefix(name, "_") {
			continue // the protocol's own
		}
		property, _ := properties[name].(map[string]any)
		mark := "?"
		if slices.Contains(required, any(name)) {
			mark = ""
		}
		field := name + mark
		if !luatext.IsName(name) {
			field = "[" + strconv.Quote(name) + "]"
		}
		typ := w.typeOf(properties[name], class+"."+name, 1)
		if !luatext.IsName(name) && mark != "" {
			typ = optionalType(typ)
		}
		fields = append(fields, strings.TrimRight("---@field "+field+" "+typ+" "+description(property), " "))
	}
	if more := schema["additionalProperties"]; more != nil && more != false && parent == "" {
		fields = append(fields, "---@field [string] "+w.typeOf(more, class+".value", 1))
	}
	if parent != "" {
		parent = ": " + parent
	}
	w.line("\n" + comment(schema) + "---@class " + class + parent)
	for _, field := range fields {
		w.line(field)
	}
}

// comment returns a description as a line above a class.
func comment(schema map[string]any) string {
	if text := description(schema); text != "" {
		return "---" + text + "\n"
	}
	return ""
}

// description returns a schema's description on one line, as annotations need it.
func description(schema map[string]any) string {
	text, _ := schema["description"].(string)
	text = strings.Join(strings.Fields(text), " ")
	if strings.HasPrefix(text, "@") { // else it would be read as a tag
		text = " " + text
	}
	return text
}

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
