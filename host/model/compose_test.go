package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/model"
	"obelus/host/model/fit"
	"obelus/store"
)

// decoded reads JSON text.
func decoded(t testing.TB, text string) any {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func offer(t testing.TB, name, text string, latent bool) plan.Offer {
	t.Helper()
	if _, err := plan.NewTool(name, decoded(t, text)); err != nil {
		t.Fatal(err)
	}
	return plan.Offer{Name: name, Schema: decoded(t, text).(map[string]any), Latent: latent}
}

// appendix is the request of the design's example.
func appendix(t testing.TB) plan.Proposal {
	return plan.Proposal{
		Tools: []plan.Offer{
			offer(t, "judge", `{"properties": {"what": {"type": "string"}, "_output": {"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"]}}, "required": ["what"]}`, true),
			offer(t, "decide", `{"type": "object", "properties": {"note": {"type": "string"}, "amount": {"type": "number", "minimum": 0}}, "required": ["amount"]}`, false),
		},
		Schema: decoded(t, `{"type": "object", "properties": {"letter": {"type": "string"}}, "required": ["letter"]}`),
		Mode:   plan.ModeEager,
	}
}

func text(t testing.TB, v any) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// solutionSchema returns the schema of a question for a plan, looseSchema that of its loose form, and
// answersSchema that of a question for answers.
func solutionSchema(p plan.Proposal, c model.Config) fit.Object {
	return model.New(c, nil).PlanRequest(p).Schema.(fit.Object)
}

func looseSchema(p plan.Proposal, c model.Config) fit.Object {
	return model.New(c, nil).PlanRequest(p).Loose.Schema.(fit.Object)
}

func answersSchema(questions []plan.Question, c model.Config) fit.Object {
	return model.New(c, nil).AnswerRequest(questions).Schema.(fit.Object)
}

func TestSolutionSchema_Whole(t *testing.T) {
	golden(t, "schema", text(t, solutionSchema(appendix(t), model.Config{}))+"\n")
}

func TestLooseSchema_Whole(t *testing.T) {
	const want = `{"type":"object","properties":{"calls":{"type":"array","items":{"type":"object","properties":{"_tool":{"enum":["decide","judge"]},"_reasoningForCall":{"type":"string"},` +
		`"args":{"type":"string","description":"JSON text of an object: the tool's parameters, _outputPath and the like"}},"required":["_tool","_reasoningForCall","args"],"additionalProperties":false}},` +
		`"output":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/Ref"},{"type":"object","properties":{"letter":{"type":"string"}},"required":["letter"]}]}},` +
		`"required":["calls","output"],"additionalProperties":false,` +
		`"$defs":{"Ref":{"type":"string","pattern":"^†"},"Path":{"type":"string","pattern":"^\\(?†"}}}`
	if diff := cmp.Diff(want, text(t, looseSchema(appendix(t), model.Config{}))); diff != "" {
		t.Error(diff)
	}
}

// TestSolutionSchema_Call compares the schema of one call of a tool, less its _tool.
func TestSolutionSchema_Call(t *testing.T) {
	for _, test := range []struct {
		name, tool string
		latent     bool
		proposal   plan.Proposal
		config     model.Config
		want       string // properties, required
	}{
		{
			name: "a const is left out", tool: `{"properties": {"a": {"const": 5}, "b": {"type": "string"}, "_outputPath": {"const": "†x.y"}}, "required": ["a"]}`,
			want: `{"b":{"type":"string"}} []`,
		},
		{
			name: "meta-properties beside properties", tool: `{"properties": {}, "additionalProperties": false, "_outputPath": "†x.y", "_scopes": ["state"]}`,
			want: `{} []`,
		},
		{
			name: "its own paths", tool: `{"additionalProperties": false, "_outputPath": {"enum": ["†a.x", "†b.y"]}, "required": ["_outputPath"]}`,
			want: `{"_outputPath":{"enum":["†a.x","†b.y"]}} ["_outputPath"]`,
		},
		{
			name: "a pattern of paths", tool: `{"additionalProperties": false, "_outputPath": {"pattern": "^†a"}}`,
			want: `{"_outputPath":{"type":"string","pattern":"^†a"}} []`,
		},
		{
			name: "declared meta-properties", tool: `{"additionalProperties": false, "_outputPath": "†a", "_outputMethod": {"enum": ["push", "set"]}, "_scopes": {"type": "array", "items": {"type": "string"}}, "_delegate": {"type": "string"}, "_model": {"enum": ["fast"]}, "_activity": "x"}`,
			want: `{"_scopes":{"type":"array","items":{"type":"string"}},"_delegate":{"type":"string"},"_model":{"enum":["fast"]},"_outputMethod":{"enum":["push","set"]}} []`,
		},
		{
			name: "when and how often, where the tool says so", tool: `{"additionalProperties": false, "_outputPath": "†a", "_if": {"type": "string", "pattern": "^†"}, "_in": {"enum": ["1d", "3d"]}, "_retries": {"const": 2}, "_timeout": {"maximum": 60}}`,
			want: `{"_if":{"type":"string","pattern":"^†"},"_in":{"enum":["1d","3d"]},"_timeout":{"maximum":60}} []`,
		},
		{
			name: "instances", tool: `{"additionalProperties": false, "_outputPath": "†a"}`, proposal: plan.Proposal{Instances: []string{"①", "②"}},
			want: `{"_instance":{"$ref":"#/$defs/Instance"}} []`,
		},
		{
			name: "reasons", tool: `{"additionalProperties": false, "_outputPath": "†a"}`, config: model.Config{},
			want: `{} []`,
		},
		{
			name: "an order of required ones", tool: `{"properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}}, "required": ["c", "b"], "_outputPath": "†a"}`,
			want: `{"c":{"type":"string"},"b":{"type":"string"},"a":{"type":"string"}} ["c","b"]`,
		},
		{
			name: "texts that are bounded", tool: `{"properties": {"a": {"type": "string", "enum": ["x"]}, "b": {"type": "string", "description": "B"}}, "_outputPath": "†a"}`,
			want: `{"a":{"anyOf":[{"$ref":"#/$defs/Ref"},{"type":"string","enum":["x"]}]},"b":{"type":"string","description":"B"}} []`,
		},
		{
			name: "direct properties", tool: `{"properties": {"a": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "k": {"const": 1}, "o": {"type": "object", "properties": {"d": {"type": "integer"}}}}}}, "_outputPath": "†a"}`,
			want: `{"a":{"anyOf":[{"$ref":"#/$defs/Ref"},{"type":"object","properties":{"k":{"const":1},"n":{"anyOf":[{"$ref":"#/$defs/Ref"},{"type":"integer"}]},` +
				`"o":{"anyOf":[{"$ref":"#/$defs/Ref"},{"type":"object","properties":{"d":{"type":"integer"}}}]},"s":{"type":"string"}}}]}} []`,
		},
		{
			name: "oneOf, of which a reference may be several", tool: `{"properties": {"a": {"oneOf": [{"type": "object", "properties": {"n": {"type": "integer"}}}, {"type": "null"}]}}, "_outputPath": "†a"}`,
			want: `{"a":{"anyOf":[{"$ref":"#/$defs/Ref"},{"anyOf":[{"type":"object","properties":{"n":{"anyOf":[{"$ref":"#/$defs/Ref"},{"type":"integer"}]}}},{"type":"null"}]}]}} []`,
		},
		{
			name: "latent without a result", tool: `{"properties": {"a": {"type": "string"}}, "_outputPath": "†a"}`, latent: true,
			want: `{"a":{"type":"string"},"_output":{"type":"string"}} []`,
		},
		{
			name: "latent and lazy", tool: `{"properties": {"a": {"type": "string"}}, "_outputPath": "†a", "_output": {"type": "integer"}}`, latent: true, proposal: plan.Proposal{Mode: plan.ModeLazy},
			want: `{"a":{"type":"string"}} []`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, c := test.proposal, test.config
			c.NoReasons = true
			p.Tools = []plan.Offer{offer(t, "t", test.tool, test.latent)}
			for i := range 8 { // so many that calls have only what their tools declare
				p.Tools = append(p.Tools, offer(t, fmt.Sprint("u", i), `{}`, false))
			}
			call := solutionSchema(p, c).Get("properties").(fit.Object).Get("calls").(fit.Object).Get("items").(fit.Object).Get("anyOf").([]any)[0].(fit.Object)
			properties := call.Get("properties").(fit.Object)
			if got := text(t, properties[0]); got != `{"Name":"_tool","Value":{"const":"t"}}` {
				t.Errorf("it begins with %s", got)
			}
			required := call.Get("required").([]any)
			if required[0] != "_tool" {
				t.Errorf("required begins with %v", required[0])
			}
			if diff := cmp.Diff(test.want, text(t, properties[1:])+" "+text(t, required[1:])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSolutionSchema_Offered: calls of a few tools may have what those do not declare.
func TestSolutionSchema_Offered(t *testing.T) {
	p := plan.Proposal{Tools: []plan.Offer{offer(t, "t", `{"properties": {"a": {"type": "string"}}, "_if": {"const": "†a"}}`, false)}}
	call := text(t, solutionSchema(p, model.Config{}).Get("properties").(fit.Object).Get("calls"))
	for _, want := range []string{`"_reasoningForCall":{"type":"string"},"_after":{"$ref":"#/$defs/Order"},"a":`, `"_outputPath":{"$ref":"#/$defs/Path"},"_outputMethod":{"$ref":"#/$defs/Method"}}`} {
		if !strings.Contains(call, want) {
			t.Errorf("%s lacks %s", call, want)
		}
	}
	whole := mustFit(t, solutionSchema(p, model.Config{}), "anthropic").Size
	for size, offered := range map[int]bool{whole: true, whole - 1: false} {
		c := model.Config{Dialect: "anthropic", MaxSchema: size}
		if got := strings.Contains(text(t, solutionSchema(p, c)), "_after"); got != offered {
			t.Errorf("with %d bytes of %d, _after is offered: %t", size, whole, got)
		}
	}
}

// TestSolutionSchema_OfAProvider: the dialect that a provider stands for bounds what is on offer.
func TestSolutionSchema_OfAProvider(t *testing.T) {
	p := plan.Proposal{}
	for i := range 8 {
		p.Tools = append(p.Tools, offer(t, fmt.Sprint("t", i), `{"properties": {"a": {"type": "string", "description": "`+strings.Repeat("x", 700)+`"}}}`, false))
	}
	for provider, offered := range map[string]bool{"openai": true, "anthropic": false} {
		if got := strings.Contains(text(t, solutionSchema(p, model.Config{Provider: provider})), "_after"); got != offered {
			t.Errorf("%s: _after is offered: %t", provider, got)
		}
	}
}

func TestSolutionSchema_Definitions(t *testing.T) {
	p := plan.Proposal{
		Tools: []plan.Offer{
			offer(t, "a/b", `{"properties": {"order": {"$ref": "#/$defs/Order"}, "tree": {"$ref": "#"}, "again": {"$ref": "#/properties/n"}, "n": {"type": "integer"}}, "additionalProperties": true,
				"$defs": {"Order": {"type": "object", "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}}}, "Line": {"type": "integer"}}}`, false),
			offer(t, "c", `{"properties": {"line": {"$ref": "#/$defs/Line"}}, "$defs": {"Line": {"type": "string"}}, "_output": {"$ref": "#/$defs/Line", "$defs": {"Line": {"type": "boolean"}}}}`, true),
		},
		Schema: decoded(t, `{"$ref": "#/$defs/Line", "$defs": {"Line": {"type": "array", "items": {"$ref": "#/$defs/Line"}}}}`),
	}
	s := solutionSchema(p, model.Config{NoReasons: true})
	var names []string
	for _, m := range s.Get("$defs").(fit.Object) {
		names = append(names, m.Name)
	}
	want := []string{"Ref", "Path", "Condition", "Order", "a_b.whole", "a_b.Order", "a_b.Line", "Method", "c.Line", "c._output.Line", "Failure", "output.Line"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	compiled, err := schema.New(s)
	if err != nil {
		t.Fatal(err)
	}
	for answer, right := range map[string]bool{
		`{"calls": [{"_tool": "a/b", "order": {"lines": [1]}, "tree": {"n": 1}, "again": 2}, {"_tool": "c", "line": "x", "_output": true}], "output": [[], [[]]]}`: true,
		`{"calls": [{"_tool": "a/b", "order": {"lines": ["x"]}}], "output": null}`:                                                                                 false,
		`{"calls": [{"_tool": "a/b", "tree": {"n": "x"}}], "output": null}`:                                                                                        false,
		`{"calls": [{"_tool": "c", "line": "x", "_output": "x"}], "output": null}`:                                                                                 false,
		`{"calls": [{"_tool": "a/b", "order": "†state.order", "n": "†state.n"}], "output": "†state.x"}`:                                                            true,
		`{"calls": [{"_tool": "a/b", "order": {"lines": "†state.lines"}}], "output": null}`:                                                                        true,
		`{"calls": [], "output": [3]}`: false,
	} {
		if err := compiled.Validate(decoded(t, answer), ""); (err == nil) != right {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestSolutionSchema_NamesOfDefinitions holds that definitions of tools with names that are alike stay
// apart.
func TestSolutionSchema_NamesOfDefinitions(t *testing.T) {
	var p plan.Proposal
	for name, typ := range map[string]string{"a/b": "string", "a b": "integer"} {
		p.Tools = append(p.Tools, offer(t, name, `{"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "`+typ+`"}}}`, false))
	}
	s, err := schema.New(solutionSchema(p, model.Config{NoReasons: true}))
	if err != nil {
		t.Fatal(err)
	}
	for answer, right := range map[string]bool{
		`{"calls": [{"_tool": "a/b", "x": "x"}, {"_tool": "a b", "x": 5}], "output": null}`: true,
		`{"calls": [{"_tool": "a/b", "x": 5}], "output": null}`:                             false,
		`{"calls": [{"_tool": "a b", "x": "x"}], "output": null}`:                           false,
	} {
		if err := s.Validate(decoded(t, answer), ""); (err == nil) != right {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestSolutionSchema_NoTools(t *testing.T) {
	s, err := schema.New(solutionSchema(plan.Proposal{}, model.Config{Think: true}))
	if err != nil {
		t.Fatal(err)
	}
	for answer, right := range map[string]bool{
		`{"thinking": "x", "calls": [], "output": {"any": 1}}`: true,
		`{"thinking": "x", "calls": [{}], "output": null}`:     false,
		`{"calls": [], "output": null}`:                        false,
	} {
		if err := s.Validate(decoded(t, answer), ""); (err == nil) != right {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestAnswersSchema_Alternatives(t *testing.T) {
	questions := []plan.Question{
		{ID: "1.2", Schema: decoded(t, `{"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}`), Alternatives: []string{"†a.x && †log.x", "†a.y"}},
		{ID: "1.10"},
	}
	const want = `{"type":"object","properties":{"1.2":{"anyOf":[` +
		`{"type":"object","properties":{"to":{"const":"†a.x && †log.x"},"value":{"$ref":"#/$defs/1.2.N"}},"required":["to","value"],"additionalProperties":false},` +
		`{"type":"object","properties":{"to":{"const":"†a.y"},"value":{"$ref":"#/$defs/1.2.N"}},"required":["to","value"],"additionalProperties":false},` +
		`{"type":"object","properties":{"to":{"const":"†a.y"},"message":{"type":"string"}},"required":["to","message"],"additionalProperties":false}]},` +
		`"1.10":{"type":"string"}},"required":["1.2","1.10"],"additionalProperties":false,"$defs":{"1.2.N":{"type":"integer"}}}`
	if diff := cmp.Diff(want, text(t, answersSchema(questions, model.Config{}))); diff != "" {
		t.Error(diff)
	}
}

// TestAnswersSchema_SharesResults: the schema of a result that several calls have is there once, with
// its own definitions.
func TestAnswersSchema_SharesResults(t *testing.T) {
	shared := `{"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"], "additionalProperties": false, "$defs": {"N": {"type": "integer"}}}`
	judge := map[string]any{"_tool": "judge"}
	questions := []plan.Question{
		{ID: "1.1", Call: judge, Schema: decoded(t, shared)},
		{ID: "1.2", Call: judge, Schema: decoded(t, shared)},
		{ID: "1.3", Call: judge, Schema: decoded(t, `{"type": "integer"}`)},
	}
	const want = `{"type":"object","properties":{"1.1":{"$ref":"#/$defs/judge"},"1.2":{"$ref":"#/$defs/judge"},"1.3":{"type":"integer"}},` +
		`"required":["1.1","1.2","1.3"],"additionalProperties":false,"$defs":{` +
		`"judge":{"type":"object","properties":{"n":{"$ref":"#/$defs/judge.N"}},"required":["n"],"additionalProperties":false},"judge.N":{"type":"integer"}}}`
	if diff := cmp.Diff(want, text(t, answersSchema(questions, model.Config{}))); diff != "" {
		t.Error(diff)
	}
}

func mustFit(t testing.TB, schema any, name string) fit.Fitted {
	t.Helper()
	d, ok := fit.DialectOf(name)
	if !ok {
		t.Fatalf("there is no dialect %s", name)
	}
	fitted, err := fit.Schema(schema, d)
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

func TestSolutionSchema_FittedToOpenAI(t *testing.T) {
	fitted := mustFit(t, solutionSchema(appendix(t), model.Config{}), "openai")
	golden(t, "schema_openai", text(t, fitted.Schema)+"\n")
	want := len(text(t, fitted.Schema))
	if fitted.Size != want || fitted.Excess != "" || len(fitted.Notes) > 0 {
		t.Errorf("size %d, want %d; excess %q; notes %q", fitted.Size, want, fitted.Excess, fitted.Notes)
	}
	answer := decoded(t, `{"calls":[{"_tool":"decide","_reasoningForCall":"R","amount":"†input.amount","note":null,"_outputPath":"†state.approval || †state.rejection"}],"output":null}`)
	undone, err := fitted.Undo(answer)
	if err != nil {
		t.Fatal(err)
	}
	want2 := decoded(t, `{"calls":[{"_tool":"decide","_reasoningForCall":"R","amount":"†input.amount","_outputPath":"†state.approval || †state.rejection"}],"output":null}`)
	if diff := cmp.Diff(want2, undone); diff != "" {
		t.Error(diff)
	}
}

func TestSolutionSchema_FittedToLlama(t *testing.T) {
	fitted := mustFit(t, solutionSchema(appendix(t), model.Config{}), "llama")
	got := text(t, fitted.Schema)
	for name, pattern := range map[string]string{"Ref": `^†[^\"\\\\]+$`, "Path": `^\\(?†[^\"\\\\]+$`} {
		if want := `"` + name + `":{"type":"string","pattern":"` + pattern + `"}`; !strings.Contains(got, want) {
			t.Errorf("there is no definition %s in %s", want, got)
		}
	}
	if !strings.Contains(got, `"required":["_tool","_reasoningForCall","amount"]`) || !strings.Contains(got, `{"type":"number","description":"{minimum: 0}"}`) {
		t.Error(got)
	}
}

func TestSolutionSchema_Excess(t *testing.T) {
	p := plan.Proposal{}
	for i := range 40 {
		p.Tools = append(p.Tools, offer(t, fmt.Sprintf("tool%d", i), `{"properties": {"first": {"type": "integer"}, "second": {"type": "boolean"}, "third": {"enum": ["x", "y"]}}}`, false))
	}
	exact, loose := solutionSchema(p, model.Config{}), looseSchema(p, model.Config{})
	for name, over := range map[string]bool{"anthropic": true, "openai": false, "ollama": true, "gemini": false} {
		if got := mustFit(t, exact, name).Excess; over != strings.Contains(got, " bytes, and "+name+" takes ") || !over && got != "" {
			t.Errorf("%s: %q", name, got)
		}
		if got := mustFit(t, loose, name).Excess; got != "" {
			t.Errorf("%s, loose: %q", name, got)
		}
	}
}

// TestSolutionSchema_Outcomes holds that the output of a delegate whose call has several alternatives
// may choose one, with a value or a reference, and the last as a failure.
func TestSolutionSchema_Outcomes(t *testing.T) {
	p := plan.Proposal{Schema: decoded(t, `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`), Outcomes: []string{"†a && †log", "†b"}}
	compiled, err := schema.New(decoded(t, text(t, solutionSchema(p, model.Config{}))))
	if err != nil {
		t.Fatal(err)
	}
	for output, fits := range map[string]bool{
		`null`: true, `"†state.x"`: true, `{"n": 1}`: true,
		`{"to": "†a && †log", "value": {"n": 1}}`:    true,
		`{"to": "†b", "value": {"n": "†state.n"}}`:   true,
		`{"to": "†b", "value": "†state.x"}`:          true,
		`{"to": "†b", "message": "no"}`:              true,
		`{"to": "†a && †log", "message": "no"}`:      false,
		`{"to": "†c", "value": {"n": 1}}`:            false,
		`{"to": "†b", "value": {"n": "one"}}`:        false,
		`{"to": "†b", "value": {"n": 1}, "more": 1}`: false,
	} {
		err := compiled.Validate(decoded(t, `{"calls": [], "output": `+output+`}`), "answer")
		if (err == nil) != fits {
			t.Errorf("%s: %v", output, err)
		}
	}
}
