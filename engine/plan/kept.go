package plan

import (
	"sync/atomic"

	"obelus/store"
)

// Keep returns the request normalized ([Request.Normalize]), for one that runs again and again: the
// plan that [CompileRequest] makes of it is kept with it, and with all copies of it, until it is
// compiled for another registry or in a context that holds something else at the paths that the
// plan's wiring depends on. Neither the request nor the registry may be changed afterwards, but for
// the fields Name, Mode and Released of a copy.
func (r *Request) Keep() (*Request, error) {
	own, err := r.Normalize()
	if err == nil && own.Planner == nil {
		own.kept = &atomic.Pointer[keptPlan]{}
	}
	return own, err
}

// keptPlan is a plan with all that it was compiled from.
type keptPlan struct {
	plan     *Plan
	calls    []Source
	context  []store.Message
	registry *Registry
	looked   map[place]bool // the paths that were asked for, with whether they had a value
}

// place is a path in an instance.
type place struct {
	path     store.Path
	instance string
}

// fits reports whether compiling the request would give the kept plan again.
func (k *keptPlan) fits(request *Request, registry *Registry, exists Exists) (bool, error) {
	if k == nil || k.registry != registry || !isSame(k.calls, request.Calls) || !isSame(k.context, request.Context) {
		return false, nil
	}
	for at, was := range k.looked {
		if is, err := exists(at.path, at.instance); err != nil || is != was {
			return false, err
		}
	}
	return true, nil
}

// isSame reports whether two slices are the same elements in memory.
func isSame[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// compileKept is [CompileRequest] of a request that keeps its plan.
func compileKept(request *Request, registry *Registry, exists Exists) (*Plan, error) {
	known := request.kept.Load()
	if fits, err := known.fits(request, registry, exists); err != nil {
		return nil, err
	} else if fits {
		return known.plan, nil
	}
	made := &keptPlan{calls: request.Calls, context: request.Context, registry: registry, looked: map[place]bool{}}
	looks := func(path store.Path, instance string) (bool, error) {
		there, err := exists(path, instance)
		made.looked[place{path, instance}] = there
		return there, err
	}
	var err error
	made.plan, err = (&planCompiler{file: request.Name}).compile(request, registry, looks)
	if err != nil {
		return nil, err
	}
	request.kept.Store(made)
	return made.plan, nil
}
