// Package ops answers questions about a project and the log of its runs, for all that show the
// answers: commands, the JSON API and the page. It knows none of them.
package ops

import (
	"context"
	"errors"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/prompts"
	"obelus/store"
)

// Project is a project and the log of its runs.
type Project struct {
	Host *host.Host
	Log  store.Log
}

// LastRun returns a runner that knows the plan of a context's newest run, and the plan's request;
// nil for a plan that can't be read any more, as unread says.
func (p Project) LastRun(ctx context.Context, name string) (runner *engine.Runner, request *plan.Request, unread, err error) {
	file, err := journal.In(p.Log, name).RootPlan(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	g := p.Host.Generation()
	request, registry, unread := g.PlanOf(file)
	settings := g.Settings()
	return &engine.Runner{Log: p.Log, Registry: registry, Ticks: settings.Ticks, Budget: settings.Budget}, request, unread, nil
}

// Bounds of a request to a model that is computed for a client.
const (
	promptTime  = 10 * time.Second
	promptBytes = 32 << 20
	mostPrompts = 2 // that the process computes at once
)

// promptPlaces are the places of requests that are computed. All servers of the process share them,
// as they share its processor and its memory.
var promptPlaces = make(chan struct{}, mostPrompts)

// enterPrompt waits for a place to compute a request.
func enterPrompt(ctx context.Context) (leave func(), err error) {
	select {
	case promptPlaces <- struct{}{}:
		return func() { <-promptPlaces }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Prompt returns the request to a model about a call of a context, such as "1.2", or for the plan
// of a tick, such as "2"; the latest one for an empty text. A request that has to be computed waits
// for a place.
func (p Project) Prompt(ctx context.Context, name, about string) (*prompts.Prompt, error) {
	source := prompts.Source{Generation: p.Host.Generation(), Log: p.Log, Timeout: promptTime, MaxBytes: promptBytes, Admit: enterPrompt}
	return source.About(ctx, name, about)
}

// TicksOf returns the ticks of a context's newest run; none where nothing has run.
func (p Project) TicksOf(ctx context.Context, h *journal.History) ([]engine.Tick, error) {
	runner, _, _, err := p.LastRun(ctx, h.Context())
	if err != nil {
		return nil, err
	}
	ticks, err := runner.TicksOf(ctx, h)
	if _, none := errors.AsType[*journal.NoSuchCallError](err); none {
		return nil, nil
	}
	return ticks, err
}

// Kinds lists the kinds of a context that had data at a seq; 0 for now.
func (p Project) Kinds(ctx context.Context, name string, at int64) ([]store.KindOf, error) {
	kinds, err := p.Log.Kinds(ctx, name)
	if err != nil || at == 0 {
		return kinds, err
	}
	var then []store.KindOf
	for _, k := range kinds {
		for _, err := range p.Log.Touching(ctx, store.Query{Context: name, Path: store.KindPath(k.Kind), Instance: k.Instance, At: at}) {
			if err != nil {
				return nil, err
			}
			then = append(then, k)
			break
		}
	}
	return then, nil
}

// Values returns the values of all kinds of a context, as an instance sees them, as of a seq or,
// with 0, as of now.
func (p Project) Values(ctx context.Context, name string, at int64, instance string) (map[string]any, error) {
	if _, err := p.Log.Head(ctx, name); err != nil {
		return nil, err
	}
	kinds, err := p.Log.Kinds(ctx, name)
	if err != nil {
		return nil, err
	}
	values, resolver := map[string]any{}, store.Resolver{Log: p.Log, Context: name, At: at}
	for _, k := range kinds {
		if _, known := values[k.Kind]; known || k.Instance != "" && k.Instance != instance {
			continue
		}
		resolved, err := resolver.Resolve(ctx, store.KindPath(k.Kind), instance)
		if err != nil {
			return nil, err
		}
		if resolved.Exists {
			values[k.Kind] = resolved.Value
		}
	}
	return values, nil
}

// Children lists the contexts of a context's delegates, and then its forks, each newest first, up
// to a number of them.
func (p Project) Children(ctx context.Context, name string, limit int64) (children []store.ContextInfo, err error) {
	if _, err := p.Log.Head(ctx, name); err != nil {
		return nil, err
	}
	for _, f := range []store.ContextFilter{{Parent: name}, {Fork: name}} {
		for child, err := range p.Log.Contexts(ctx, f) {
			if err != nil {
				return nil, err
			}
			if int64(len(children)) == limit {
				break
			}
			children = append(children, child)
		}
	}
	return children, nil
}
