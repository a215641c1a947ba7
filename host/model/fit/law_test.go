package fit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/model"
	"obelus/host/model/fit"
	"obelus/store"
)

type object = map[string]any

// schemas draws schemas at random.
type schemas struct {
	*rapid.T
	simple bool // without conjunctions and oneOf, which are loosened without a note
}

func (s schemas) pick(name string, of ...string) string { return rapid.SampledFrom(of).Draw(s.T, name) }

func (s schemas) coin(name string) bool { return rapid.Bool().Draw(s.T, name) }

// root draws a whole schema, with definitions that may hold themselves.
func (s schemas) root() any {
	root, ok := s.schema(4).(object)
	if !ok {
		root = object{}
	}
	root = maps.Clone(root)
	root["$defs"] = object{
		"A":   object{"type": "object", "properties": object{"next": object{"$ref": "#/$defs/A"}, "v": s.schema(1)}, "required": []any{"v"}},
		"B/C": object{"type": "array", "items": object{"anyOf": []any{object{"$ref": "#/$defs/B~1C"}, object{"type": "integer"}}}},
	}
	return root
}

func (s schemas) schema(depth int) any {
	kinds := []string{"string", "integer", "number", "boolean", "null", "const", "enum", "scalars"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "map", "any", "true", "array", "tuple", "anyOf", "anyOf", "ref", "nullable")
		if !s.simple {
			kinds = append(kinds, "oneOf", "allOf", "siblings", "refAndMore")
		}
	}
	made := s.ofKind(s.pick("kind", kinds...), depth)
	if o, ok := made.(object); ok && s.coin("described") {
		o["description"] = "It is described."
	}
	return made
}

func (s schemas) ofKind(kind string, depth int) any {
	inner := func() any { return s.schema(depth - 1) }
	switch kind {
	case "string":
		return s.bounded("string", object{"minLength": 2, "maxLength": 9, "pattern": s.pick("pattern", "^†", "^[a-z]+$", "^a.*$", "b"), "format": s.pick("format", "date", "email")})
	case "integer", "number":
		return s.bounded(kind, object{"minimum": -2, "maximum": 7, "multipleOf": 2, "exclusiveMaximum": 9})
	case "boolean", "null":
		return object{"type": kind}
	case "const":
		return object{"const": s.constant()}
	case "enum":
		return object{"enum": []any{s.constant(), s.constant()}}
	case "scalars":
		return object{"type": []any{"string", "null"}}
	case "nullable":
		return object{"type": []any{"object", "null"}, "properties": object{"a": inner()}, "required": []any{"a"}}
	case "object":
		return s.object(depth)
	case "map":
		return object{"type": "object", "additionalProperties": inner()}
	case "any":
		return object{}
	case "true":
		return true
	case "array":
		return s.bounded("array", object{"items": inner(), "minItems": s.pick2(1, 2), "maxItems": 4, "uniqueItems": true})
	case "tuple":
		return object{"type": "array", "prefixItems": []any{inner(), inner()}, "items": false}
	case "anyOf", "oneOf":
		branches := []any{inner(), inner()}
		if s.coin("third") {
			branches = append(branches, inner())
		}
		return object{kind: branches}
	case "ref":
		return object{"$ref": s.pick("ref", "#/$defs/A", "#/$defs/B~1C")}
	case "refAndMore":
		return object{"$ref": "#/$defs/A", "required": []any{"next"}}
	case "allOf":
		return object{"allOf": []any{s.object(depth), s.object(depth)}}
	case "siblings":
		made := s.object(depth)
		made["anyOf"] = []any{object{"required": []any{"a"}}, object{"required": []any{"b"}}, object{"required": []any{"b", "c"}}}
		return made
	}
	panic(kind)
}

func (s schemas) pick2(a, b int) int { return rapid.SampledFrom([]int{a, b}).Draw(s.T, "number") }

// bounded draws some of the bounds of a type.
func (s schemas) bounded(typ string, bounds object) object {
	made := object{"type": typ}
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		if rapid.IntRange(0, 3).Draw(s.T, name) == 0 || name == "items" && s.coin("items") {
			made[name] = bounds[name]
		}
	}
	return made
}

