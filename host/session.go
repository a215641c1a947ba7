package host

import (
	"context"
	"log/slog"
	"time"

	lua "github.com/yuin/gopher-lua"

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

	tops map[string]*top // of scripts that ran, by file
}

// top is what the top level of a script made when it ran in a session.
type top struct {
	script *sandbox.Script
	image  *sandbox.Image // nil if the top level must run each time
	made   []made
}

// made is a value that a script's top level gave: to a register function, or returned.
type made struct {
	what  string // `activity "greet"`; empty for what it returned
	value lua.LValue
}

// make returns what a script registers as something, or returns, made anew for one call: nothing
// that another call has set can be seen in it. It is nil if the script does not register it this
// time.
func (s *session) make(sc *sandbox.Script, what string) (lua.LValue, error) {
	known := s.tops[sc.File]
	if known == nil || known.script != sc || known.image == nil {
		returned, err := s.RunFile(sc)
		if err != nil {
			return nil, err
		}
		s.found.made = append(s.found.made, made{value: returned})
		if known != nil && known.script == sc {
			return find(s.found.made, what), nil
		}
		known = s.captureTop(sc)
	}
	v := find(known.made, what)
	if known.image != nil && v != nil {
		v = s.Restore(known.image, v)
	}
	return v, nil
}

// captureTop remembers what a script's top level has just made.
func (s *session) captureTop(sc *sandbox.Script) *top {
	known := &top{script: sc, made: s.found.made}
	values := make([]lua.LValue, len(known.made))
	for i, m := range known.made {
		values[i] = m.value
	}
	known.image = s.Capture(values)
	if s.tops == nil {
		s.tops = map[string]*top{}
	}
	s.tops[sc.File] = known
	return known
}

// find returns the value of what was made as something, or nil.
func find(all []made, what string) lua.LValue {
	for _, m := range all {
		if m.what == what {
			return m.value
		}
	}
	return nil
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
