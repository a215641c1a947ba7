package luastd

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// model: questions to the language models of the project. In Lua:
//
//	local model = require("model")
//	local answer = assert(model.ask {
//	  prompt = "Is this mail angry?", data = { mail = mail }, model = "fast",
//	  schema = { type = "object", properties = { angry = { type = "boolean" } } },
//	})
//
// Each model needs the permission model: --allow-model=fast, or allow.model in obelus.lua; a
// permission for everything does not cover it, since a question costs money and sends data out.
// What is used counts for the call and for the budget of its run, so that only an activity that a
// run calls can ask.
var modelFuncs = []Func{
	{"ask", modelAsk},
}

// ModelQuestion is a question that a script puts to a model.
type ModelQuestion struct {
	Model  string // its name in the settings; empty for the default one
	Prompt string
	Data   any // shown as data; nil for none
	Schema any // of the answer; nil for a text
}

// checkModel returns an error for a wrong entry of the permission model.
func checkModel(entry string) error {
	if entry == "" {
		return fmt.Errorf("%q is no model's name", entry)
	}
	return nil
}

// model.ask{prompt = …, data = …, schema = …, model = …} → answer | nil, err
//
// Without a schema the answer is a text. It fits the schema, and null alone is json.null. Waiting
// for it takes of the call's time.
func modelAsk(e *Env, L *lua.LState) int {
	opts := L.CheckTable(1)
	e.checkNames(L, 1, opts, "option", []string{"data", "model", "prompt", "schema"})
	text := func(name string, must bool) string {
		v := opts.RawGetString(name)
		given, ok := v.(lua.LString)
		if v == lua.LNil && !must {
			return ""
		}
		if !ok || given == "" {
			L.ArgError(1, name+" is a text that is not empty")
		}
		if !utf8.ValidString(string(given)) { // no JSON could carry it to the model
			L.ArgError(1, name+": the text is not valid UTF-8")
		}
		return string(given)
	}
	value := func(name string) any {
		v := opts.RawGetString(name)
		if v == lua.LNil {
			return nil
		}
		made, err := e.Codec.FromLua(v, name)
		if err != nil {
			L.ArgError(1, err.Error())
		}
		return made
	}
	q := ModelQuestion{Prompt: text("prompt", true), Model: text("model", false), Data: value("data"), Schema: value("schema")}
	switch q.Schema.(type) {
	case nil, map[string]any:
	default:
		L.ArgError(1, "schema is a JSON Schema, a table by name")
	}
	if q.Schema != nil && e.CheckSchema != nil {
		e.charge(L, weight(q.Schema))
		if err := e.CheckSchema(q.Schema); err != nil {
			L.ArgError(1, "schema: "+err.Error())
		}
	}
	e.Effect(L, "model.ask")
	e.charge(L, 100+len(q.Prompt)/16+weight(q.Data))
	if message := e.Grants.ModelRefusal(cmp.Or(q.Model, e.DefaultModel)); message != "" {
		return failed(L, message)
	}
	return e.ask(L, q)
}

// ModelRefusal returns why scripts may not ask a model, and nothing if they may.
func (g Grants) ModelRefusal(name string) string {
	lacks := func(g Grants) *missing {
		switch {
		case g.Model.Has(name) && (name != "" || g.Model.All):
			return nil
		case name == "":
			return &missing{kind: "model"}
		}
		return &missing{kind: "model", entries: []string{name}}
	}
	switch {
	case lacks(g) == nil:
		return ""
	case name == "":
		return g.refusal("asking the default model", lacks)
	}
	return g.refusal(fmt.Sprintf("asking the model %q", name), lacks)
}

// ask puts a question and pushes the answer. It raises if the call itself has no time left.
func (e *Env) ask(L *lua.LState, q ModelQuestion) int {
	if e.AskModel == nil {
		return failed(L, "there are no models here")
	}
	ctx, cancel := e.Context()
	defer cancel()
	answer, err := e.AskModel(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			e.interrupted(L)
		}
		return failed(L, err.Error())
	}
	if text, ok := answer.(string); ok {
		e.limit(L, len(text))
	}
	e.charge(L, weight(answer))
	if answer == nil {
		L.Push(Null)
	} else {
		L.Push(e.Codec.ToLua(answer))
	}
	return 1
}
