package trace

import (
	"context"
	"errors"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Conventions is the version of the OpenTelemetry semantic conventions that spans follow. Those for
// generative AI are in development, so it is named with each trace.
const Conventions = "1.41.0"

// Trace is a run with its delegates.
type Trace struct {
	ID      TraceID
	Context string // of the outermost run
	Spans   []Span // a parent before its children
}

// Span is a part of a trace: a run, a call, or the requests to a model for one of them.
type Span struct {
	ID, Parent SpanID // Parent is zero for the run itself
	Name       string
	Client     bool // it asks another machine
	Start, End time.Time
	Attributes []Attribute
	Failed     bool
	Message    string // of a failure; only with [Options].Content
}

// Attribute describes a span. Its value is a string, an int64, a float64, a bool or a []string.
type Attribute struct {
	Key   string
	Value any
}

// ModelInfo is a model as its provider knows it.
type ModelInfo struct{ Provider, Model string }

// Options select the content of a trace.
type Options struct {
	// Models are the models of the settings by their names there. The spans of others have the name
	// as their model, and no provider.
	Models map[string]ModelInfo

	// Content adds the arguments of calls as their plans have them, their results, and the texts of
	// failures, which may contain either.
	Content bool
}

// Of returns the trace of the newest run of a context. A delegate's run is part of the trace of the
// run around it, which is returned then. Its error is an [ErrNoRun] where nothing has run.
func Of(ctx context.Context, in journal.Context, o Options) (*Trace, error) {
	root, err := in.Root(ctx)
	if err != nil {
		return nil, err
	}
	in = in.Sibling(root)
	last, err := in.LastRun(ctx)
	if err != nil {
		return nil, err
	}
	if last.Tick == 0 {
		return nil, ErrNoRun
	}
	b := &builder{options: o, trace: &Trace{ID: traceID(root, last.Event.First), Context: root}}
	if _, err := b.run(ctx, in, last.Event.First, SpanID{}); err != nil {
		return nil, err
	}
	return b.trace, nil
}

// ErrNoRun is the error for a context in which nothing has run.
var ErrNoRun = errors.New("nothing has run in the context")

// builder collects the spans of a trace.
type builder struct {
	options Options
	trace   *Trace
}

// run adds the spans of a run and of all in it, and returns the place of the first.
func (b *builder) run(ctx context.Context, in journal.Context, first int, parent SpanID) (int, error) {
	r, err := readRun(ctx, in, first, b.options.Content)
	if err != nil {
		return 0, err
	}
	operation, named := "invoke_workflow", "gen_ai.workflow.name"
	if parent != (SpanID{}) {
		operation, named = "invoke_agent", "gen_ai.agent.name"
	}
	span := Span{ID: spanID("run", in.Name, tickID(first)), Parent: parent, Name: operation, Start: r.began, End: r.ended}
	span.text("gen_ai.operation.name", operation)
	if r.plan != "" {
		span.Name += " " + r.plan
		span.text(named, r.plan)
	}
	span.text("obelus.context", in.Name)
	span.text("obelus.status", string(r.status))
	switch r.status {
	case journal.RunFailed, journal.RunCancelled, journal.RunInterrupted:
		b.fail(&span, string(r.status), r.failure)
	}
	if b.options.Content && r.output != nil {
		span.text("obelus.output", string(store.EncodeJSON(r.output)))
	}
	at := b.add(span)
	for _, planned := range r.planned {
		b.chat(span.ID, spanID("chat", in.Name, tickID(planned.tick)), planned.usage, planned.date.Add(-took(planned.usage)), planned.date, in.Name, "")
	}
	for _, call := range r.calls {
		if err := b.call(ctx, in, r, call, span.ID); err != nil {
			return 0, err
		}
	}
	b.stretch(at)
	return at, nil
}

// call adds the spans of a call that has begun, of its requests to a model, and of its delegate.
func (b *builder) call(ctx context.Context, in journal.Context, r *recordedRun, call journal.Record, parent SpanID) error {
	began, err := time.Parse(time.RFC3339Nano, call.Started)
	if err != nil { // it has not begun
		return nil
	}
	span := Span{ID: spanID("call", in.Name, call.Call), Parent: parent, Name: "execute_tool " + call.Tool, Start: began, End: r.endOf(call, began)}
	span.text("gen_ai.operation.name", "execute_tool")
	span.text("gen_ai.tool.name", call.Tool)
	span.text("gen_ai.tool.type", "function")
	span.text("gen_ai.tool.call.id", in.Name+"/"+call.Call)
	span.text("obelus.context", in.Name)
	span.text("obelus.call", call.Call)
	span.text("obelus.status", call.Outcome())
	if call.Instance != "" {
		span.text("obelus.instance", call.Instance)
	}
	if call.Attempts > 1 {
		span.number("obelus.attempts", int64(call.Attempts))
	}
	failure := call.Error
	if call.Handled != nil {
		failure = call.Handled
	}
	if call.Status == journal.Failed || call.Handled != nil {
		code, _ := failure["code"].(string)
		message, _ := failure["message"].(string)
		b.fail(&span, code, message)
	}
	if b.options.Content {
		r.addContent(&span, call)
	}
	at := b.add(span)
	if u := call.Model; u != nil && u.Requests > 0 {
		b.chat(span.ID, spanID("chat", in.Name, call.Call), u, began, minTime(began.Add(took(u)), span.End), in.Name, call.Call)
	}
	if call.Child != "" {
		if _, err := b.run(ctx, in.Sibling(call.Child), 1, span.ID); err != nil && !errors.Is(err, store.ErrNoContext) && !errors.Is(err, ErrNoRun) {
			return err
		}
	}
	b.stretch(at)
	return nil
}

// providers are the providers of the settings that the conventions know by other names.
var providers = map[string]string{"gemini": "gcp.gemini", "azure": "azure.ai.openai"}

// chat adds the span of the requests to a model for a call or a plan.
func (b *builder) chat(parent, id SpanID, u *plan.Usage, start, end time.Time, in, call string) {
	info, known := b.options.Models[u.Model]
	if !known {
		info.Model = u.Model
	}
	if name, ok := providers[info.Provider]; ok {
		info.Provider = name
	}
	span := Span{ID: id, Parent: parent, Name: "chat " + info.Model, Client: true, Start: start, End: end}
	span.text("gen_ai.operation.name", "chat")
	for _, a := range []struct{ key, value string }{
		{"gen_ai.provider.name", info.Provider}, {"gen_ai.request.model", info.Model}, {"gen_ai.response.model", u.Served},
		{"obelus.context", in}, {"obelus.call", call}, {"obelus.model", u.Model}, {"obelus.mode", u.Mode}, {"obelus.request", u.Request},
	} {
		if a.value != "" {
			span.text(a.key, a.value)
		}
	}
	if u.Finish != "" {
		span.Attributes = append(span.Attributes, Attribute{"gen_ai.response.finish_reasons", []string{u.Finish}})
	}
	span.number("gen_ai.usage.input_tokens", u.Input)
	span.number("gen_ai.usage.output_tokens", u.Output)
	for _, a := range []struct {
		key   string
		value int64
	}{
		{"gen_ai.usage.cache_read.input_tokens", u.CacheRead}, {"gen_ai.usage.cache_creation.input_tokens", u.CacheWrite},
		{"gen_ai.usage.reasoning.output_tokens", u.Reasoning},
	} {
		if a.value > 0 {
			span.number(a.key, a.value)
		}
	}
	span.number("obelus.requests", int64(u.Requests))
	if u.Cost != nil {
		span.Attributes = append(span.Attributes, Attribute{"obelus.cost", *u.Cost})
	}
	if u.Estimated {
		span.Attributes = append(span.Attributes, Attribute{"obelus.estimated", true})
	}
	b.add(span)
}

// add adds a span, and returns its place.
func (b *builder) add(span Span) int {
	if span.End.Before(span.Start) {
		span.End = span.Start
	}
	b.trace.Spans = append(b.trace.Spans, span)
	return len(b.trace.Spans) - 1
}

// stretch has a span begin no later than those that were added after it, and end no earlier: they
// are in it, and clocks of processes differ.
func (b *builder) stretch(at int) {
	span := &b.trace.Spans[at]
	for _, inside := range b.trace.Spans[at+1:] {
		span.Start = minTime(span.Start, inside.Start)
		if inside.End.After(span.End) {
			span.End = inside.End
		}
	}
}

// fail marks a span as failed. The conventions have _OTHER for errors without a code.
func (b *builder) fail(span *Span, code, message string) {
	span.Failed = true
	if code == "" {
		code = "_OTHER"
	}
	span.text("error.type", code)
	if b.options.Content {
		span.Message = message
	}
}

func (s *Span) text(key, value string) { s.Attributes = append(s.Attributes, Attribute{key, value}) }

func (s *Span) number(key string, n int64) { s.Attributes = append(s.Attributes, Attribute{key, n}) }

// took returns how long requests to a model took.
func took(u *plan.Usage) time.Duration { return time.Duration(u.MS * float64(time.Millisecond)) }

func minTime(a, b time.Time) time.Time {
	return slices.MinFunc([]time.Time{a, b}, time.Time.Compare)
}
