package plan

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
	// Answer returns a call's result, which is checked against the question's schema; it takes the
	// types of the value of a [Result]. Its error is a [*Failure] where a plan may handle it. It is
	// asked once and has [DefaultTimeout]: then ctx is done, and any later answer is a timeout,
	// which is a failure. A model that needs more time, or repeated questions, is an [Activity];
	// retries within that time are up to the model.
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

// Question is a latent call as put to a model (protocol §5). Its values are those of an
// [Invocation], shared, and must not be changed: a model that does not send all of them sends
// copies.
type Question struct {
	// Messages is the model's view of the log as the tick began, and of the writes since of calls
	// that this one depends on; see [ModelView].
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
	v, err := a.model.Answer(ctx, *in.Question)
	return Result{Value: v}, err
}

// ModelView returns the messages of a context for a model: without those hidden from models, and
// with those that touch the scopes last, marked as "scoped", the ones to use. Within an instance,
// messages of other instances are left out.
func ModelView(messages []*store.Message, scopes []store.Path, instance string) []map[string]any {
	var view, marked []map[string]any
	for _, m := range messages {
		if !VisibleToModel(m.Instance, instance) {
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

// VisibleToModel reports whether a model that is asked for an instance, or for none, sees the
// messages of another.
func VisibleToModel(whose, instance string) bool {
	return instance == "" || whose == "" || whose == instance
}

func touches(m *store.Message, scopes []store.Path) bool {
	op, ok := m.Op()
	return ok && slices.ContainsFunc(op.Touches(), func(path store.Path) bool { return slices.ContainsFunc(scopes, path.Overlaps) })
}

// forModel is a message as a model sees it: its content and its instance. The call that wrote it,
// and its date, are the host's business.
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
	if m.Data.Set {
		shown[m.Type.Content()] = m.Data.Value
	}
	if m.Schema != nil {
		shown["schema"] = m.Schema
	}
	return shown
}

// ForModel is the call as a model may see it.
func (c *Call) ForModel(resolved map[string]any) map[string]any {
	shown := map[string]any{}
	for name, v := range resolved {
		if !strings.HasPrefix(name, "_") || name == "_tool" || name == "_instance" {
			shown[name] = v
		}
	}
	return shown
}

// wireThoughts puts latent calls in the order of the plan: a thought is shown
// to those after it. Those that come before it anyway do not wait.
func (g *graph) wireThoughts() {
	reach := reachability{g: g}
	last := -1
	for j, call := range g.calls {
		if last >= 0 && (call.IsThought() || call.AsksModel) && (!g.backward || !reach.from(j)[last]) {
			g.add(Edge{last, j, store.Path{}, ThoughtEdge})
			reach.seen = nil
		}
		if call.IsThought() {
			last = j
		}
	}
}
