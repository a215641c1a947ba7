package model

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"obelus/engine/lazyregexp"
	"obelus/host/model/fit"
)

// anthropic is the wire of Anthropic's Messages.
type anthropic struct{}

// anthropicVersion is the version of the interface that is spoken here.
const anthropicVersion = "2023-06-01"

func (anthropic) path() string { return "v1/messages" }

func (anthropic) authorize(h http.Header, key string) {
	h.Set("Anthropic-Version", anthropicVersion)
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

func (anthropic) body(p *prompt) fit.Object {
	var system, content []any
	if p.system != "" {
		system = append(system, anthropicText(p.system, p.stable == 0))
	}
	for i, text := range p.blocks {
		content = append(content, anthropicText(text, i == p.stable-1))
	}
	b := fit.Object{member("model", p.config.Model), member("max_tokens", p.params.MaxTokens)}
	if system != nil {
		b = append(b, member("system", system))
	}
	b = append(b, member("messages", []any{fit.Object{member("role", "user"), member("content", content)}}))
	if p.params.Temperature != nil {
		b = append(b, member("temperature", *p.params.Temperature))
	}
	if p.params.TopP != nil {
		b = append(b, member("top_p", *p.params.TopP))
	}
	var output fit.Object
	if p.mode == modeSchema || p.mode == modeLoose {
		output = fit.Object{member("format", fit.Object{member("type", "json_schema"), member("schema", p.schema)})}
	}
	if p.mode == modeTools {
		b = append(b,
			member("tools", []any{fit.Object{member("name", functionName), member("description", functionText), member("input_schema", p.schema)}}),
			member("tool_choice", fit.Object{member("type", "tool"), member("name", functionName), member("disable_parallel_tool_use", true)}))
	} else if thinks(p.params.Effort) { // a model that must call a function may not think
		budget, fixed := thinkingBudget(p.config.Model, p.params.Effort, p.params.MaxTokens)
		if fixed {
			b = append(b, member("thinking", fit.Object{member("type", "enabled"), member("budget_tokens", budget)}))
		} else {
			b = append(b, member("thinking", fit.Object{member("type", "adaptive")}))
			output = append(output, member("effort", anthropicEffort(p.params.Effort)))
		}
	}
	if output != nil {
		b = append(b, member("output_config", output))
	}
	return append(b, member("stream", true))
}

// anthropicText returns a block of text. last marks it as the end of the part of the prompt that
// the provider caches.
func anthropicText(text string, last bool) fit.Object {
	block := fit.Object{member("type", "text"), member("text", text)}
	if last {
		block = append(block, member("cache_control", fit.Object{member("type", "ephemeral")}))
	}
	return block
}

// thinks reports whether an effort asks for reasoning.
func thinks(effort string) bool { return effort != "" && effort != "none" }

// anthropicEffort returns an effort in the words of the provider.
func anthropicEffort(effort string) string {
	if effort == "minimal" {
		return "low"
	}
	return effort
}

// minThinking is the least number of tokens that a budget of thinking may have.
const minThinking = 1024

// budgetedModel is the name of a model that thinks within a number of tokens. Those from version
// 4.6 on choose it themselves, by the effort.
var budgetedModel = lazyregexp.New(`claude-(?:[a-z]+-)?(\d)(?:[-.](\d)\b)?`)

// thinkingBudget returns how many tokens a model may think for, as a part of all that it may write,
// and whether it takes such a bound at all.
func thinkingBudget(model, effort string, most int) (budget int, ok bool) {
	match := budgetedModel().FindStringSubmatch(model)
	if match == nil {
		return 0, false
	}
	major, _ := strconv.Atoi(match[1])
	minor, _ := strconv.Atoi(match[2])
	if major > 4 || major == 4 && minor >= 6 {
		return 0, false
	}
	part := map[string]int{"minimal": 10, "low": 20, "medium": 50}[effort] // per cent
	if part == 0 {
		part = 80
	}
	return max(most*part/100, minThinking), true
}

// anthropicEvent is an event of a stream. An answer that comes at once is a message.
type anthropicEvent struct {
	Type         string
	Message      *anthropicMessage
	Index        json.RawMessage
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        contentPart
	Usage        *anthropicUsage
	Error        json.RawMessage
}

type anthropicMessage struct {
	Model      string
	Content    json.RawMessage
	StopReason json.RawMessage `json:"stop_reason"`
	Usage      *anthropicUsage
	Error      json.RawMessage
}

type anthropicUsage struct {
	Input   *amount `json:"input_tokens"`
	Output  *amount `json:"output_tokens"`
	Read    *amount `json:"cache_read_input_tokens"`
	Write   *amount `json:"cache_creation_input_tokens"`
	Details struct {
		Thinking *amount `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (anthropic) event(ev event, r *reply) error {
	var e anthropicEvent
	if decodeFields(ev.data, &e) != nil {
		return errBroken
	}
	switch cmp.Or(e.Type, ev.name) {
	case "error":
		if wrong, ok := errorOf(e.Error); ok {
			return wrong
		}
		return &providerError{message: string(ev.data)}
	case "message_start":
		if e.Message != nil {
			r.served = e.Message.Model
			r.anthropicUsage(e.Message.Usage)
		}
	case "content_block_start":
		r.addContent(string(e.Index), e.ContentBlock)
	case "content_block_delta":
		r.addPart(string(e.Index), e.Delta)
	case "message_delta":
		r.anthropicUsage(e.Usage)
		r.end(e.Delta.StopReason)
	case "message_stop":
		r.ended = true
	}
	return nil
}

func (anthropic) whole(text []byte, r *reply) error {
	var m anthropicMessage
	if decodeFields(text, &m) != nil {
		return errBroken
	}
	if wrong, ok := errorOf(m.Error); ok {
		return wrong
	}
	r.served = m.Model
	r.addContent("", m.Content)
	r.anthropicUsage(m.Usage)
	r.end(m.StopReason)
	return nil
}

// anthropicUsage stores a report of tokens. Its counts replace the ones of an earlier report. The
// provider counts cached tokens apart from the rest of the input.
func (r *reply) anthropicUsage(u *anthropicUsage) {
	if u == nil {
		return
	}
	t := &r.usage
	t.apart = true
	for _, n := range []struct{ to, from **amount }{
		{&t.input, &u.Input}, {&t.output, &u.Output}, {&t.cacheRead, &u.Read}, {&t.cacheWrite, &u.Write}, {&t.reasoning, &u.Details.Thinking},
	} {
		if *n.from != nil {
			*n.to = *n.from
			t.known = true
		}
	}
}
