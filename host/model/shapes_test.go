package model

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// shape is an answer as some server sends it.
type shape struct {
	name, wire, mode string
	body             string
	want             string // the value, as JSON; empty where there is none
	problem          string // a part of the reason why there is none
	tokens           [2]int64
}

// streamed returns events of a stream, each of one line.
func streamed(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

// chunk returns an event of Chat Completions with a delta and more members.
func chunk(delta string, more ...string) string {
	return `{"choices":[{"index":0,"delta":` + delta + strings.Join(append([]string{""}, more...), ",") + `}]}`
}

// openAIEnd ends a stream of Chat Completions in order.
const openAIEnd = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// toolChunk returns an event with a part of a call of the function.
func toolChunk(call string) string { return chunk(`{"tool_calls":[` + call + `]}`) }

// whole returns an answer of Chat Completions at once.
func whole(message string, more ...string) string {
	return `{"choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// good is the answer that most shapes have, and goodText a JSON string with it.
const (
	good     = `{"1.1":{"good":true}}`
	goodText = `"{\"1.1\":{\"good\":true}}"`
)

// Events of Messages.
const (
	anthropicStart = `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":11,"output_tokens":1}}}`
	anthropicEnd   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`
	textStart      = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
)

func textDelta(text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + text + `}}`
}

func toolStart(index, input string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"t` + index + `","name":"answer","input":` + input + `}}`
}

func toolDelta(index, text string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":` + text + `}}`
}

// messages returns an answer of Messages at once.
func messages(content string, more ...string) string {
	return `{"type":"message","content":` + content + strings.Join(append([]string{""}, more...), ",") + `}`
}

