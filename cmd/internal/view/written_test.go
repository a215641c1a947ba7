package view

import (
	"slices"
	"testing"
)

// TestWritten adds each text in pieces of every length: the lines are the same.
func TestWritten(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"plan": {`{"calls":[{"_outputPath":"†a.b","_tool":"query","by":["x","}"],"q":"\"{[","at":"†input.x","n":1.50},{"_tool":"end","o":{"a":[{"_tool":"no"}]}}],"output":null}`,
			[]string{`query at=†input.x by=["x","}"] n=1.50 q="\"{[" _outputPath=†a.b`, `end o={"a":[{"_tool":"no"}]}`}},
		"output": {"{\n  \"calls\": [ {\"_tool\": \"a\"} ],\n  \"output\": [ {\"b\": 1} ]\n}",
			[]string{"a", `output [{"b":1}]`}},
		"plan in Markdown": {"Here it is:\n```json\n{\"calls\":[{\"_tool\":\"a\",\"t\":\"two words\"}]}\n```\n",
			[]string{"Here it is:", `a t="two words"`}},
		"cut plan":   {`{"calls":[{"_tool":"a"},{"_tool":"b","x":[`, []string{"a", "(the text of the plan was cut off)"}},
		"no calls":   {`{"calls":[],"output":"nothing"}`, []string{"output nothing"}},
		"like calls": {`{"calls":[{"_tool":"a"},{"_tool":null},{"_tool":""}],"output":[{"_tool":"q"}]}`, []string{"a", `output [{"_tool":"q"}]`}},
		"no plan":    {`{"1.1":{"a":"calls"},"1.2":[{"_tool":"evil"}]}`, []string{`{"1.1":{"a":"calls"},"1.2":[{"_tool":"evil"}]}`}},
		"more":       {`{"calls":[{"_tool":"a","t":"\u001b[31m"}]} and more`, []string{`a t="\u001b[31m"`, "and more"}},
		"answer":     {`{"1.1": {"a": "}"}, "1.2": []}`, []string{`{"1.1":{"a":"}"},"1.2":[]}`}},
		"cut answer": {`{"a": "b`, []string{`{"a": "b`}},
		"prose":      {"Dear {you},\n\n[1] all is {well}.\n  Bye", []string{"Dear {you},", "[1] all is {well}.", "Bye"}},
		"brackets":   {`{]}}`, []string{`{]`, "}}"}},
		"nothing":    {" \n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var w Written // one for all: a text that has ended leaves nothing
			for size := 1; size <= len(test.text); size++ {
				var got []string
				for piece := range slices.Chunk([]byte(test.text), size) {
					got = append(got, w.Add(string(piece))...)
				}
				if got = append(got, w.Add("")...); !slices.Equal(got, test.want) {
					t.Fatalf("in pieces of %d bytes: %q, not %q", size, got, test.want)
				}
			}
		})
	}
}

// TestWritten_EarlyLines holds that a call is shown before the plan is complete.
func TestWritten_EarlyLines(t *testing.T) {
	var w Written
	if got := w.Add(`{"calls":[{"_tool":"a"}`); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
}
