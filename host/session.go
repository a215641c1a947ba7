package host

import (
	"context"
	"log/slog"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/luacall"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
)

// session is a state that runs the scripts of a generation, with the registrations of a script's
// top level.
type session struct {
	*sandbox.State
	gen   *Generation
	found *registrations // nil if nothing is to be registered

	grants *luastd.Grants // that Env has; nil for the project's grants as New has them

	output *output      // of print and of the module log
	called bool         // an activity runs
	models *plan.Models // that it may ask; nil for none
}

func newSession(g *Generation) *session {
	s := &session{State: sandbox.New(&g.project), gen: g, output: &output{config: &g.config}}
	s.Output, s.Env.Log = s.output, slog.New(s.output)
	s.Env.AskModel, s.Env.CheckSchema = s.askModel, s.checkSchema
	s.AddLibrary("Activity", sandbox.Bind(s.L, s, activityFuncs))
	s.AddLibrary("Delegate", sandbox.Bind(s.L, s, delegateFuncs))
	s.AddLibrary("Tool", sandbox.Bind(s.L, s, toolFuncs))
	luacall.Open(s.State)
	return s
}

// session takes a session from the pool, or makes one.
func (g *Generation) session() *session {
	if s, ok := g.states.Get().(*session); ok {
		return s
	}
	return newSession(g)
}

// begin readies the session for one run of a script, of at most timeout. Registrations go into
// found.
func (s *session) begin(ctx context.Context, timeout time.Duration, sc *sandbox.Script, found *registrations) {
	s.found, s.called, s.models, s.output.call = found, false, nil, plan.Invocation{}
	s.use(s.gen.scriptGrants())
	s.State.Begin(ctx, timeout, sc)
	s.Run.Again = found != nil && found.again
}

// use gives the modules of the session the grants that its run has. Everything that runs in the
// session looks at them at the time, wherever it was loaded and on whatever coroutine.
func (s *session) use(grants *luastd.Grants) {
	if s.grants != grants {
		s.Env.Grants, s.grants = *grants, grants
	}
}

// end gives the session back for the next run. It must not be called if something was raised.
func (s *session) end() {
	s.State.End()
	s.found, s.called, s.models, s.output.call = nil, false, nil, plan.Invocation{}
	s.gen.states.Put(s)
}