func (s schemas) object(depth int) object {
	properties, required := object{}, []any{}
	for _, name := range []string{"a", "b", "c"} {
		if s.coin("has " + name) {
			properties[name] = s.schema(depth - 1)
			if s.coin("needs " + name) {
				required = append(required, name)
			}
		}
	}
	made := object{"type": "object", "properties": properties, "required": required}
	switch s.pick("more", "open", "closed", "true", "typed") {
	case "closed":
		made["additionalProperties"] = false
	case "true":
		made["additionalProperties"] = true
	case "typed":
		made["additionalProperties"] = s.schema(0)
	}
	return made
}

func (s schemas) constant() any {
	return rapid.SampledFrom([]any{"x", "1", "†a", 1, 2.5, true, nil, object{"k": "v"}, []any{1}}).Draw(s.T, "constant")
}

// valueOf draws a value that a schema may take: it is to be checked. Objects have no properties that
// are not declared.
func valueOf(t *rapid.T, root, s any, depth int) any {
	o, ok := s.(object)
	if !ok || depth > 12 {
		return rapid.SampledFrom([]any{"x", "{}", "5", nil, true, object{"k": []any{"v"}}, []any{}}).Draw(t, "any")
	}
	if ref, ok := o["$ref"].(string); ok {
		return valueOf(t, root, at(root, ref), depth+1)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if branches, ok := o[word].([]any); ok {
			v := valueOf(t, root, rapid.SampledFrom(branches).Draw(t, "branch"), depth+1)
			if own, ok := valueOf(t, root, without(o, word), depth+1).(object); ok && o["type"] == "object" {
				if more, ok := v.(object); ok {
					maps.Copy(own, more)
				}
				return own
			}
			return v
		}
	}
	if parts, ok := o["allOf"].([]any); ok {
		made := object{}
		for _, part := range parts {
			if v, ok := valueOf(t, root, part, depth+1).(object); ok {
				maps.Copy(made, v)
			}
		}
		return made
	}
	if v, ok := o["const"]; ok {
		return v
	}
	if values, ok := o["enum"].([]any); ok {
		return rapid.SampledFrom(values).Draw(t, "value")
	}
	typ, _ := o["type"].(string)
	if types, ok := o["type"].([]any); ok {
		typ = rapid.SampledFrom(types).Draw(t, "type").(string)
	}
	switch typ {
	case "string":
		return stringOf(t, o)
	case "integer", "number":
		return rapid.IntRange(-1, 7).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "null":
		return nil
	case "array":
		return arrayOf(t, root, o, depth)
	case "object":
		return objectOf(t, root, o, depth)
	}
	return valueOf(t, root, nil, depth)
}

func stringOf(t *rapid.T, o object) any {
	if isText(o) {
		return rapid.SampledFrom([]string{"{}", "5", `"x"`, `{"a": null}`, "no JSON", "[[1]]"}).Draw(t, "text")
	}
	if pattern, _ := o["pattern"].(string); strings.Contains(pattern, "†") {
		return rapid.SampledFrom([]string{"†a", "†state.x"}).Draw(t, "reference")
	}
	if o["format"] == "date" {
		return "2026-01-02"
	}
	return rapid.SampledFrom([]string{"", "ab", "abc", "a b", "†ab", "{}", "12", "a@b.cd"}).Draw(t, "text")
}

func arrayOf(t *rapid.T, root any, o object, depth int) any {
	made := []any{}
	if prefix, ok := o["prefixItems"].([]any); ok {
		for _, s := range prefix {
			made = append(made, valueOf(t, root, s, depth+1))
		}
		return made
	}
	for range rapid.IntRange(0, 2).Draw(t, "length") {
		made = append(made, valueOf(t, root, o["items"], depth+1))
	}
	return made
}

