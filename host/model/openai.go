package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"obelus/host/model/fit"
)

// openAI is the wire of OpenAI's Chat Completions, which many providers speak.
type openAI struct{}

func (openAI) path() string { return "chat/completions" }

func (openAI) authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// azureOpenAI differs in the header of the key.
type azureOpenAI struct{ openAI }

func (azureOpenAI) authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Api-Key", key)
	}
}

func (openAI) body(p *prompt) fit.Object {
	var messages []any
	if p.system != "" {
		messages = append(messages, fit.Object{member("role", "system"), member("content", p.system)})
	}
	messages = append(messages, fit.Object{member("role", "user"), member("content", strings.Join(p.blocks, "\n\n"))})
	b := fit.Object{member("model", p.config.Model), member("messages", messages)}
	limit := "max_tokens" // which not all others know by its newer name
	if p.config.Provider == "openai" || p.config.Provider == "azure" {
		limit = "max_completion_tokens"
	}
	b = append(b, member(limit, p.params.MaxTokens))
	if p.params.Temperature != nil {
		b = append(b, member("temperature", *p.params.Temperature))
	}
	if p.params.TopP != nil {
		b = append(b, member("top_p", *p.params.TopP))
	}
	if p.params.Seed != nil {
		b = append(b, member("seed", *p.params.Seed))
	}
	if p.params.Effort != "" {
		b = append(b, member("reasoning_effort", p.params.Effort))
	}
	switch p.mode {
	case modeSchema, modeLoose:
		b = append(b, member("response_format", fit.Object{member("type", "json_schema"),
			member("json_schema", fit.Object{member("name", functionName), member("strict", true), member("schema", p.schema)})}))
	case modeTools:
		b = append(b,
			member("tools", []any{fit.Object{member("type", "function"),
				member("function", fit.Object{member("name", functionName), member("description", functionText), member("parameters", p.schema)})}}),
			member("tool_choice", fit.Object{member("type", "function"), member("function", fit.Object{member("name", functionName)})}))
	case modeJSON:
		b = append(b, member("response_format", fit.Object{member("type", "json_object")}))
	}
	if p.config.Provider == "openrouter" {
		b = append(b, member("usage", fit.Object{member("include", true)})) // with the cost
	}
	return append(b, member("stream", true), member("stream_options", fit.Object{member("include_usage", true)}))
}

// completion is an answer, or a part of one.
type completion struct {
	Model   string
	Choices []struct {
		Index          int
		Delta, Message *openAIMessage
		FinishReason   string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt        int64 `json:"prompt_tokens"`
		Completion    int64 `json:"completion_tokens"`
		PromptDetails struct {
			Cached int64 `json:"cached_tokens"`
			Write  int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Cost *float64
	}
	Error json.RawMessage
}

type openAIMessage struct {
	Content   json.RawMessage
	Refusal   string
	ToolCalls []struct {
		Index    int
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// text returns the content: a text, or the texts of its parts.
func (m *openAIMessage) text() string {
	if len(m.Content) < 2 || string(m.Content) == "null" {
		return ""
	}
	var text string
	if inner := m.Content[1 : len(m.Content)-1]; m.Content[0] == '"' && bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, part := range parts {
		if part.Type == "text" {
			text += part.Text
		}
	}
	return text
}

func (w openAI) event(ev event, r *reply) error {
	if string(ev.data) == "[DONE]" {
		r.ended = true
		return nil
	}
	if ev.name == "error" {
		if e, ok := parseError(ev.data); ok {
			return e
		}
		return &providerError{message: string(ev.data)}
	}
	return w.read(ev.data, r)
}

func (w openAI) whole(text []byte, r *reply) error {
	if err := w.read(text, r); err != nil {
		return err
	}
	if r.finish == "" && r.answer() == "" && !r.refused {
		return errNoJSON
	}
	r.ended = true
	return nil
}

func (openAI) read(text []byte, r *reply) error {
	var c completion
	if err := json.Unmarshal(text, &c); err != nil {
		return errBroken
	}
	if len(c.Error) > 0 {
		if e, ok := parseError(text); ok {
			return e
		}
	}
	if c.Model != "" {
		r.served = c.Model
	}
	for _, choice := range c.Choices {
		if choice.Index == 0 {
			r.openAIMessage(choice.Delta)
			r.openAIMessage(choice.Message)
			r.openAIFinish(choice.FinishReason)
		}
	}
	if u := c.Usage; u != nil {
		r.usage = tokens{known: true, input: u.Prompt, output: u.Completion, cacheRead: u.PromptDetails.Cached,
			cacheWrite: u.PromptDetails.Write, reasoning: u.CompletionDetails.Reasoning, cost: u.Cost}
	}
	return nil
}

// openAIMessage adds a message, or a part of one, to the answer.
func (r *reply) openAIMessage(m *openAIMessage) {
	if m == nil {
		return
	}
	r.write(m.text())
	if m.Refusal != "" {
		r.refused = true
		r.refusal.WriteString(m.Refusal)
	}
	for _, call := range m.ToolCalls {
		if call.Index != 0 || call.ID != "" && r.called != "" && call.ID != r.called {
			continue // a second call
		}
		if r.called == "" {
			r.called = cmp.Or(call.ID, functionName)
		}
		r.writeArgs(call.Function.Arguments)
	}
}

// openAIFinish notes why the answer ended.
func (r *reply) openAIFinish(reason string) {
	if reason == "" {
		return
	}
	r.finish, r.ended = reason, true
	switch reason {
	case "length":
		r.cutOff = true
	case "content_filter":
		r.refused = true
	case "error":
		r.ended = false // of the provider's, in the middle
	}
}
