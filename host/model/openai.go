package model

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

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
	Choices []choice
	Usage   *struct {
		Prompt        *amount `json:"prompt_tokens"`
		Completion    *amount `json:"completion_tokens"`
		PromptDetails struct {
			Cached *amount `json:"cached_tokens"`
			Write  *amount `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning *amount `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Cost *amount
	}
	Error json.RawMessage
}

type choice struct {
	Index          json.RawMessage
	Delta, Message *openAIMessage
	FinishReason   json.RawMessage `json:"finish_reason"`
}

// number returns the index of the choice; 0 where the provider gives no number.
func (c choice) number() int {
	n, _ := strconv.Atoi(string(c.Index))
	return n
}

func compareChoices(a, b choice) int { return cmp.Compare(a.number(), b.number()) }

type openAIMessage struct {
	Content   json.RawMessage
	Refusal   json.RawMessage
	ToolCalls []struct {
		Index    json.RawMessage
		ID       string
		Function openAIFunction
	} `json:"tool_calls"`
	FunctionCall openAIFunction `json:"function_call"` // of older servers
}

type openAIFunction struct {
	Name      string
	Arguments json.RawMessage
}

func (w openAI) event(ev event, r *reply) error {
	if ev.name == "error" {
		if e, ok := parseError(ev.data); ok {
			return e
		}
		return &providerError{message: string(ev.data)}
	}
	return w.whole(ev.data, r)
}

func (openAI) whole(text []byte, r *reply) error {
	var c completion
	if err := decodeFields(text, &c); err != nil {
		return errBroken
	}
	if e, ok := errorOf(c.Error); ok {
		return e
	}
	r.served = cmp.Or(c.Model, r.served)
	for _, choice := range slices.SortedStableFunc(slices.Values(c.Choices), compareChoices) {
		if r.choice == nil {
			r.choice = new(choice.number())
		}
		if *r.choice == choice.number() {
			r.openAIMessage(choice.Delta)
			r.openAIMessage(choice.Message)
			r.end(choice.FinishReason)
		}
	}
	if u := c.Usage; u != nil {
		r.usage = tokens{known: u.Prompt != nil || u.Completion != nil, input: u.Prompt, output: u.Completion, cacheRead: u.PromptDetails.Cached,
			cacheWrite: u.PromptDetails.Write, reasoning: u.CompletionDetails.Reasoning, cost: u.Cost}
	}
	return nil
}

// openAIMessage adds a message, or a part of one, to the answer.
func (r *reply) openAIMessage(m *openAIMessage) {
	if m == nil {
		return
	}
	r.addContent("", m.Content)
	r.refuse(m.Refusal)
	for _, call := range m.ToolCalls {
		index := string(call.Index)
		if index == "null" {
			index = ""
		}
		r.addCall(index, call.ID, call.Function.Name, call.Function.Arguments)
	}
	r.addCall("function_call", "", m.FunctionCall.Name, m.FunctionCall.Arguments)
}
