package model

import (
	"fmt"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/store"
)

// maxShape bounds how deep the shape of a value is written, maxShapeValues how many bytes of the
// values that it may have.
const (
	maxShape       = 3
	maxShapeValues = 200
)

// toolLines describes a tool: its purpose, its result, the paths that it writes, and what it sees;
// with its parameters where the schema of the answer does not have them.
func toolLines(tool plan.Offer, lazy, withParameters bool) string {
	parameters, meta := plan.ToolParts(tool.Schema)
	params, _ := ordered(parameters).(fit.Object)
	var b strings.Builder
	b.WriteString(tool.Name)
	inLines := false
	if withParameters {
		inLines = !isShapely(params) || slices.ContainsFunc(params.Object("properties"), isDescribed)
		if !inLines {
			b.WriteString(parameterList(params))
		}
	}
	isAsked := tool.Latent && !lazy
	if isAsked {
		b.WriteString(" (you)")
	}
	if shape := shapeOf(plan.OutputSchema(tool.Schema)); shape != "" && (withParameters || !isAsked) { // else the schema has it
		b.WriteString(" → " + shape)
	}
	for _, note := range []string{wrapped("writes ", outputPaths(meta["_outputPath"], withParameters)), wrapped("sees ", scopesText(meta["_scopes"]))} {
		b.WriteString(note)
	}
	if text := strings.TrimSpace(params.Text("description")); text != "" {
		b.WriteString(" — " + indented(text))
	}
	if inLines {
		b.WriteString(parameterLines(params))
	}
	b.WriteString(exampleLines(tool.Schema, "\n  "))
	return b.String()
}

func wrapped(what, text string) string {
	if text == "" {
		return ""
	}
	return " [" + what + text + "]"
}

// indented returns a text of several lines, all but the first of them indented, so that none begins
// a block.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// exampleLines shows the examples that a tool's schema has, each behind a beginning.
func exampleLines(tool map[string]any, begin string) string {
	var b strings.Builder
	examples, _ := tool["examples"].([]any)
	for _, example := range examples {
		b.WriteString(begin + "Example: " + jsonText(example))
	}
	return b.String()
}

