package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// send sends an answer over the request's wire. The channel is closed once the client is gone.
func (s *Server) send(w http.ResponseWriter, r *Request, fault Fault, reply Reply, gone <-chan struct{}) {
	if !r.Stream || fault == Plain {
		body := openAIWhole(r, reply, fault)
		if r.Wire == "anthropic" {
			body = anthropicWhole(r, reply)
		}
		s.check(r, body, false)
		sendJSON(w, http.StatusOK, body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := openAIEvents(r, reply, fault)
	if r.Wire == "anthropic" {
		events = anthropicEvents(r, reply, fault)
	}
	for i, ev := range events {
		s.check(r, ev.data, true)
		text := ev.text()
		switch {
		case fault == CRLF:
			text = ": a comment\r\n" + strings.ReplaceAll(text, "\n", "\r\n")
		case fault == Cut && i == len(events)/2:
			writePiece(w, text[:len(text)/2])
			panic(http.ErrAbortHandler)
		case fault == Stuck && i == 1:
			<-gone
			panic(http.ErrAbortHandler)
		case fault == Split:
			for j := range len(text) {
				writePiece(w, text[j:j+1])
			}
			continue
		case fault == Huge && i == 1:
			for filler := ": " + strings.Repeat("x", 1<<16) + "\n\n"; writePiece(w, filler); {
			}
			panic(http.ErrAbortHandler)
		}
		writePiece(w, text)
	}
}

// writePiece sends a piece at once. It reports whether it could.
func writePiece(w http.ResponseWriter, text string) bool {
	_, err := io.WriteString(w, text)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	return err == nil
}

// check calls CheckSent with a body or an event of the OpenAI wire.
func (s *Server) check(r *Request, v any, isEvent bool) {
	if _, isText := v.(string); s.CheckSent == nil || r.Wire != "openai" || isText {
		return
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = s.CheckSent(text, isEvent)
	}
	if err != nil {
		s.t.Errorf("what the server sends: %v\n%s", err, text)
	}
}

// serverEvent is an event of a stream.
type serverEvent struct {
	name string
	data any // a string is sent as it is
}

// text returns the event as it is sent.
func (e serverEvent) text() string {
	data, ok := e.data.(string)
	if !ok {
		text, _ := json.Marshal(e.data)
		data = string(text)
	}
	if e.name != "" {
		return fmt.Sprintf("event: %s\ndata: %s\n\n", e.name, data)
	}
	return fmt.Sprintf("data: %s\n\n", data)
}

// object is a JSON object.
type object = map[string]any

// pieces cuts a text into some of a few characters, and at most 16.
func pieces(text string) (all []string) {
	runes := []rune(text)
	size := max(len(runes)/16+1, 3)
	for len(runes) > 0 {
		n := min(size, len(runes))
		all = append(all, string(runes[:n]))
		runes = runes[n:]
	}
	return all
}

// openAIFinish returns the reason why an answer ends.
func openAIFinish(reply Reply) string {
	if reply.Finish != "" {
		return reply.Finish
	}
	return "stop" // also of a function that had to be called
}

func openAIUsage(reply Reply) object {
	u := object{"prompt_tokens": reply.Input, "completion_tokens": reply.Output, "total_tokens": reply.Input + reply.Output,
		"prompt_tokens_details":     object{"cached_tokens": reply.CacheRead, "cache_write_tokens": reply.CacheWrite},
		"completion_tokens_details": object{"reasoning_tokens": reply.Reasoning}}
	if reply.Cost != 0 {
		u["cost"] = reply.Cost
	}
	return u
}

// isTool reports whether an answer calls the function.
func isTool(r *Request, reply Reply) bool {
	return r.Mode == "tools" && reply.Refusal == "" && json.Valid([]byte(reply.Text))
}

func openAITool(arguments string) object {
	return object{"id": "call_1", "type": "function", "function": object{"name": "answer", "arguments": arguments}}
}

// openAIWhole returns an answer that comes at once.
func openAIWhole(r *Request, reply Reply, fault Fault) object {
	message := object{"role": "assistant", "content": reply.Text, "refusal": nil}
	switch {
	case reply.Refusal != "":
		message["content"], message["refusal"] = nil, reply.Refusal
	case isTool(r, reply):
		message["content"], message["tool_calls"] = nil, []any{openAITool(reply.Text)}
	}
	whole := object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": fmt.Sprint(r.Body["model"], "-served"),
		"choices": []any{object{"index": 0, "message": message, "finish_reason": openAIFinish(reply), "logprobs": nil}}}
	if fault != NoUsage {
		whole["usage"] = openAIUsage(reply)
	}
	return whole
}

// openAIEvents returns the events of a streamed answer.
func openAIEvents(r *Request, reply Reply, fault Fault) (events []serverEvent) {
	chunk := func(choices []any, more object) {
		o := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": fmt.Sprint(r.Body["model"], "-served"), "choices": choices}
		for name, v := range more {
			o[name] = v
		}
		events = append(events, serverEvent{data: o})
	}
	delta := func(d object) {
		chunk([]any{object{"index": 0, "delta": d, "finish_reason": nil}}, nil)
	}
	delta(object{"role": "assistant", "content": ""})
	switch {
	case reply.Refusal != "":
		for _, piece := range pieces(reply.Refusal) {
			delta(object{"refusal": piece})
		}
	case isTool(r, reply):
		call := openAITool("")
		call["index"] = 0
		delta(object{"tool_calls": []any{call}})
		for _, piece := range pieces(reply.Text) {
			delta(object{"tool_calls": []any{object{"index": 0, "function": object{"arguments": piece}}}})
		}
	default:
		for _, piece := range pieces(reply.Text) {
			delta(object{"content": piece})
		}
	}
	if fault == ErrorEvent {
		return append(events, serverEvent{"error", object{"error": object{"message": "it broke", "type": "server_error", "code": nil, "param": nil}}})
	}
	chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": openAIFinish(reply)}}, nil)
	if fault != NoUsage {
		chunk([]any{}, object{"usage": openAIUsage(reply)})
	}
	return append(events, serverEvent{data: "[DONE]"})
}

// anthropicStop returns the reason why an answer ends.
func anthropicStop(r *Request, reply Reply) string {
	switch {
	case reply.Finish != "":
		return reply.Finish
	case reply.Refusal != "":
		return "refusal"
	case isTool(r, reply):
		return "tool_use"
	}
	return "end_turn"
}

func anthropicUsage(reply Reply, output int) object {
	return object{"input_tokens": reply.Input - reply.CacheRead - reply.CacheWrite, "output_tokens": output,
		"cache_read_input_tokens": reply.CacheRead, "cache_creation_input_tokens": reply.CacheWrite}
}

// anthropicWhole returns an answer that comes at once.
func anthropicWhole(r *Request, reply Reply) object {
	content := []any{object{"type": "text", "text": reply.Text + reply.Refusal}}
	if isTool(r, reply) {
		content = []any{object{"type": "tool_use", "id": "toolu_1", "name": "answer", "input": json.RawMessage(reply.Text)}}
	}
	return object{"id": "msg_1", "type": "message", "role": "assistant", "model": fmt.Sprint(r.Body["model"], "-served"), "content": content,
		"stop_reason": anthropicStop(r, reply), "stop_sequence": nil, "usage": anthropicUsage(reply, reply.Output)}
}

// anthropicEvents returns the events of a streamed answer.
func anthropicEvents(r *Request, reply Reply, fault Fault) (events []serverEvent) {
	add := func(name string, o object) {
		o["type"] = name
		events = append(events, serverEvent{name, o})
	}
	start := object{"id": "msg_1", "type": "message", "role": "assistant", "model": fmt.Sprint(r.Body["model"], "-served"), "content": []any{},
		"stop_reason": nil, "stop_sequence": nil}
	if fault != NoUsage {
		start["usage"] = anthropicUsage(reply, 1)
	}
	add("message_start", object{"message": start})
	block, kind, field := object{"type": "text", "text": ""}, "text_delta", "text"
	if isTool(r, reply) {
		block, kind, field = object{"type": "tool_use", "id": "toolu_1", "name": "answer", "input": object{}}, "input_json_delta", "partial_json"
	}
	add("content_block_start", object{"index": 0, "content_block": block})
	add("ping", object{})
	for _, piece := range pieces(reply.Text + reply.Refusal) {
		add("content_block_delta", object{"index": 0, "delta": object{"type": kind, field: piece}})
	}
	if fault == ErrorEvent {
		add("error", object{"error": object{"type": "overloaded_error", "message": "Overloaded"}})
		return events
	}
	add("content_block_stop", object{"index": 0})
	end := object{"delta": object{"stop_reason": anthropicStop(r, reply), "stop_sequence": nil}}
	if fault != NoUsage {
		end["usage"] = object{"output_tokens": reply.Output}
	}
	add("message_delta", end)
	add("message_stop", object{})
	return events
}
