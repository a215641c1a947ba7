package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/store"
)

// Model answers latent calls: those that no activity runs. It is called from
// several goroutines at once.
type Model interface {
	// Answer gives a call's result, which is held to the question's schema and
	// may be what the value of a [Result] may be. Its error is a [*Failure] where
	// a plan may count on it. It has [DefaultTimeout], and is asked once: then ctx
	// is done, and whatever it gives later is a timeout, which is a failure. A
	// model that is to be given more time, or asked again, is an [Activity]; one
	// that is asked again within that time does so itself.
	Answer(ctx context.Context, q Question) (any, error)
}

// ModelFunc makes a model of a Go function.
type ModelFunc func(ctx context.Context, q Question) (any, error)

// Answer calls f.
func (f ModelFunc) Answer(ctx context.Context, q Question) (any, error) {
	if f == nil {
		return nil, errors.New("the model is a nil function")
	}
	return f(ctx, q)
}

// Question is a latent call as a model is asked it (protocol §5). Its values are
// those of an [Invocation], shared, and must not be changed: a model that is not to
// send all of them sends copies.
type Question struct {
	// Messages is the model's view of the log as the tick began, and of what
	// the calls that this one depends on wrote since; see [ModelView].
	Messages []map[string]any

	// Thoughts are the latent calls without an output path before this one in
	// its tick: {"call": …, "output": …}, output only where there is one.
	Thoughts []map[string]any

	Call   map[string]any // every parameter resolved; of meta-properties _tool and _instance
	Tool   any            // the tool's schema
	Schema any            // that the answer must fit, or nil
	Key    string         // context/tick.position
}

// asking is the activity of latent calls that a model answers.
type asking struct{ model Model }

// Run implements [Activity].
func (a asking) Run(ctx context.Context, in Invocation) (Result, error) {
	v, err := a.model.Answer(ctx, *in.question)
	return Result{Value: v}, err
}

// ModelView is what a model sees of a context: its messages without what is
// hidden from models, those that touch the scopes last and marked as "scoped",
// the ones to use. Within an instance, those of others are left out.
func ModelView(messages []*store.Message, scopes []store.Path, instance string) []map[string]any {
	var view, marked []map[string]any
	for _, m := range messages {
		if !visible(m.Instance, instance) {
			continue
		}
		shown := forModel(m)
		if (m.Instance == "" || m.Instance == instance) && touches(m, scopes) {
			shown["scoped"] = true
			marked = append(marked, shown)
			continue
		}
		view = append(view, shown)
	}
	return append(view, marked...)
}

// visible tells whether a model that is asked for an instance, or for none, sees
// what belongs to another.
func visible(whose, instance string) bool { return instance == "" || whose == "" || whose == instance }

func touches(m *store.Message, scopes []store.Path) bool {
	op, ok := m.Op()
	return ok && slices.ContainsFunc(op.Touches(), func(path store.Path) bool { return slices.ContainsFunc(scopes, path.Overlaps) })
}

// forModel is a message as a model may see it: what it says and to whom it
// belongs. That a call wrote it, when and how, is the host's business.
func forModel(m *store.Message) map[string]any {
	shown := map[string]any{"type": string(m.Type)}
	text := func(name, v string) {
		if v != "" {
			shown[name] = v
		}
	}
	text("kind", m.Kind)
	text("_instance", m.Instance)
	text("description", m.Description)
	text("mode", m.Mode)
	if m.HasData {
		shown[m.Type.Content()] = m.Data
	}
	if m.Schema != nil {
		shown["schema"] = m.Schema
	}
	return shown
}

// forModel is the call as a model may see it.
func (c *Call) forModel(resolved map[string]any) map[string]any {
	shown := map[string]any{}
	for name, v := range resolved {
		if !strings.HasPrefix(name, "_") || name == "_tool" || name == "_instance" {
			shown[name] = v
		}
	}
	return shown
}

// question begins what a model is asked about call i. Its messages are read
// when it is asked.
func (t *tick) question(i int, in Invocation) *Question {
	call := t.plan.Calls[i]
	q := &Question{Call: call.forModel(in.Call), Tool: in.Tool, Schema: call.tool.result, Key: in.Key}
	for k := range t.calls[:i] {
		r := &t.calls[k].record
		if r.Thought != nil && r.Status == Done && visible(r.Instance, call.Instance) {
			q.Thoughts = append(q.Thoughts, r.Thought)
		}
	}
	return q
}

// readMessages fills in what the model sees of the log, from a worker.
func (t *tick) readMessages(ctx context.Context, i int, q *Question) error {
	call := t.plan.Calls[i]
	wrote := map[string]bool{}
	for k := range t.plan.graph.ancestors(i) {
		wrote[callID(t.event.Tick, t.plan.Calls[k].Position)] = true
	}
	var seen []*store.Message
	for m, err := range t.runner.Log.Messages(ctx, store.Filter{Context: t.context}) {
		if err != nil {
			return err
		}
		if !t.view.Hides(m.Seq) && (m.Seq <= t.event.Start || wrote[m.Call]) {
			seen = append(seen, m)
		}
	}
	q.Messages = ModelView(seen, call.scopes, call.Instance)
	return nil
}

// wireThoughts puts latent calls in the order of the plan: a thought is shown
// to those after it. Those that come before it anyway do not wait.
func (g *graph) wireThoughts() {
	reach := reachability{g: g}
	last := -1
	for j, call := range g.calls {
		if last >= 0 && (call.thought() || call.asks) && (!g.backward || !reach.from(j)[last]) {
			g.add(edge{last, j, store.Path{}, thoughtEdge})
			reach.seen = nil
		}
		if call.thought() {
			last = j
		}
	}
}