func objectOf(t *rapid.T, root any, o object, depth int) any {
	made := object{}
	properties, _ := o["properties"].(object)
	required, _ := o["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth < 9 && rapid.Bool().Draw(t, "with "+name) {
			made[name] = valueOf(t, root, properties[name], depth+1)
		}
	}
	for _, name := range required {
		if _, ok := made[name.(string)]; !ok {
			made[name.(string)] = valueOf(t, root, nil, depth)
		}
	}
	if s, ok := o["additionalProperties"].(object); ok && len(s) > 0 {
		made["†k"] = valueOf(t, root, s, depth+1)
	}
	return made
}

func isText(o object) bool {
	text, _ := o["description"].(string)
	return o["type"] == "string" && strings.Contains(text, fit.TextMark)
}

func without(o object, name string) object {
	o = maps.Clone(o)
	delete(o, name)
	return o
}

// at is what a reference leads to.
func at(root any, ref string) any {
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		root = root.(object)[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return root
}

// closedReading is a schema whose objects have no properties but those declared.
func closedReading(s any) any {
	switch s := s.(type) {
	case []any:
		made := make([]any, len(s))
		for i, e := range s {
			made[i] = closedReading(e)
		}
		return made
	case object:
		made := object{}
		for name, e := range s {
			switch {
			case name == "const" || name == "enum":
				made[name] = e
			case name == "allOf":
				made[name], made["unevaluatedProperties"] = e, false
			default:
				made[name] = closedReading(e)
			}
		}
		if properties, ok := s["properties"].(object); ok && len(properties) > 0 && s["type"] != nil && (s["additionalProperties"] == nil || s["additionalProperties"] == true) {
			made["additionalProperties"] = false
		}
		return made
	}
	return s
}

// redo returns the ways to write a value so that it is as a fitted schema says.
func redo(root, s, w any, depth int) (all []any) {
	o, ok := s.(object)
	if !ok || depth > 40 {
		return []any{w}
	}
	if ref, ok := o["$ref"].(string); ok {
		return redo(root, at(root, ref), w, depth+1)
	}
	if branches, ok := o["anyOf"].([]any); ok {
		for _, branch := range branches {
			for _, v := range redo(root, branch, w, depth+1) {
				if !slices.ContainsFunc(all, func(other any) bool { return string(store.EncodeJSON(other)) == string(store.EncodeJSON(v)) }) {
					all = append(all, v)
				}
			}
		}
		return all
	}
	if isText(o) {
		return []any{string(store.EncodeJSON(w))}
	}
	if !mayBe(o, w) {
		return nil
	}
	switch w := w.(type) {
	case object:
		return redoObject(root, o, w, depth)
	case []any:
		all = []any{[]any{}}
		for _, e := range w {
			var longer []any
			for _, begun := range all {
				for _, v := range redo(root, o["items"], e, depth+1) {
					longer = append(longer, append(slices.Clone(begun.([]any)), v))
				}
			}
			all = longer[:min(len(longer), 64)]
		}
		return all
	}
	return []any{w}
}

// mayBe reports whether a value is of a schema's types and constants, and has none but its properties.
func mayBe(o object, w any) bool {
	types, ok := o["type"].([]any)
	if typ, one := o["type"].(string); one {
		types, ok = []any{typ}, true
	}
	if named := store.TypeName(w); ok && !slices.Contains(types, any(named)) && !(named == "number" && slices.Contains(types, any("integer"))) {
		return false
	}
	if c, ok := o["const"]; ok && string(store.EncodeJSON(c)) != string(store.EncodeJSON(w)) {
		return false
	}
	given, isObject := w.(object)
	properties, _ := o["properties"].(object)
	for name := range given {
		if isObject && properties[name] == nil && o["additionalProperties"] == false {
			return false
		}
	}
	return true
}

func redoObject(root any, o, w object, depth int) []any {
	all := []object{{}}
	properties, _ := o["properties"].(object)
	names := map[string]bool{}
	for name := range w {
		names[name] = true
	}
	required, _ := o["required"].([]any)
	for _, name := range required {
		names[name.(string)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		ways := []any{nil}
		if v, ok := w[name]; ok {
			s, declared := properties[name]
			if !declared {
				s = o["additionalProperties"]
			}
			ways = redo(root, s, v, depth+1)
		}
		var longer []object
		for _, begun := range all {
			for _, v := range ways {
				made := maps.Clone(begun)
				made[name] = v
				longer = append(longer, made)
			}
		}
		all = longer[:min(len(longer), 64)]
	}
	made := make([]any, len(all))
	for i, v := range all {
		made[i] = v
	}
	return made
}

// withoutNulls is a value without members that are null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case object:
		made := object{}
		for name, e := range v {
			if e != nil {
				made[name] = withoutNulls(e)
			}
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, e := range v {
			made[i] = withoutNulls(e)
		}
		return made
	}
	return v
}

func normal(t interface{ Fatal(...any) }, v any) any {
	made, err := store.FromGo(v, "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := store.DecodeJSON(store.EncodeJSON(made))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func compiled(t interface{ Fatalf(string, ...any) }, s any) *schema.Schema {
	made, err := schema.New(s)
	if err != nil {
		t.Fatalf("%v: %s", err, store.EncodeJSON(s))
	}
	return made
}

// TestSchema_Law holds that every value of a schema can be written as each dialect has it, and is then
// what it was: but that a property that may be missing or null may change from one to the other.
func TestSchema_Law(t *testing.T) {
	tried, valid := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		original := normal(t, schemas{T: t}.root())
		check, closed := compiled(t, original), compiled(t, closedReading(original))
		var values []any
		for range 4 {
			w := normal(t, valueOf(t, original, original, 0))
			tried++
			if check.Validate(w, "") == nil && closed.Validate(w, "") == nil {
				valid++
				values = append(values, w)
			}
		}
		for _, name := range fit.Dialects() {
			d, _ := fit.DialectOf(name)
			fitted, err := fit.Schema(original, d)
			if err != nil {
				t.Fatal(err)
			}
			shown := normal(t, fitted.Schema)
			if err := rulesOf(d, shown); err != nil {
				t.Fatalf("%s: %v\n%s\n%s", name, err, store.EncodeJSON(original), store.EncodeJSON(shown))
			}
			for _, w := range values {
				if err := comesBack(compiled(t, shown), shown, fitted, check, w); err != nil {
					t.Fatalf("%s: %v\noriginal %s\nfitted %s\nvalue %s", name, err, store.EncodeJSON(original), store.EncodeJSON(shown), store.EncodeJSON(w))
				}
			}
		}
	})
	if valid*4 < tried {
		t.Errorf("only %d of %d values were of their schemas", valid, tried)
	}
}

