package host

import (
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
	"obelus/store/memory"
)

// TestFormat_HeldAgainstValues holds that a text must be of its format wherever a schema
// stands, unless the setting formats is false.
func TestFormat_HeldAgainstValues(t *testing.T) {
	plans := map[string]string{
		"parameter": `return { { _tool = "p", mail = "nobody" } }`,
		"result":    `return { { _tool = "r", _outputPath = "†o" } }`,
		"prescribed": `return { tools = { m = { _activity = "any", _instance = { type = "string", format = "uuid" } } },
			calls = { { _tool = "m", _instance = "x" } } }`,
		"tool of the plan":    `return { tools = { q = { properties = { day = { format = "date" } } } }, calls = { { _tool = "q", day = "2023-02-29", _output = 1 } } }`,
		"tool of the context": `return { context = { { type = "tool", tool = { q = { properties = { day = { format = "date" } } } } } }, calls = { { _tool = "q", day = "x", _output = 1 } } }`,
		"output":              `return { calls = {}, output = { at = "yesterday" }, schema = { properties = { at = { format = "date-time" } } } }`,
		"message":             `return { context = { { type = "state", schema = { properties = { id = { format = "uuid" } } } }, { type = "state", id = "1" } }, calls = {} }`,
		"kind": `return { context = { { type = "state", schema = { properties = { id = { format = "uuid" } } } } },
			calls = { { _tool = "any", _outputPath = "†state.id" } } }`,
		"older draft": `return { calls = {}, output = "x", schema = { ["$schema"] = "http://json-schema.org/draft-07/schema#", format = "ipv4" } }`,
	}
	want := map[string]string{
		"parameter": "mail: not a valid email: ", "result": "result: not a valid uri: ", "prescribed": "_instance: not a valid uuid: ",
		"tool of the plan": "day: not a valid date: must be a day that there is", "tool of the context": "day: not a valid date: ",
		"output": "output.at: not a valid date-time: ", "message": "id: not a valid uuid: ", "kind": "state.id: not a valid uuid: ",
		"older draft": "output: not a valid ipv4: ",
	}
	for _, formats := range []string{"", "formats = true", "formats = false"} {
		files := map[string]string{
			"obelus.lua": "return { " + formats + " }",
			"activities/a.lua": `
				Tool.register("p", { properties = { mail = { type = "string", format = "email" } } })
				Tool.register("r", { _output = { format = "uri" } })
				Activity.register("p", function() end)
				Activity.register("r", function() return "nowhere" end)
				Activity.register("any", function() return "any" end)`,
		}
		for name, plan := range plans {
			files["plans/"+name+".lua"] = plan
		}
		g := open(t, files)
		for name := range plans {
			got := failureOf(t, g, "plans/"+name+".lua")
			if formats == "formats = false" && got != "" || formats != "formats = false" && !strings.Contains(got, want[name]) {
				t.Errorf("%s, %s: got %q", name, formats, got)
			}
		}
	}
	if _, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return {\n formats = 'no' }"})}); err == nil || !strings.Contains(err.Error(), `obelus.lua:2: formats must be true or false, not "no"`) {
		t.Error(err)
	}
}

// failureOf runs a plan of a project and gives all that went wrong.
func failureOf(t *testing.T, g *Generation, plan string) string {
	t.Helper()
	request, registry, err := g.Plan(plan)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := g.Settings().Runner(memory.New(), registry).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil {
		return err.Error()
	}
	all := outcome.Error
	for _, call := range outcome.Calls {
		if text, ok := call.Error["message"].(string); ok {
			all += text
		}
	}
	return all
}

// TestDefault_FilledIntoCalls holds that a parameter that a call leaves out has the default of
// its tool, for all who look at the call.
func TestDefault_FilledIntoCalls(t *testing.T) {
	const tool = `Tool.register("t", { required = { "n" }, properties = {
		n = { type = "integer", default = 1 }, text = { default = "†not.read" }, list = { type = "array", default = {} }, none = { default = json.null },
		fixed = { const = "c", default = "d" }, plain = { type = "string" },
		deep = { properties = { a = { default = true }, b = { properties = { c = { default = 2 } } } } },
		whole = { default = { x = 0 }, properties = { x = {}, y = { default = 3 } } },
	}})
	Activity.register("t", function(call) return call end)`
	tests := []struct{ name, call, want string }{
		{"left out", `{}`, `"fixed":"c","list":[],"n":1,"none":null,"text":"†not.read","whole":{"x":0,"y":3}`},
		{"given", `{ n = 5, text = "x", list = { 1 }, none = 1, whole = { x = 9, y = 8 } }`, `"fixed":"c","list":[1],"n":5,"none":1,"text":"x","whole":{"x":9,"y":8}`},
		{"null", `{ n = 2, list = json.array(), text = json.null, whole = { z = 1 } }`, `"fixed":"c","list":[],"n":2,"none":null,"text":null,"whole":{"y":3,"z":1}`},
		{"within", `{ deep = { b = {} } }`, `"deep":{"a":true,"b":{"c":2}},"fixed":"c","list":[],"n":1,"none":null,"text":"†not.read","whole":{"x":0,"y":3}`},
		{"by a reference", `{ n = "†input.n", deep = "†input.deep", plain = "†input.text" }`, `"deep":{},"fixed":"c","list":[],"n":7,"none":null,"plain":"p","text":"†not.read","whole":{"x":0,"y":3}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{
				"activities/a.lua": tool,
				"plans/p.lua": `local call = ` + test.call + `; call._tool, call._outputPath = "t", "†o.v"
					return { context = { { type = "input", n = 7, text = "p", deep = {} } }, calls = { call }, output = "†o.v" }`,
			})
			request, registry, err := g.Plan("plans/p.lua")
			if err != nil {
				t.Fatal(err)
			}
			log := memory.New()
			outcome, err := (&engine.Runner{Log: log, Registry: registry}).Run(t.Context(), engine.Start{Context: "c", Request: request})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"_outputPath":"†o.v","_tool":"t",` + test.want + `}`
			if got := string(store.EncodeJSON(outcome.Output)); got != want {
				t.Errorf("the activity got\n%s, want\n%s (%v)", got, want, outcome.Calls)
			}
			for m, err := range log.Messages(t.Context(), store.Filter{Context: "c", Kind: "o"}) {
				if err != nil {
					t.Fatal(err)
				}
				producer, _ := m.Producer.(map[string]any)
				if producer["text"] == "†not.read" || producer["fixed"] != "c" {
					t.Errorf("_call is %s", store.EncodeJSON(producer))
				}
				if _, ok := producer["whole"].(map[string]any)["y"]; !ok {
					t.Errorf("_call is %s", store.EncodeJSON(producer))
				}
			}
		})
	}
}

// TestDefault_NotFilledIntoData holds that defaults are for calls alone.
func TestDefault_NotFilledIntoData(t *testing.T) {
	g := open(t, map[string]string{
		"activities/a.lua": `Tool.register("t", { _output = { properties = { a = { default = 1 } } } })
			Activity.register("t", function() return { b = 2 } end)`,
		"plans/p.lua": `return { context = { { type = "state", schema = { properties = { v = { properties = { c = { default = 3 } } } } } } },
			calls = { { _tool = "t", _outputPath = "†state.v" } }, output = "†state", schema = { properties = { d = { default = 4 } } } }`,
	})
	if got, err := outputOf(t, g, "plans/p.lua"); err != nil || got != `{"v":{"b":2}}` {
		t.Errorf("got %s, %v", got, err)
	}
}
