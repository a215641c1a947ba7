package host

import (
	"context"
	"time"
)

// session is a state that runs the scripts of a generation, with what the top level of one
// registers.
type session struct {
	*state
	gen   *Generation
	found *registrations // nil where nothing is to be registered
}

func newSession(g *Generation) *session {
	s := &session{state: newState(&g.project), gen: g}
	s.addLibrary("Activity", bindEntries(s.L, s, activityFuncs))
	s.addLibrary("Delegate", bindEntries(s.L, s, delegateFuncs))
	s.addLibrary("Tool", bindEntries(s.L, s, toolFuncs))
	openCalls(s.state)
	return s
}

// session takes a session from the pool, or makes one.
func (g *Generation) session() *session {
	if s, ok := g.states.Get().(*session); ok {
		return s
	}
	return newSession(g)
}

// begin readies the session for one run of a script, of at most timeout. What the script registers
// goes into found.
func (s *session) begin(ctx context.Context, timeout time.Duration, sc *script, found *registrations) {
	s.found = found
	s.state.begin(ctx, timeout, sc)
}

// end gives the session back for the next run. It is not called if something was raised.
func (s *session) end() {
	s.state.end()
	s.gen.states.Put(s)
}
