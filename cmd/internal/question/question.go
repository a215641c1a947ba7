// Package question finds a question to a model in a log, and runs up to it again without asking a
// model: a [Capture] keeps the request.
package question

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/usage"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/model"
	"obelus/store"
)

// Capture takes the place of the clients of models: it keeps the first request of a run, answers
// nothing, and ends the run.
type Capture struct {
	mu      sync.Mutex
	configs map[string]model.Config // by the models' names
	stop    context.CancelFunc
	request *model.Request
}

// NewCapture returns a capture without a request.
func NewCapture() *Capture { return &Capture{configs: map[string]model.Config{}, stop: func() {}} }

// Wrap returns the capture in place of the asker of a model.
func (c *Capture) Wrap(config model.Config, _ model.Asker) model.Asker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.configs[config.Name] = config
	return c
}

// Config returns the settings of a model that was wrapped.
func (c *Capture) Config(name string) model.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.configs[name]
}

// Request returns the first request since Begin; nil if there was none.
func (c *Capture) Request() *model.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request
}

// Close releases the context of the last run.
func (c *Capture) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop()
}

// Ask implements [model.Asker].
func (c *Capture) Ask(ctx context.Context, r *model.Request, _ *plan.Meter) (*model.Answer, error) {
	c.mu.Lock()
	if c.request == nil {
		c.request = r
		c.stop()
	}
	c.mu.Unlock()
	<-ctx.Done() // so that the call is cut off, and has not failed
	return nil, ctx.Err()
}

// Begin returns a context for a run, which ends with the next request.
func (c *Capture) Begin(ctx context.Context) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = nil
	ctx, c.stop = context.WithCancel(ctx)
	return ctx
}

// Question is a question to a model that the log has.
type Question struct {
	Seq   int64  // the context's message before it; 0 for the newest
	Fresh bool   // it was asked before there was any message: the context is to be a new one
	Hash  string // of the recorded request; empty if there is none

	first bool     // it was for the first plan of a run
	calls []string // the calls that the request was about; empty for a plan
}

// Ask runs a fork until it asks the question again. Calls that one request answered run again one
// after the other, each until it asks: those before it have no outcome then, and ask with it.
func (q *Question) Ask(ctx context.Context, capture *Capture, runner *engine.Runner, fork string, request *plan.Request) error {
	var err error
	switch {
	case q.first && request != nil:
		again := *request
		again.Context, again.Mode = nil, "" // its messages are there
		_, err = runner.Run(capture.Begin(ctx), engine.Start{Context: fork, Request: &again})
	case len(q.calls) == 0:
		_, err = runner.Resume(capture.Begin(ctx), engine.Resume{Context: fork, Request: request})
	}
	for _, call := range q.calls {
		if _, err = runner.Resume(capture.Begin(ctx), engine.Resume{Context: fork, Request: request, From: call}); capture.Request() == nil {
			return err
		}
	}
	return err
}

// Find returns the question about a call or a tick of a context; the latest one for an empty text.
func Find(ctx context.Context, log store.Log, name, call string) (Question, error) {
	in := journal.In(log, name)
	records, err := in.Records(ctx)
	if err != nil {
		return Question{}, err
	}
	plans, err := in.Plans(ctx, 1)
	if err != nil {
		return Question{}, err
	}
	var found *Question
	tick := 0
	for _, p := range plans {
		if p.ByModel && (call == "" || call == strconv.Itoa(p.Tick)) {
			found, tick = &Question{Seq: p.Start, Fresh: p.Start == 0, first: p.Tick == p.First}, p.Tick
			if p.Model != nil {
				found.Hash = p.Model.Request
			}
		}
	}
	for _, r := range records {
		asked := r.Model != nil && r.Script == "" // else a script asked, by itself
		if call == r.Call || call == "" && asked && r.Tick >= tick {
			found = askedAbout(r, records)
			// Calls of an earlier tick are run again where that tick had ended.
			if next := slices.IndexFunc(plans, func(p journal.PlanEvent) bool { return p.Tick > r.Tick }); found != nil && next >= 0 {
				found.Seq = plans[next].Start
			}
		}
	}
	if found != nil {
		return *found, nil
	}
	if call == "" {
		return Question{}, exit.Usagef("no model was asked in context %s", name)
	}
	var known []string
	for _, r := range records {
		known = append(known, r.Call)
	}
	return Question{}, exit.Usagef("context %s has no call %s%s", name, human.Printable(call), strings.TrimSuffix(" ("+usage.Hint(call, known, "obelus calls lists them")+")", " ()"))
}

// askedAbout returns the question about a call, and about the others that the same request
// answered.
func askedAbout(r journal.Record, records []journal.Record) *Question {
	if r.Model == nil {
		return &Question{calls: []string{r.Call}}
	}
	first := cmp.Or(r.Model.Group, r.Call)
	q := &Question{}
	for _, other := range records {
		if other.Model == nil || cmp.Or(other.Model.Group, other.Call) != first {
			continue
		}
		q.calls = append(q.calls, other.Call)
		if other.Call == first {
			q.Hash = other.Model.Request
		}
	}
	return q
}