// callShapes are calls of the function.
var callShapes = []shape{
	{name: "counted from 1, after a text", body: streamed(chunk(`{"content":"I'll answer."}`), toolChunk(`{"index":1,"id":"c","function":{"name":"answer","arguments":""}}`),
		toolChunk(`{"index":1,"function":{"arguments":"{\"1.1\":{\"good\""}}`), toolChunk(`{"index":1,"function":{"arguments":":true}}"}}`), openAIEnd), want: good},
	{name: "without an index", body: streamed(toolChunk(`{"id":"c","function":{"name":"answer","arguments":"{\"1.1\":"}}`), toolChunk(`{"function":{"arguments":"{\"good\":true}}"}}`), openAIEnd), want: good},
	{name: "an index at first alone", body: streamed(toolChunk(`{"index":2,"id":"c","function":{"name":"answer","arguments":"{\"1.1\":"}}`), toolChunk(`{"index":null,"function":{"arguments":"{\"good\":true}}"}}`), openAIEnd), want: good},
	{name: "an index that is text", body: streamed(toolChunk(`{"index":"0","function":{"name":"answer","arguments":"{\"1.1\":"}}`), toolChunk(`{"index":"0","function":{"arguments":"{\"good\":true}}"}}`), openAIEnd), want: good},
	{name: "an id for each part", body: streamed(toolChunk(`{"index":0,"id":"a","function":{"name":"answer","arguments":"{\"1.1\":"}}`), toolChunk(`{"index":0,"id":"b","function":{"arguments":"{\"good\""}}`),
		toolChunk(`{"index":0,"id":"c","function":{"arguments":":true}}"}}`), openAIEnd), want: good},
	{name: "an id for each part, without an index", body: streamed(toolChunk(`{"id":"a","function":{"name":"answer","arguments":"{\"1.1\":"}}`), toolChunk(`{"id":"b","function":{"name":"answer","arguments":"{\"good\":true}}"}}`), openAIEnd), want: good},
	{name: "an index for each part", body: streamed(toolChunk(`{"index":0,"function":{"name":"answer","arguments":"{\"1.1\":"}}`), toolChunk(`{"index":1,"function":{"arguments":"{\"good\":true}}"}}`), openAIEnd), want: good},
	{name: "an id that is a number", body: streamed(toolChunk(`{"index":0,"id":7,"function":{"name":"answer","arguments":`+goodText+`}}`), openAIEnd), want: good},
	{name: "an older server", body: streamed(chunk(`{"function_call":{"name":"answer","arguments":"{\"1.1\":"}}`), chunk(`{"function_call":{"arguments":"{\"good\":true}}"}}`), openAIEnd), want: good},
	{name: "an older server, at once", body: whole(`{"content":null,"function_call":{"name":"answer","arguments":` + goodText + `}}`), want: good},
	{name: "in both ways", body: whole(`{"function_call":{"name":"answer","arguments":` + goodText + `},"tool_calls":[{"id":"a","function":{"name":"answer","arguments":` + goodText + `}}]}`), want: good},
	{name: "arguments as an object, streamed", body: streamed(toolChunk(`{"index":0,"function":{"name":"answer","arguments":`+good+`}}`), openAIEnd), want: good},
	{name: "arguments as an object, at once", body: whole(`{"tool_calls":[{"function":{"name":"answer","arguments":{ "1.1": {"good": true} }}}]}`), want: good},
	{name: "arguments as an object with escapes", body: whole(`{"tool_calls":[{"function":{"name":"answer","arguments":{"a":"\"\\ \ud83d\ude00 née"}}}]}`), want: `{"a":"\"\\ 😀 née"}`},
	{name: "the same call twice", body: whole(`{"tool_calls":[{"id":"a","function":{"name":"answer","arguments":` + goodText + `}},{"id":"b","function":{"name":"answer","arguments":` + goodText + `}}]}`), want: good},
	{name: "two calls", body: whole(`{"tool_calls":[{"id":"a","function":{"name":"answer","arguments":` + goodText + `}},{"id":"b","function":{"name":"answer","arguments":"{}"}}]}`), problem: "two answers"},
	{name: "two calls side by side", body: streamed(toolChunk(`{"index":0,"id":"a","function":{"name":"answer","arguments":"{\"a\":"}},{"index":1,"id":"b","function":{"name":"answer","arguments":"{\"a\":"}}`),
		toolChunk(`{"index":0,"function":{"arguments":"1"}},{"index":1,"function":{"arguments":"2"}}`), toolChunk(`{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"}"}}`), openAIEnd), problem: "two answers"},
	{name: "two calls without ids", body: whole(`{"tool_calls":[{"function":{"name":"answer","arguments":"{}"}},{"function":{"name":"answer","arguments":"{\"a\":1}"}}]}`), problem: "two answers"},
	{name: "a call of another function", body: whole(`{"tool_calls":[{"id":"a","function":{"name":"search","arguments":"{}"}},{"id":"b","function":{"name":"answer","arguments":` + goodText + `}}]}`), want: good},
	{name: "the function under another name", body: whole(`{"tool_calls":[{"id":"a","function":{"name":"functions.answer","arguments":` + goodText + `}}]}`), want: good},
	{name: "calls that are none", body: whole(`{"content":` + goodText + `,"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":""}}],"function_call":null}`), want: good},
	{name: "calls of another type", body: whole(`{"content":` + goodText + `,"tool_calls":"none","function_call":false}`), want: good},
	{name: "no call but its text", body: whole(`{"content":"The answer: {\"1.1\":{\"good\":true}}","tool_calls":[]}`), want: good},
	{name: "arguments that are broken", body: whole(`{"tool_calls":[{"function":{"name":"answer","arguments":"{\"1.1\":{\"good\":true},}"}}]}`), problem: "there is a comma before the }"},
	{name: "a part of content", body: whole(`{"content":[{"type":"text","text":"Well."},{"type":"tool_use","id":"a","name":"answer","input":` + good + `}]}`), want: good},
	{name: "half a character in arguments", body: streamed(toolChunk(`{"index":0,"function":{"name":"answer","arguments":"{\"a\":\"\ud83d"}}`), toolChunk(`{"index":0,"function":{"arguments":"\ude00\"}"}}`), openAIEnd), want: `{"a":"😀"}`},

	{name: "a block", wire: wireAnthropic, body: streamed(anthropicStart, toolStart("0", "{}"), toolDelta("0", `"{\"1.1\":"`), toolDelta("0", `"{\"good\":true}}"`), anthropicEnd), want: good},
	{name: "a block counted from 1", wire: wireAnthropic, body: streamed(anthropicStart, textStart, textDelta(`"I'll answer."`), toolStart("1", "{}"), toolDelta("1", `"{\"1.1\":"`), toolDelta("1", `"{\"good\":true}}"`), anthropicEnd), want: good},
	{name: "a block that is whole at first", wire: wireAnthropic, body: streamed(anthropicStart, toolStart("0", good), anthropicEnd), want: good},
	{name: "a block without its beginning", wire: wireAnthropic, body: streamed(anthropicStart, toolDelta("0", `"{\"1.1\":"`), toolDelta("0", `"{\"good\":true}}"`), anthropicEnd), want: good},
	{name: "parts that are objects", wire: wireAnthropic, body: streamed(anthropicStart, toolStart("0", "{}"), toolDelta("0", good), anthropicEnd), want: good},
	{name: "two blocks", wire: wireAnthropic, body: streamed(anthropicStart, toolStart("0", "{}"), toolDelta("0", `"{}"`), toolStart("1", "{}"), toolDelta("1", goodText), anthropicEnd), problem: "two answers"},
	{name: "at once", wire: wireAnthropic, body: messages(`[{"type":"thinking","thinking":"{}"},{"type":"tool_use","id":"a","name":"answer","input":`+good+`}]`, `"stop_reason":"tool_use"`), want: good},
	{name: "input as text", wire: wireAnthropic, body: messages(`[{"type":"tool_use","name":"answer","input":`+goodText+`}]`, `"stop_reason":"tool_use"`), want: good},
	{name: "half a character in a block", wire: wireAnthropic, body: streamed(anthropicStart, toolStart("0", "{}"), toolDelta("0", `"{\"a\":\"\ud83d"`), toolDelta("0", `"\ude00\"}"`), anthropicEnd), want: `{"a":"😀"}`},
}