// TestSolutionSchema_Law holds that every call of a tool, with or without references in place of its
// parameters, is one of the composed schema, and can be written as each dialect has it.
func TestSolutionSchema_Law(t *testing.T) {
	looked := 0
	rapid.Check(t, func(t *rapid.T) {
		s := schemas{T: t}
		root := s.root().(object)
		tool := s.object(3)
		tool["$defs"] = root["$defs"]
		tool = normal(t, tool).(object)
		call, ok := normal(t, valueOf(t, tool, tool, 0)).(object)
		if !ok || compiled(t, closedReading(tool)).Validate(call, "") != nil {
			return
		}
		looked++
		properties, _ := tool["properties"].(object)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if _, given := call[name]; given && rapid.Bool().Draw(t, "refers") {
				call[name] = "†input.x"
			}
			if def, ok := properties[name].(object); ok {
				if _, prescribed := def["const"]; prescribed {
					delete(call, name)
				}
			}
		}
		call["_tool"], call["_outputPath"] = "t", "†a || †b"
		latent := rapid.Bool().Draw(t, "latent")
		if latent {
			call["_output"] = "done"
		}
		other := plan.Offer{Name: "other", Schema: normal(t, s.object(2)).(object)}
		other.Schema["$defs"] = tool["$defs"]
		p := plan.Proposal{Tools: []plan.Offer{{Name: "t", Schema: tool, Latent: latent}, other}}
		composed := model.New(model.Config{NoReasons: true}, nil).PlanRequest(p).Schema
		check := compiled(t, composed)
		answer := normal(t, object{"calls": []any{call}, "output": nil})
		if err := check.Validate(answer, ""); err != nil {
			t.Fatalf("%v\ntool %s\ncomposed %s\nanswer %s", err, store.EncodeJSON(tool), store.EncodeJSON(normal(t, composed)), store.EncodeJSON(answer))
		}
		for _, name := range fit.Dialects() {
			d, _ := fit.DialectOf(name)
			fitted, err := fit.Schema(composed, d)
			if err != nil {
				t.Fatal(err)
			}
			shown := normal(t, fitted.Schema)
			if err := rulesOf(d, shown); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, store.EncodeJSON(shown))
			}
			if err := comesBack(compiled(t, shown), shown, fitted, check, answer); err != nil {
				t.Fatalf("%s: %v\ntool %s\nfitted %s\nanswer %s", name, err, store.EncodeJSON(tool), store.EncodeJSON(shown), store.EncodeJSON(answer))
			}
		}
	})
	if looked < 20 {
		t.Errorf("only %d calls were looked at", looked)
	}
}

