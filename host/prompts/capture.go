package prompts

import (
	"context"
	"errors"
	"slices"
	"sync"

	"obelus/engine/plan"
	"obelus/host/model"
)

// capture is the asker of all models of a run: it keeps the first request, answers nothing, and
// ends the run. A request about other calls than the one that it is for fails, and the run goes on.
type capture struct {
	about string // the call; empty for any request

	mu      sync.Mutex
	stop    context.CancelFunc
	request *model.Request
	config  model.Config // of the model that was asked
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
	if a.about != "" && !slices.Contains(r.Calls(), a.about) {
		return nil, errors.New("the request is about other calls")
	}
	a.mu.Lock()
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

// begin returns a context for a run, which ends with the next request, and a function that frees
// it.
func (c *capture) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = nil
	ctx, c.stop = context.WithCancel(ctx)
	return ctx, c.stop
}
