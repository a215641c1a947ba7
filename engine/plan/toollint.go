package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// Problems lists the faults of a tool's valid schema: keywords that can only be misspelt, as
// warnings, and defaults that break the schema of their parameter.
func (t *Tool) Problems() (all []Problem) {
	object, ok := t.Schema.(map[string]any)
	if !ok {
		return nil
	}
	add := func(severity, message string) {
		all = append(all, Problem{File: t.File, Line: t.Line, Severity: severity, Code: CodeSchema, Message: fmt.Sprintf("tool %q: %s", t.Name, message)})
	}
	params, metas := splitMeta(object)
	for _, message := range slices.Concat(schema.MisspeltKeywords(params), schema.MisspeltKeywords(metas["_output"], "_output")) {
		add(SeverityWarning, message)
	}
	properties, _ := params["properties"].(map[string]any)
	for _, message := range slices.Concat(misspeltMetas(metas), misspeltRequired(params["required"], properties)) {
		add(SeverityWarning, message)
	}
	if t.params != nil {
		for _, err := range wrongDefaults(t.params, properties, nil) {
			add(SeverityError, err.Error())
		}
	}
	return all
}

// misspeltMetas are meta-properties of a tool that can only be meant for one that is known: others
// are the tool's own.
func misspeltMetas(metas map[string]any) (messages []string) {
	known := append([]string{"_activity", allowProperty, focusProperty}, metaProperties...)
	for _, name := range jsonvalue.SortedKeys(metas) {
		if i := slices.IndexFunc(known, func(other string) bool { return isMisspelling(name, other) }); i >= 0 && !slices.Contains(known, name) {
			messages = append(messages, fmt.Sprintf("%s means nothing here (did you mean %q?)", name, known[i]))
		}
	}
	return messages
}

// misspeltRequired are required parameters that can only be meant for one that is declared.
func misspeltRequired(required any, properties map[string]any) (messages []string) {
	names, _ := required.([]any)
	for _, name := range names {
		name, _ := name.(string)
		if _, ok := properties[name]; ok || name == "" || strings.HasPrefix(name, "_") {
			continue
		}
		if near := spell.Nearest(name, jsonvalue.SortedKeys(properties)); near != "" {
			messages = append(messages, fmt.Sprintf("it requires %q, which it does not declare (did you mean %q?)", name, near))
		}
	}
	return messages
}

// wrongDefaults lists the defaults of properties that the schema of the object, which holds
// them, refuses.
func wrongDefaults(s *schema.Schema, properties map[string]any, location []string) (errs []error) {
	for _, name := range jsonvalue.SortedKeys(properties) {
		definition, _ := properties[name].(map[string]any)
		property, _ := s.Property(name)
		if definition == nil || property == nil {
			continue
		}
		at := append(slices.Clip(location), name)
		inner, _ := definition["properties"].(map[string]any)
		if v, ok := definition["default"]; ok {
			if object, ok := v.(map[string]any); ok {
				v = fillDefaults(inner, object)
			}
			if err := property.Validate(v, phrase.Place("", at)); err != nil {
				errs = append(errs, fmt.Errorf("the default breaks its schema: %w", err))
			}
		}
		errs = append(errs, wrongDefaults(property, inner, at)...)
	}
	return errs
}

// fillDefaults gives an object that has the default of each property that it lacks. So have
// the objects in it that are written out.
func fillDefaults(properties, object map[string]any) map[string]any {
	filled := object
	for _, name := range jsonvalue.SortedKeys(properties) {
		definition, _ := properties[name].(map[string]any)
		v, given := object[name]
		if !given {
			standard, ok := definition["default"]
			if !ok {
				continue
			}
			v = Literal(standard)
		}
		changed := !given
		if inner, ok := v.(map[string]any); ok {
			nested, _ := definition["properties"].(map[string]any)
			whole := fillDefaults(nested, inner)
			changed = changed || !jsonvalue.SameObject(inner, whole)
			v = whole
		}
		if !changed {
			continue
		}
		if jsonvalue.SameObject(filled, object) {
			filled = maps.Clone(object)
		}
		filled[name] = v
	}
	return filled
}

// hasDefaults reports whether fillDefaults may have something to do.
func hasDefaults(properties map[string]any) bool {
	for _, definition := range properties {
		definition, _ := definition.(map[string]any)
		inner, _ := definition["properties"].(map[string]any)
		if _, ok := definition["default"]; ok || hasDefaults(inner) {
			return true
		}
	}
	return false
}

// SchemaProblems lists the faults of the schemas that a request brings, and of the tools that its
// calls name, as [Tool.Problems] does.
func (r *Request) SchemaProblems(registry *Registry) (all []Problem) {
	registry = (&planCompiler{}).tools(r, registry)
	names := map[string]bool{}
	for _, src := range r.Calls {
		call, _ := src.Call.(map[string]any)
		if name, ok := call["_tool"].(string); ok {
			names[name] = true
		}
	}
	for name := range r.Tools {
		names[name] = true
	}
	warn := func(where string, definition any) {
		for _, message := range schema.MisspeltKeywords(definition) {
			all = append(all, Problem{Severity: SeverityWarning, Code: CodeSchema, Message: where + message})
		}
	}
	warn("schema: ", r.Schema)
	for i, m := range r.Context {
		warn(fmt.Sprintf("context message %d: schema: ", i+1), m.Schema)
		if definitions, ok := m.Data.Value.(map[string]any); ok && m.Type == store.TypeTool {
			for name := range definitions {
				names[name] = true
			}
		}
	}
	for _, name := range jsonvalue.SortedKeys(names) {
		if tool := registry.Tools[name]; tool != nil {
			all = append(all, tool.Problems()...)
		}
	}
	for i := range all {
		if all[i].File == "" {
			all[i].File = r.Name
		}
	}
	return all
}
