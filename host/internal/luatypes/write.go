// Package luatypes writes the tools of a project as annotations for editors, in LuaCATS.
package luatypes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"obelus/engine/plan"
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
