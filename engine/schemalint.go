package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// olderKeywords are known beside those of JSON Schema 2020-12: those of older drafts, and of
// OpenAPI.
var olderKeywords = strings.Fields(`id definitions dependencies additionalItems $recursiveRef $recursiveAnchor
	nullable discriminator example externalDocs xml`)

// Keywords that hold schemas: one, a list of them, or some by name.
var (
	schemaKeywords = strings.Fields(`items contains additionalProperties propertyNames if then else not
		unevaluatedItems unevaluatedProperties contentSchema additionalItems`)
	schemaListKeywords = strings.Fields("prefixItems allOf anyOf oneOf items")
	schemaMapKeywords  = strings.Fields("$defs definitions properties patternProperties dependentSchemas dependencies")
)

// maxKeyword is how long a key may be that is taken for a misspelt keyword.
const maxKeyword = 32

// misspeltKeywords lists keywords of a schema that mean nothing and all but are one that
// does. Others are notes for people. A keyword that begins with _ is the tool's own.
func misspeltKeywords(schema any, location ...string) (all []string) {
	object, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	location = slices.Clip(location)
	for _, key := range sortedKeys(object) {
		v := object[key]
		if slices.Contains(schemaKeywords, key) {
			all = append(all, misspeltKeywords(v, append(location, key)...)...)
		}
		if list, ok := v.([]any); ok && slices.Contains(schemaListKeywords, key) {
			for i, e := range list {
				all = append(all, misspeltKeywords(e, append(location, key, strconv.Itoa(i))...)...)
			}
		}
		if named, ok := v.(map[string]any); ok && slices.Contains(schemaMapKeywords, key) {
			for _, name := range sortedKeys(named) {
				all = append(all, misspeltKeywords(named[name], append(location, key, name)...)...)
			}
		}
		if len(key) < 3 || len(key) > maxKeyword || isKeyword(key) || slices.Contains(olderKeywords, key) || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "x-") {
			continue
		}
		if hint := didYouMean(key, keywords); hint != "" {
			all = append(all, fmt.Sprintf("%sthe keyword %q is not known, and does nothing%s", before("", location), key, hint))
		}
	}
	return all
}

// Problems lists what is wrong in the tool's schema though it is one: keywords that can only be
// misspelt, as warnings, and defaults that break what is said of their parameter.
func (t *Tool) Problems() (all []Problem) {
	object, ok := t.Schema.(map[string]any)
	if !ok {
		return nil
	}
	add := func(severity, message string) {
		all = append(all, Problem{File: t.File, Line: t.Line, Severity: severity, Code: CodeSchema, Message: fmt.Sprintf("tool %q: %s", t.Name, message)})
	}
	params, metas := splitMeta(object)
	for _, message := range slices.Concat(misspeltKeywords(params), misspeltKeywords(metas["_output"], "_output")) {
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
	known := append([]string{"_activity"}, metaProperties...)
	for _, name := range sortedKeys(metas) {
		if i := slices.IndexFunc(known, func(other string) bool { return slipOf(name, other) }); i >= 0 && !slices.Contains(known, name) {
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
		if near := Nearest(name, sortedKeys(properties)); near != "" {
			messages = append(messages, fmt.Sprintf("it requires %q, which it does not declare (did you mean %q?)", name, near))
		}
	}
	return messages
}

// wrongDefaults lists the defaults of properties that the schema of the object, which holds
// them, refuses.
func wrongDefaults(s *Schema, properties map[string]any, location []string) (errs []error) {
	for _, name := range sortedKeys(properties) {
		definition, _ := properties[name].(map[string]any)
		property, _ := s.property(name)
		if definition == nil || property == nil {
			continue
		}
		at := append(slices.Clip(location), name)
		inner, _ := definition["properties"].(map[string]any)
		if v, ok := definition["default"]; ok {
			if object, ok := v.(map[string]any); ok {
				v = fillDefaults(inner, object)
			}
			if err := property.Validate(v, place("", at)); err != nil {
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
	for _, name := range sortedKeys(properties) {
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
			changed = changed || !sameObject(inner, whole)
			v = whole
		}
		if !changed {
			continue
		}
		if sameObject(filled, object) {
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

// SchemaProblems lists what is wrong in the schemas that a request brings, and in those of the
// tools that its calls name, as [Tool.Problems] says.
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
	warn := func(where string, schema any) {
		for _, message := range misspeltKeywords(schema) {
			all = append(all, Problem{Severity: SeverityWarning, Code: CodeSchema, Message: where + message})
		}
	}
	warn("schema: ", r.Schema)
	for i, m := range r.Context {
		warn(fmt.Sprintf("context message %d: schema: ", i+1), m.Schema)
		if definitions, ok := m.Data.(map[string]any); ok && m.Type == store.TypeTool {
			for name := range definitions {
				names[name] = true
			}
		}
	}
	for _, name := range sortedKeys(names) {
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