func comesBack(fits *schema.Schema, shown any, fitted fit.Fitted, original *schema.Schema, w any) error {
	root := shown
	ways := redo(root, shown, w, 0)
	if o, ok := shown.(object); ok {
		if properties, _ := o["properties"].(object); len(properties) == 1 && properties[fit.Wrapper] != nil {
			for _, v := range redo(root, properties[fit.Wrapper], w, 0) {
				ways = append(ways, object{fit.Wrapper: v})
			}
		}
	}
	var reasons []string
	for _, v := range ways {
		if err := fits.Validate(v, ""); err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		undone, err := fitted.Undo(v)
		if err == nil && string(store.EncodeJSON(withoutNulls(undone))) == string(store.EncodeJSON(withoutNulls(w))) && original.Validate(undone, "") == nil {
			return nil
		}
		reasons = append(reasons, fmt.Sprintf("%s came back as %s, %v", store.EncodeJSON(v), store.EncodeJSON(undone), err))
	}
	return fmt.Errorf("it can't be written: %s", strings.Join(reasons, "; "))
}

// TestFitted_UndoLaw holds that a value of the fitted schema is one of the original once it is undone, where the fitted one says all that the original says and nothing is a
// JSON text.
func TestFitted_UndoLaw(t *testing.T) {
	exact := 0
	rapid.Check(t, func(t *rapid.T) {
		original := normal(t, schemas{T: t, simple: true}.root())
		for _, name := range fit.Dialects() {
			if undoesTo(t, name, original, func(shown any) any { return valueOf(t, shown, shown, 0) }) {
				exact++
			}
		}
	})
	if exact < 50 {
		t.Errorf("only %d values were looked at", exact)
	}
}

// undoesTo holds a value of a fitted schema to the law. It reports whether the law is about it.
func undoesTo(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, dialect string, original any, draw func(shown any) any) bool {
	d, _ := fit.DialectOf(dialect)
	fitted, err := fit.Schema(original, d)
	if err != nil {
		t.Fatal(err)
	}
	shown := normal(t, fitted.Schema)
	v := normal(t, draw(shown))
	undone, err := fitted.Undo(v)
	isLoose := len(fitted.Notes) > 0 || strings.Contains(string(store.EncodeJSON(shown)), fit.TextMark)
	if isLoose || compiled(t, shown).Validate(v, "") != nil {
		return false
	}
	if err == nil {
		err = compiled(t, original).Validate(undone, "")
	}
	if err != nil {
		t.Fatalf("%s: %v\noriginal %s\nfitted %s\nvalue %s\nundone %s", dialect, err, store.EncodeJSON(original), store.EncodeJSON(shown), store.EncodeJSON(v), store.EncodeJSON(undone))
	}
	return true
}

