package model

import (
	"fmt"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/host/model/fit"
)

// maxShape bounds how deep the shape of a value is written.
const maxShape = 3

// toolLine returns a tool on one line: its parameters, its result, its purpose, and the paths that
// it writes.
func toolLine(tool plan.Offer, lazy bool) string {
	parameters, meta := plan.ToolParts(tool.Schema)
	params, _ := ordered(parameters).(fit.Object)
	var b strings.Builder
	b.WriteString(tool.Name + "(")
	sep := ""
	for _, p := range params.Object("properties") {
		if def, ok := p.Value.(fit.Object); ok && def.Has("const") {
			continue
		}
		b.WriteString(sep + propertyShape(params, p, 1))
		sep = ", "
	}
	if len(params.Object("properties")) == 0 && params.Get("additionalProperties") != false {
		b.WriteString("…")
	}
	b.WriteString(")")
	if tool.Latent && !lazy {
		b.WriteString(" (you)")
	}
	if shape := shapeOf(plan.OutputSchema(tool.Schema)); shape != "" {
		b.WriteString(" → " + shape)
	}
	if text := oneLine(params.Text("description")); text != "" {
		b.WriteString(" — " + text)
	}
	if writes := outputPaths(meta["_outputPath"]); writes != "" {
		b.WriteString(" [writes " + writes + "]")
	}
	return b.String() + parameterNotes(params)
}

// parameterNotes returns the descriptions of parameters, each on a line.
func parameterNotes(params fit.Object) string {
	var b strings.Builder
	for _, p := range params.Object("properties") {
		if def, ok := p.Value.(fit.Object); ok && !def.Has("const") && def.Text("description") != "" {
			b.WriteString("\n  " + p.Name + ": " + oneLine(def.Text("description")))
		}
	}
	return b.String()
}

// outputPaths returns the output paths that a tool declares, as text; empty if it declares none.
func outputPaths(def any) string {
	object, _ := def.(map[string]any)
	if text, ok := object["const"].(string); ok {
		return text
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
		return cutText(strings.Join(texts, " | "), 200)
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