// parameterList returns the parameters of a tool in parentheses.
func parameterList(params fit.Object) string {
	var texts []string
	for _, p := range params.Object("properties") {
		if !isFixed(p) {
			texts = append(texts, propertyShape(params, p, 1))
		}
	}
	if len(params.Object("properties")) == 0 && params.Get("additionalProperties") != false {
		texts = append(texts, "…")
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// parameterLines returns the parameters of a tool, each on a line with its description: as its
// shape, or, where that does not say all, as its schema.
func parameterLines(params fit.Object) string {
	if slices.ContainsFunc([]string{"$defs", "$ref", "allOf", "anyOf", "oneOf"}, params.Has) {
		return "\n  Parameters, as JSON Schema: " + jsonText(params.Without("description", "examples"))
	}
	var b strings.Builder
	for _, p := range params.Object("properties") {
		if isFixed(p) {
			continue
		}
		schema, _ := p.Value.(fit.Object)
		line := propertyShape(params, p, 1)
		if !isShapely(p.Value) {
			line = propertyShape(params, fit.Member{Name: p.Name}, 1) + ": " + jsonText(schema.Without("description"))
		}
		if text := strings.TrimSpace(schema.Text("description")); text != "" {
			line += " — " + strings.ReplaceAll(text, "\n", "\n    ")
		}
		b.WriteString("\n  " + line)
	}
	return b.String()
}

// isFixed reports whether a property has a value that no call gives.
func isFixed(p fit.Member) bool {
	def, ok := p.Value.(fit.Object)
	return ok && def.Has("const")
}

// isDescribed reports whether a property has a description.
func isDescribed(p fit.Member) bool {
	def, ok := p.Value.(fit.Object)
	return ok && !def.Has("const") && def.Text("description") != ""
}

// shapely are the keywords of which a shape says all.
var shapely = []string{
	"type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "additionalProperties", "description", "title", "default", "examples",
	"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "format", "pattern",
}

// isShapely reports whether the shape of a schema says all that a model needs.
func isShapely(schema any) bool {
	return isShapelyWithin(schema, 0)
}

func isShapelyWithin(schema any, depth int) bool {
	o, ok := schema.(fit.Object)
	if !ok {
		return true
	}
	for _, m := range o {
		switch {
		case !slices.Contains(shapely, m.Name):
			return false
		case m.Name == "enum" && len(jsonText(m.Value)) > maxShapeValues:
			return false
		case m.Name == "properties" && depth >= maxShape:
			return false
		case m.Name == "additionalProperties" && m.Value != false && m.Value != true:
			return false
		}
	}
	for _, p := range o.Object("properties") {
		if !isShapelyWithin(p.Value, depth+1) || depth > 0 && isDescribed(p) {
			return false
		}
	}
	if items, ok := o.Get("items").(fit.Object); ok && (!isShapelyWithin(items, depth+1) || items.Text("description") != "") {
		return false
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for _, branch := range o.List(keyword) {
			if !isShapelyWithin(branch, depth) {
				return false
			}
		}
	}
	return true
}

// scopesText returns the scopes that a tool declares, as text: what its calls see, or among which
// kinds they may ask; empty if it declares none.
func scopesText(def any) string {
	object, _ := def.(map[string]any)
	if list := scopeList(object["const"]); list != "" {
		return list
	}
	if choices, ok := object["enum"].([]any); ok {
		var texts []string
		for _, choice := range choices {
			texts = append(texts, scopeList(choice))
		}
		return "by _scopes " + strings.Join(texts, ", or ")
	}
	items, _ := object["items"].(map[string]any)
	if list := scopeList(items["enum"]); list != "" {
		return "of " + list + " what _scopes names"
	}
	if object != nil {
		return "what _scopes names"
	}
	return ""
}

// scopeList returns a list of scopes as references; empty for none.
func scopeList(list any) string {
	var texts []string
	for _, text := range fit.Texts(list) {
		if path, err := store.ParseTyped(text); err == nil {
			texts = append(texts, path.String())
		}
	}
	return strings.Join(texts, ", ")
}

// outputPaths returns the output paths that a tool declares, as text, with those to choose from
// where the schema does not have them; empty if it declares none.
func outputPaths(def any, withChoices bool) string {
	object, _ := def.(map[string]any)
	if text, ok := object["const"].(string); ok {
		return text
	}
	if !withChoices {
		return ""
	}
	if text, ok := object["pattern"].(string); ok {
		return "where matching " + text
	}
	if paths := fit.Texts(object["enum"]); len(paths) > 0 {
		return "one of " + strings.Join(paths, ", ")
	}
	return ""
}

func propertyShape(of fit.Object, p fit.Member, depth int) string {
	mark := ""
	if !slices.Contains(fit.Texts(of.Get("required")), p.Name) {
		mark = "?"
	}
	shape := shapeWithin(p.Value, depth)
	if shape == "" {
		return p.Name + mark
	}
	return p.Name + mark + ": " + shape
}

// shapeOf writes the values that a schema takes in few words, such as {amount: number ≥ 0, note?:
// string}; empty for any value.
func shapeOf(schema any) string {
	if schema == nil {
		return ""
	}
	return shapeWithin(ordered(schema), 0)
}

func shapeWithin(schema any, depth int) string {
	o, ok := schema.(fit.Object)
	if !ok {
		return ""
	}
	if values := fit.Constants(o); len(values) > 0 {
		var texts []string
		for _, v := range values {
			text, _ := fit.JSON(v)
			texts = append(texts, string(text))
		}
		return cutText(strings.Join(texts, " | "), maxShapeValues)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches := o.List(keyword); branches != nil {
			var texts []string
			for _, branch := range branches {
				texts = append(texts, shapeWithin(branch, depth))
			}
			if slices.Contains(texts, "") {
				return ""
			}
			return strings.Join(texts, " | ")
		}
	}
	types := fit.Types(o)
	if len(types) == 0 {
		types = fit.ImpliedTypes(o)
	}
	switch {
	case len(types) != 1:
		return strings.Join(types, " | ")
	case types[0] == "object" && len(o.Object("properties")) > 0:
		return objectShape(o, depth)
	case types[0] == "array":
		return "[" + shapeWithin(o.Get("items"), depth+1) + "]"
	}
	return types[0] + bounds(o)
}

func objectShape(o fit.Object, depth int) string {
	if depth >= maxShape {
		return "{…}"
	}
	var texts []string
	for _, p := range o.Object("properties") {
		texts = append(texts, propertyShape(o, p, depth+1))
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// bounds returns the bounds of a number or a text.
func bounds(o fit.Object) string {
	var b strings.Builder
	for _, bound := range []struct{ keyword, sign string }{
		{"minimum", "≥"}, {"exclusiveMinimum", ">"}, {"maximum", "≤"}, {"exclusiveMaximum", "<"},
		{"format", "as"}, {"pattern", "matching"},
	} {
		if o.Has(bound.keyword) {
			fmt.Fprintf(&b, " %s %v", bound.sign, o.Get(bound.keyword))
		}
	}
	return b.String()
}

// ordered returns a schema that has been compiled with its members in order; one that is broken
// becomes a schema of any value.
func ordered(schema any) any {
	made, err := fit.Order(schema)
	if err != nil {
		return fit.Object{}
	}
	return made
}

// oneLine returns a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
