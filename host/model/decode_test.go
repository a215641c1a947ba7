package model

import (
	"encoding/json"
	"strings"
	"testing"

	"obelus/store"
)

// TestDecodeAnswer has texts of models with the value that they answer, or with a part of the reason
// why they are asked again.
func TestDecodeAnswer(t *testing.T) {
	for _, test := range []struct {
		text    string
		want    string // as JSON; empty where it is refused
		refused string
	}{
		{`{"a":1}`, `{"a":1}`, ""},
		{" \n{\"a\":1}\n", `{"a":1}`, ""},
		{`null`, `null`, ""},
		{`"text"`, `"text"`, ""},
		{"```json\n{\"a\":1}\n```", `{"a":1}`, ""},
		{"```\n{\"a\":1}\n```", `{"a":1}`, ""},
		{"```json {\"a\":1}```", `{"a":1}`, ""},
		{"```json\n{\"a\":1}", `{"a":1}`, ""},
		{"~~~json\n{\"a\":1}\n~~~", `{"a":1}`, ""},
		{"Here it is:\n```json\n{\"a\":{\"b\":\"}\"}}\n```\nIs there {anything} else?", `{"a":{"b":"}"}}`, ""},
		{"Sure [1]:\n```json\n{\"a\":1}\n```\nand {more}", `{"a":1}`, ""},
		{`{not} this, but {"a":1}.`, `{"a":1}`, ""},
		{`the list is [{"a":1}] here`, `[{"a":1}]`, ""},
		{`the list is [1,2] here`, `[1,2]`, ""},
		{"```json\n\"text\"\n```", `"text"`, ""},
		{"```\ntrue\n```", `true`, ""},
		{"`42`", `42`, ""},
		{"<answer>{\"a\":1}</answer>", `{"a":1}`, ""},
		{`{"a":"</think> [1]"}`, `{"a":"</think> [1]"}`, ""},
		{"```json\n{\"a\":\"<think>```\"}\n```", "{\"a\":\"<think>```\"}", ""},
		{`{"a":"🙂 \u00e9 \ud83d\ude00"}`, `{"a":"🙂 é 😀"}`, ""},

		// Thoughts before the answer.
		{"<think>{\"a\":0} perhaps</think> {\"a\":1}", `{"a":1}`, ""},
		{"<thinking>{\"a\":0}</thinking>\n{\"a\":1}", `{"a":1}`, ""},
		{"<reasoning mode=\"long\">{\"a\":0}</reasoning>{\"a\":1}", `{"a":1}`, ""},
		{"<THINK>\n{\"a\":</THINK>\n```json\n{\"a\":1}\n```", `{"a":1}`, ""},
		{"<thought>a</thought><reflection>{}</reflection>{\"a\":1}", `{"a":1}`, ""},
		{"<seed:think>{\"a\":0}</seed:think>{\"a\":1}", `{"a":1}`, ""},
		{"◁think▷{\"a\":0}◁/think▷{\"a\":1}", `{"a":1}`, ""},
		{"[THINK]{\"a\":0}[/THINK]{\"a\":1}", `{"a":1}`, ""},
		{"<|channel|>analysis<|message|>{\"a\":0}<|end|><|channel|>final <|constrain|>json<|message|>{\"a\":1}", `{"a":1}`, ""},
		{"{\"a\":0} perhaps, \\frac{a}{b</think>{\"a\":1}", `{"a":1}`, ""},
		{"<think>one <think>{\"a\":0}</think> {\"a\":2}</think> {\"a\":1}", `{"a":1}`, ""},
		{"Let me see. <think>{\"a\":0}</think>{\"a\":1}", `{"a":1}`, ""},
		{"<think>no</think> 42", `42`, ""},

		// Thoughts that do not end, or come after the answer, and no answer outside of them.
		{"<think>{\"a\":0}", "", "ends within its thoughts: there is no end of <think>"},
		{"Well. <thinking>{\"a\":0}", "", "no end of <thinking>"},
		{"<think>{\"a\":0}</think>", "", "not JSON"},
		{"<think>{\"a\":0}</think> I can't.", "", "not JSON"},
		{"{\"a\":0}</think>", "", "not JSON"},
		{"{\"a\":1}<think>no, {\"a\":2}</think>", "", "two answers"},
		{"<think>a</think>{\"a\":1}<think>no</think>{\"a\":2}", "", "two answers"},
		{"{\"a\":1}<think>{\"a\":2,}", "", "comma before the }"},

		// Several answers.
		{`{"a":1} {"a":2}`, "", "two answers"},
		{`{"a":1}{"a":1}`, "", "two answers"},
		{"{\"a\":1}\nCorrected: {\"a\":2}", "", "two answers"},
		{"You could say {\"a\":1}, but:\n```json\n{\"a\":2}\n```", "", "two answers"},
		{"You could say {\"a\":1}. But:\n```json\n{\"a\":2}\n```", "", "two answers"},
		{"```json\n{\"a\":1}\n```\nCorrected:\n```json\n{\"a\":2}\n```", "", "two answers"},
		{"```json\n{\"a\":1}\n```\nCorrected: {a: 2}", "", "not JSON"},
		{`[{"a":1}] or {"a":2}`, "", "two answers"},
		{`["a"] or {"a":2}`, "", "two answers"},
		{`[1] or [2]`, "", "not JSON"},

		// A value within a broken one.
		{`{"name":"Ann","friend":{"name":"Bo"},}`, "", "there is a comma before the }, at line 1 column 38"},
		{`{"name":"Ann","friend":{"name":"Bo"}`, "", "it ends too early"},
		{`"name":"Ann","friend":{"name":"Bo"}}`, "", "there is a } too many"},
		{`"name":"Ann","friend":{"name":"Bo"}`, "", "there is a : before the value"},
		{`{"friend":{"name":"Bo"}}}`, "", "there is a } too many"},
		{`{'name':'Ann','friend':{"name":"Bo"}}`, "", "straight double quotes"},
		{"{\"name\":\"Ann\", // the first\n\"friend\":{\"name\":\"Bo\"}}", "", "JSON has no comments, at line 1 column 16"},
		{`{name:"Ann",friend:{"name":"Bo"}}`, "", "not JSON"},
		{`{"name":"Ann" "friend":{"name":"Bo"}}`, "", "not JSON"},
		{`{"a":"x,"friend":{"name":"Bo"}}`, "", "not JSON"},
		{`{"a":True,"friend":{"name":"Bo"}}`, "", "not JSON"},
		{`{"a":1,"a":2} is it`, "", `"a" stands twice`},
		{`{"a":"\ud83d"} is it`, "", "half a character"},
		{`{"1.1":{"good":true}},`, "", "there is a comma after the value"},
		{`{"a":1},{"a":2}]`, "", "a ] too many"},
		{`[{"a":1},{"a":2},]`, "", "comma before the ]"},
		{`{"a": …, "b": {"c":1}}`, "", "not JSON"},
		{"It is:\n```json\n{\"a\":1,}\n```", "", "comma before the }, at line 3 column 8"},
		{`"{"a":1}"`, "", `there is a " after the value`},
		{`{anything {"a":1}}`, "", "not JSON"},

		{"", "", "the answer is empty"},
		{" \n", "", "the answer is empty"},
		{"I don't know.", "", "not JSON"},
		{"{not JSON}", "", "not JSON"},
		{strings.Repeat("[", 100000), "", "not JSON"},
		{strings.Repeat(`{"a":"`, 1000), "", "not JSON"},
		{strings.Repeat("{</think>", 100000), "", "not JSON"},
	} {
		v, err := decodeAnswer(test.text, false)
		got := ""
		if err == nil {
			got = string(store.EncodeJSON(v))
		}
		refused := err != nil && test.want == "" && strings.Contains(err.Error(), test.refused)
		if got != test.want || err != nil && !refused {
			t.Errorf("%.80q: %s, %v; want %s%s", test.text, got, err, test.want, test.refused)
		}
	}
}