// sideShapes are whole answers with fields beside them that are not as they should be.
func sideShapes() (all []shape) {
	for name, usage := range map[string]string{
		"a fraction": `{"prompt_tokens":10.0,"completion_tokens":5}`, "text": `{"prompt_tokens":"10","completion_tokens":"5"}`, "a power": `{"prompt_tokens":1e1,"completion_tokens":0.5e1}`,
		"parts of other types": `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":[],"completion_tokens_details":"x","cost":"free"}`,
		"parts beyond all":     `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":1e30},"completion_tokens_details":{"reasoning_tokens":-1},"cost":-1e308}`,
	} {
		all = append(all,
			shape{name: "usage: " + name, body: streamed(chunk(`{"content":`+goodText+`}`, `"finish_reason":"stop"`), `{"choices":[],"usage":`+usage+`}`), want: good, tokens: [2]int64{10, 5}},
			shape{name: "usage at once: " + name, body: whole(`{"content":`+goodText+`}`, `"usage":`+usage), want: good, tokens: [2]int64{10, 5}})
		usage = strings.NewReplacer("prompt_tokens\"", "input_tokens\"", "completion_tokens\"", "output_tokens\"").Replace(usage)
		all = append(all, shape{name: "usage: " + name, wire: wireAnthropic, body: messages(`[{"type":"text","text":`+goodText+`}]`, `"stop_reason":"end_turn","usage":`+usage), want: good, tokens: [2]int64{10, 5}})
	}
	for name, usage := range map[string]string{
		"a list": `[]`, "a text": `"none"`, "a number": `7`, "null": `null`, "empty": `{}`, "beyond int64": `{"prompt_tokens":92233720368547758070,"completion_tokens":1e400}`, "negative": `{"prompt_tokens":-100,"completion_tokens":-1}`,
		"lists": `{"prompt_tokens":[1],"completion_tokens":{}}`, "the largest": `{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, "the least": `{"prompt_tokens":-9223372036854775808,"completion_tokens":-9223372036854775808}`,
		"halves": `{"prompt_tokens":1.5,"completion_tokens":0.1}`, "texts": `{"prompt_tokens":"NaN","completion_tokens":"-Infinity","cost":"NaN"}`, "no numbers": `{"prompt_tokens":NaN,"completion_tokens":Infinity}`, "more than was sent": `{"prompt_tokens":1000000,"completion_tokens":1000000}`,
	} {
		all = append(all, shape{name: "no usage: " + name, body: streamed(chunk(`{"content":`+goodText+`}`, `"finish_reason":"stop"`), `{"choices":[],"usage":`+usage+`}`), want: good})
		usage = strings.NewReplacer("prompt_tokens\"", "input_tokens\"", "completion_tokens\"", "output_tokens\"").Replace(usage)
		all = append(all, shape{name: "no usage: " + name, wire: wireAnthropic, body: streamed(textDelta(goodText), anthropicEnd, `{"type":"message_delta","usage":`+usage+`}`, `{"type":"message_stop"}`), want: good})
	}
	for _, field := range []string{
		`"refusal":false`, `"refusal":null`, `"refusal":""`, `"refusal":{}`, `"refusal":[]`, `"refusal":0`, `"audio":1`, `"annotations":"x"`, `"role":7`, `"tool_calls":{}`, `"tool_calls":[null]`, `"function_call":"auto"`, `"reasoning_content":{"a":1}`,
	} {
		all = append(all, shape{name: field, body: streamed(chunk(`{"content":`+goodText+`,`+field+`}`), openAIEnd), want: good}, shape{name: field + " at once", body: whole(`{"content":` + goodText + `,` + field + `}`), want: good})
	}
	for _, field := range []string{
		`"error":{}`, `"error":false`, `"error":null`, `"error":""`, `"error":[]`, `"error":{"code":null,"message":""}`, `"model":7`, `"model":{}`, `"id":[]`, `"created":"x"`, `"object":1`, `"message":"ok"`, `"detail":[1]`, `"system_fingerprint":{}`, `"usage":[[]]`,
	} {
		all = append(all,
			shape{name: field, body: streamed(`{"choices":[{"index":0,"delta":{"content":`+goodText+`}}],`+field+`}`, openAIEnd), want: good},
			shape{name: field + " at once", body: whole(`{"content":`+goodText+`}`, field), want: good},
			shape{name: field, wire: wireAnthropic, body: messages(`[{"type":"text","text":`+goodText+`}]`, `"stop_reason":"end_turn",`+field), want: good},
			shape{name: field + " streamed", wire: wireAnthropic, body: streamed(`{"type":"message_start",`+field+`}`, textDelta(goodText), anthropicEnd), want: good})
	}
	for _, index := range []string{`"0"`, `null`, `1`, `"x"`, `{}`, `0.5`, `-1`} {
		body := `{"choices":[{"index":` + index + `,"delta":{"content":` + goodText + `}}]}`
		all = append(all, shape{name: "index " + index, body: streamed(body, strings.Replace(openAIEnd, `"index":0`, `"index":`+index, 1)), want: good},
			shape{name: "index " + index, wire: wireAnthropic, body: streamed(strings.Replace(textDelta(goodText), `"index":0`, `"index":`+index, 1), anthropicEnd), want: good})
	}
	for _, reason := range []string{`7`, `true`, `{"type":"stop"}`, `["stop"]`, `"eos"`, `"STOP"`} {
		all = append(all, shape{name: "reason " + reason, body: streamed(chunk(`{"content":`+goodText+`}`), chunk(`{}`, `"finish_reason":`+reason)), want: good},
			shape{name: "reason at once " + reason, body: strings.Replace(whole(`{"content":`+goodText+`}`), `"stop"`, reason, 1), want: good},
			shape{name: "reason " + reason, wire: wireAnthropic, body: streamed(textDelta(goodText), strings.Replace(anthropicEnd, `"end_turn"`, reason, 1)), want: good},
			shape{name: "reason at once " + reason, wire: wireAnthropic, body: messages(`[{"type":"text","text":`+goodText+`}]`, `"stop_reason":`+reason), want: good})
	}
	return append(all,
		shape{name: "reasons that are none", body: streamed(chunk(`{"content":"{\"1.1\":"}`, `"finish_reason":"null"`), chunk(`{"content":"{\"good\":true}}"}`, `"finish_reason":""`), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, `[DONE]`), want: good, tokens: [2]int64{10, 5}},
		shape{name: "no reason at once", wire: wireAnthropic, body: messages(`[{"type":"text","text":` + goodText + `}]`), want: good},
		shape{name: "an error after the end", body: streamed(chunk(`{"content":`+goodText+`}`, `"finish_reason":"stop"`), `{"error":{"message":"no usage"}}`), want: good},
		shape{name: "no JSON after the end", body: streamed(chunk(`{"content":`+goodText+`}`, `"finish_reason":"stop"`), `bye`), want: good},
		shape{name: "events that are none", body: streamed(`null`, `7`, `[]`, `"ping"`, `{}`, chunk(`{"content":`+goodText+`}`), openAIEnd), want: good},
		shape{name: "choices that are none", body: streamed(`{"choices":null}`, `{"choices":{}}`, `{"choices":[null,"x"]}`, chunk(`null`), chunk(`"x"`), chunk(`{"content":`+goodText+`}`), openAIEnd), want: good},
		shape{name: "content in parts", body: streamed(chunk(`{"content":[{"type":"text","text":"{\"1.1\":"},{"type":"thinking","text":"{}"},7,null]}`), chunk(`{"content":{"type":"output_text","text":"{\"good\""}}`), chunk(`{"content":[":true}}"]}`), openAIEnd), want: good},
		shape{name: "content as text", wire: wireAnthropic, body: messages(goodText, `"stop_reason":"end_turn"`), want: good},
		shape{name: "deltas without a type", wire: wireAnthropic, body: streamed(strings.Replace(textDelta(goodText), `"type":"text_delta",`, "", 1), anthropicEnd), want: good},
		shape{name: "types as names of events", wire: wireAnthropic, body: "event: content_block_delta\n" + streamed(`{"index":0,"delta":{"text":`+goodText+`}}`) + streamed(anthropicEnd), want: good},
	)
}

// textShapes are texts that a stream cuts, and texts that are none.
var textShapes = []shape{
	{name: "between the halves of a character", body: streamed(chunk(`{"content":"{\"1.1\":{\"good\":true,\"why\":\"\ud83d"}`), chunk(`{"content":"\ude00 x\"}}"}`), openAIEnd), want: `{"1.1":{"good":true,"why":"😀 x"}}`},
	{name: "between the halves of a character", wire: wireAnthropic, body: streamed(textDelta(`"{\"why\":\"\ud83d"`), textDelta(`"\ude00 x\"}"`), anthropicEnd), want: `{"why":"😀 x"}`},
	{name: "within the bytes of a character", body: streamed(chunk("{\"content\":\"{\\\"why\\\":\\\"\xf0\x9f\"}"), chunk("{\"content\":\"\x98\"}"), chunk("{\"content\":\"\x80 x\\\"}\"}"), openAIEnd), want: `{"why":"😀 x"}`},
	{name: "within the bytes of a character", wire: wireAnthropic, body: streamed(textDelta("\"{\\\"why\\\":\\\"\xf0\x9f\""), textDelta("\"\x98\x80 x\\\"}\""), anthropicEnd), want: `{"why":"😀 x"}`},
	{name: "after an escaped backslash", body: streamed(chunk(`{"content":"{\"why\":\"\\\\ud83d"}`), chunk(`{"content":" x\"}"}`), openAIEnd), want: `{"why":"\\ud83d x"}`},
	{name: "half a character within the JSON", body: streamed(chunk(`{"content":"{\"why\":\"\\ud83d"}`), chunk(`{"content":"\\ude00\"}"}`), openAIEnd), want: `{"why":"😀"}`},
	{name: "half a character alone", body: streamed(chunk(`{"content":"{\"why\":\"\ud83d x\"}"}`), openAIEnd), problem: `the answer is no text: \ud83d is half a character`},
	{name: "half a character alone, at once", body: whole(`{"content":"{\"why\":\"\ude00\"}"}`), problem: `\ude00 is half a character`},
	{name: "half a character alone", wire: wireAnthropic, body: messages(`[{"type":"text","text":"{\"why\":\"\ud83d\"}"}]`, `"stop_reason":"end_turn"`), problem: `half a character`},
	{name: "half a character in arguments", mode: modeTools, body: whole(`{"tool_calls":[{"function":{"name":"answer","arguments":"{\"why\":\"\ud83d\"}"}}]}`), problem: `half a character`},
	{name: "a byte that is no text", body: streamed(chunk("{\"content\":\"{\\\"why\\\":\\\"\xff\\\"}\"}"), openAIEnd), problem: "the answer is no text: not valid UTF-8"},
	{name: "a byte that is no text", wire: wireAnthropic, body: streamed(textDelta("\"{\\\"why\\\":\\\"\xff\\\"}\""), anthropicEnd), problem: "not valid UTF-8"},
}

// TestShapes holds what is the answer, of what servers send: over both wires, streamed and not, whole
// and byte by byte. Each is one request.
func TestShapes(t *testing.T) {
	for i := range callShapes {
		callShapes[i].mode = modeTools
	}
	for _, s := range append(append(sideShapes(), callShapes...), textShapes...) {
		if s.mode == "" {
			s.mode = modeText
		}
		if s.wire == "" {
			s.wire = wireOpenAI
		}
		for _, inBytes := range []bool{false, true} {
			carries := carrier(func() io.Reader {
				if inBytes {
					return iotest.OneByteReader(strings.NewReader(s.body))
				}
				return strings.NewReader(s.body)
			})
			c, err := NewClient(Config{Name: "wise", Wire: s.wire, Mode: s.mode, Model: "m", URL: "http://localhost/v1", Tries: 1}, Options{Transport: carries})
			if err != nil {
				t.Fatal(err)
			}
			var shown strings.Builder
			a, err := c.Ask(t.Context(), question(), plan.NewMeter(nil, func(text string) { shown.WriteString(text) }))
			if err != nil {
				t.Errorf("%s, %s: %v", s.wire, s.name, err)
				continue
			}
			got := ""
			if a.Value.Set {
				got = string(store.EncodeJSON(a.Value.Value))
			}
			if got != s.want || !strings.Contains(a.Problem, s.problem) || a.Refusal != "" || a.CutOff || a.Usage.Requests != 1 {
				t.Errorf("%s, %s: %+v; want %s%s", s.wire, s.name, a, s.want, s.problem)
			}
			isEstimate := s.tokens == [2]int64{}
			if u := a.Usage; !isEstimate && (u.Input != s.tokens[0] || u.Output != s.tokens[1] || u.Estimated) || u.Input <= 0 || u.Output <= 0 || u.Input > 10000 || u.Output > 10000 || u.Cost != nil || u.CacheRead+u.Reasoning != 0 {
				t.Errorf("%s, %s: %+v; want %v", s.wire, s.name, u, s.tokens)
			}
			if s.mode == modeText && got != "" && shown.String() != a.Text {
				t.Errorf("%s, %s: shown as it came: %q", s.wire, s.name, shown.String())
			}
		}
	}
}

// carrier is a transport that answers with what a function returns.
type carrier func() io.Reader

// RoundTrip implements [http.RoundTripper].
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(c()), Request: r}, nil
}

// TestShapes_AskedAgain holds that a model which gave a part of an answer, or several, is asked again
// with the true reason and with what it wrote: in every mode, for calls, plans and questions.
func TestShapes_AskedAgain(t *testing.T) {
	const friend = `{"name":"Ann","friend":{"name":"Bo"},}`
	const thought = `<thinking>First idea: {"calls":[{"_tool":"pay","amount":500}],"output":null}. Too much.</thinking>`
	const draft, pay = `{"calls":[{"_tool":"pay","amount":500}],"output":null}`, `{"calls":[{"_tool":"pay","amount":50}],"output":null}`
	for _, wire := range []string{wireOpenAI, wireAnthropic} {
		for _, mode := range []string{modeTools, modeJSON, modeText} {
			for _, test := range []struct {
				kind, first, reason, want string // reason is empty where the first answer counts
			}{
				{"question", friend, "there is a comma before the }, at line 1 column 38", `{"friend":{"name":"Bo"},"name":"Ann"}`},
				{"question", strings.TrimSuffix(friend, ",}"), "it ends too early", `{"friend":{"name":"Bo"},"name":"Ann"}`},
				{"call", good + ",", "there is a comma after the value", "true"},
				{"call", `{"1.1":{"good":false}} Corrected: ` + good, "two answers", "true"},
				{"plan", thought + pay, "", "50"},
				{"plan", thought + "\n```json\n" + pay + "\n```", "", "50"},
				{"plan", draft + "\nBetter:\n" + pay, "two answers", "50"},
				{"plan", "My plan: " + draft, "a plan is the whole answer", "50"},
				{"plan", "<think>" + draft, "ends within its thoughts", "50"},
			} {
				if mode == modeJSON && wire == wireAnthropic {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					second := map[string]string{"question": strings.Replace(friend, ",}", "}", 1), "call": good, "plan": pay}[test.kind]
					asked := 0
					answers := carrier(func() io.Reader {
						asked++
						text := string(store.EncodeJSON([]string{test.first, second}[min(asked-1, 1)]))
						if wire == wireAnthropic {
							return strings.NewReader(messages(`[{"type":"text","text":`+text+`}]`, `"stop_reason":"end_turn"`))
						}
						return strings.NewReader(whole(`{"content":` + text + `}`))
					})
					c := Config{Name: "wise", Wire: wire, Mode: mode, Model: "m", URL: "http://localhost/v1"}
					client, err := NewClient(c, Options{Transport: answers})
					if err != nil {
						t.Fatal(err)
					}
					kept := &keptRequests{Asker: client}
					got := askKind(t, New(c, kept), test.kind)
					if got != test.want {
						t.Errorf("%s, %s, %s: %s; want %s", wire, mode, test.first, got, test.want)
					}
					last := strings.Join(kept.all[len(kept.all)-1].Blocks, "\n")
					again := test.reason != ""
					if again != (len(kept.all) == 2) || again && (!strings.Contains(last, test.reason) || !strings.Contains(last, test.first)) {
						t.Errorf("%s, %s, %s: asked %d times, last:\n%s", wire, mode, test.first, len(kept.all), last)
					}
				})
			}
		}
	}
}

// askKind asks a question of a script, a call or a plan, and returns the answer as JSON: of a call
// what it decides, of a plan the amount.
func askKind(t *testing.T, m *Model, kind string) string {
	t.Helper()
	object := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}, "friend": map[string]any{"type": "object"}}}
	var value any
	var err error
	switch kind {
	case "question":
		value, err = m.Ask(t.Context(), AskInput{Prompt: "Who?", Schema: object, Schemas: []schema.Option{}}, nil)
	case "call":
		q := plan.Question{ID: "1.1", Call: map[string]any{"_tool": "judge"}, Tool: map[string]any{}, Schema: map[string]any{"type": "object", "required": []any{"good"}}}
		value, err = m.Answer(t.Context(), q)
		if result, ok := value.(plan.Result); ok {
			value = result.Value.(map[string]any)["good"]
		}
	case "plan":
		var solution *plan.Solution
		if solution, err = m.Propose(t.Context(), plan.Proposal{}); err == nil {
			value = solution.Calls[0].Call.(map[string]any)["amount"]
		}
	}
	if err != nil {
		return err.Error()
	}
	return string(store.EncodeJSON(value))
}

// keptRequests keeps the requests of an asker.
type keptRequests struct {
	Asker
	all []*Request
}

// Ask implements [Asker].
func (k *keptRequests) Ask(ctx context.Context, r *Request, meter *plan.Meter) (*Answer, error) {
	k.all = append(k.all, r)
	return k.Asker.Ask(ctx, r, meter)
}
