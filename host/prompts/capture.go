package prompts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"obelus/engine/plan"
	"obelus/host/model"
)

// capture is the asker of all models of a run: it keeps the first request, answers nothing, and
// ends the run. A request about something else than it is for fails, and the run goes on.
type capture struct {
	mu      sync.Mutex
	stop    context.CancelFunc
	about   subject
	request *model.Request
	config  model.Config // of the model that was asked
}

// subject is a call of a context, or its plan, about which a request may be. A run asks about those
// of its delegates too, which have contexts of their own.
type subject struct {
	context string // empty for any subject
	call    string // empty for a plan
}

// isOf reports whether a request is about the subject.
func (s subject) isOf(r *model.Request) bool {
	if s.context == "" {
		return true
	}
	context, _, _ := strings.Cut(r.Key, "/")
	calls := r.Calls()
	return context == s.context && (s.call == "" && len(calls) == 0 || slices.Contains(calls, s.call))
}

// model returns a model that asks the capture in the place of another. A model of the embedding
// program makes its own requests, and fails.
func (c *capture) model(of plan.Model) plan.Model {
	m, ok := of.(*model.Model)
	if !ok {
		return plan.ModelFunc(func(context.Context, plan.Question) (any, error) {
			return nil, errors.New("the model is the embedding program's own")
		})
	}
	return model.New(m.Config(), asker{c, m.Config()})
}

// asker is a capture for one model.
type asker struct {
	*capture
	of model.Config
}

// Ask implements [model.Asker].
func (a asker) Ask(ctx context.Context, r *model.Request, _ *plan.Meter) (*model.Answer, error) {
	a.mu.Lock()
	if !a.about.isOf(r) {
		a.mu.Unlock()
		return nil, errors.New("the request is about something else")
	}
	if a.request == nil {
		a.request, a.config = r, a.of
		a.stop()
	}
	a.mu.Unlock()
	<-ctx.Done() // so that the call is cut off, and has not failed
	return nil, ctx.Err()
}

// captured returns the first request since begin; nil if there was none.
func (c *capture) captured() *model.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request
}

// begin returns a context for a run, which ends with the next request about a subject, and a
// function that frees it.
func (c *capture) begin(ctx context.Context, about subject) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about, c.request = about, nil
	ctx, c.stop = context.WithCancel(ctx)
	return ctx, c.stop
}