// TestDecodeAnswer_Plan holds that a plan is the whole text after the thoughts, or its only block of
// code.
func TestDecodeAnswer_Plan(t *testing.T) {
	const plan = `{"calls":[],"output":1}`
	for text, isPlan := range map[string]bool{
		plan:                                    true,
		"```json\n" + plan + "\n```":            true,
		"```\n" + plan:                          true,
		"Here:\n```json\n" + plan + "\n```\nOk": true,
		"<think>{\"calls\":[9]}</think>" + plan: true,
		"thoughts {\"calls\":[9]}</think>\n```json\n" + plan + "\n```": true,
		"The plan is " + plan:                                  false,
		plan + " is the plan":                                  false,
		"```lua\nx\n```\n```json\n" + plan + "\n```":           false,
		"```lua\nx\n```\n" + plan:                              false,
		"```json\n" + plan + "\n```\n```lua\nx\n```":           false,
		"{\"calls\":[9]}. Better:\n```json\n" + plan + "\n```": false,
		"```json\n" + plan + "\n```\nBetter: {\"calls\":[9]}":  false,
		"<thinking>{\"calls\":[9]}</thinking>It is: " + plan:   false,
		"{\"calls\":[{\"calls\":[],\"output\":1},]}":           false,
		"<think>" + plan:                                       false,
		"<think>" + plan + "</think>":                          false,
	} {
		v, err := decodeAnswer(text, true)
		if (err == nil) != isPlan || isPlan && string(store.EncodeJSON(v)) != plan {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
}

// FuzzDecodeAnswer holds that an answer is at the top level of its text, alone, and that whatever
// surrounds it a value within brackets is none.
func FuzzDecodeAnswer(f *testing.F) {
	f.Add("a ", " c", false)
	f.Add("<think>", "</think>{}", true)
	f.Fuzz(func(t *testing.T, before, after string, isPlan bool) {
		const value = `{"a":[1]}`
		if v, err := decodeAnswer(before+value+after, isPlan); err == nil && !json.Valid(store.EncodeJSON(v)) {
			t.Errorf("%v", v)
		}
		if v, err := decodeAnswer(`{"b":`+value+before+value, isPlan); err == nil && string(store.EncodeJSON(v)) == value && !strings.Contains(before, ">") &&
			!strings.Contains(before, "▷") && !strings.Contains(before, "]") {
			t.Errorf("%q: %v", before, v)
		}
	})
}
