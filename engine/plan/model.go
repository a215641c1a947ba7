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
	v, err := a.model.Answer(ctx, *in.Question)
	return Result{Value: v}, err
}

// ModelView is what a model sees of a context: its messages without what is
// hidden from models, those that touch the scopes last and marked as "scoped",
// the ones to use. Within an instance, those of others are left out.
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

// VisibleToModel tells whether a model that is asked for an instance, or for none, sees
// what belongs to another.
func VisibleToModel(whose, instance string) bool {
	return instance == "" || whose == "" || whose == instance
}

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