// TestFitted_UndoTakesAnything holds that no value breaks Undo.
func TestFitted_UndoTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		original := normal(t, schemas{T: t}.root())
		other := normal(t, schemas{T: t}.root())
		for _, name := range fit.Dialects() {
			d, _ := fit.DialectOf(name)
			fitted, err := fit.Schema(original, d)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []any{normal(t, valueOf(t, other, other, 0)), other, original, normal(t, fitted.Schema)} {
				before := string(store.EncodeJSON(v))
				_, _ = fitted.Undo(v)
				if string(store.EncodeJSON(v)) != before {
					t.Fatalf("%s: %s was changed", name, before)
				}
			}
		}
	})
}

// rulesOf reports how a schema breaks the rules of a dialect, as the table of the design has them.
func rulesOf(d fit.Dialect, shown any) error {
	root, ok := shown.(object)
	if !ok {
		return fmt.Errorf("the root is no object")
	}
	if d.RootObject && (root["type"] != "object" || root["anyOf"] != nil) {
		return fmt.Errorf("the root is no schema of an object")
	}
	return rulesWithin(d, root)
}

// taken are the keywords of each dialect beside those of all.
var taken = map[string]string{
	"openai":    "additionalProperties $ref $defs const pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems",
	"anthropic": "additionalProperties $ref $defs const pattern format minItems",
	"gemini":    "additionalProperties minimum maximum minItems maxItems format",
	"llama":     "additionalProperties $ref $defs const minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems pattern format",
	"ollama":    "additionalProperties $ref $defs const minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems pattern format",
	"plain":     "additionalProperties $ref $defs const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems",
}

func rulesWithin(d fit.Dialect, s any) error {
	o, ok := s.(object)
	if !ok {
		return nil
	}
	allowed := strings.Fields("type title description properties required items enum anyOf " + taken[d.Name])
	for name := range o {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%s is not taken: %s", name, store.EncodeJSON(o))
		}
	}
	if err := ruleOfOne(d, o); err != nil {
		return fmt.Errorf("%w: %s", err, store.EncodeJSON(o))
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if err := rulesWithin(d, o[name]); err != nil {
			return err
		}
	}
	branches, _ := o["anyOf"].([]any)
	for _, e := range branches {
		if err := rulesWithin(d, e); err != nil {
			return err
		}
	}
	for _, name := range []string{"properties", "$defs"} {
		inner, _ := o[name].(object)
		for _, e := range inner {
			if err := rulesWithin(d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func ruleOfOne(d fit.Dialect, o object) error {
	properties, _ := o["properties"].(object)
	required, _ := o["required"].([]any)
	strict := d.Name == "openai" || d.Name == "anthropic"
	pattern, _ := o["pattern"].(string)
	switch {
	case strict && o["type"] == "object" && o["additionalProperties"] != false:
		return fmt.Errorf("the object is open")
	case strict && len(o) == 0, strict && o["type"] == "array" && o["items"] == nil:
		return fmt.Errorf("it takes any value")
	case d.Name == "openai" && o["type"] == "object" && len(required) != len(properties):
		return fmt.Errorf("a property may be missing")
	case d.Name == "openai" && o["$ref"] != nil && len(o) > 1:
		return fmt.Errorf("a reference has something beside it")
	case d.Name == "openai" && o["type"] == nil && o["anyOf"] == nil && o["$ref"] == nil:
		return fmt.Errorf("it has no type")
	case d.Name == "anthropic" && o["minItems"] != nil && fmt.Sprint(o["minItems"]) > "1":
		return fmt.Errorf("minItems is too large")
	case strings.HasSuffix(d.Name, "llama") && pattern != "" && (pattern[0] != '^' || !strings.HasSuffix(pattern, "$") || strings.Contains(pattern, ".")):
		return fmt.Errorf("the pattern can't be a grammar")
	case strings.HasSuffix(d.Name, "llama") && o["minimum"] != nil && o["type"] != "integer":
		return fmt.Errorf("a bound of a number that is no integer")
	}
	return nil
}
