package engine

import (
	"context"
	"testing"

	"obelus/engine/plan"
)

// TestSlots_InOrder: slots are given in the order in which they are asked for, but
// to none beyond what its activity may have, and none stays with who is gone.
func TestSlots_InOrder(t *testing.T) {
	p := newSlotPool(t.Context(), 2)
	often, once := &plan.Registered{}, &plan.Registered{Concurrency: 1}
	there := func(s slot) bool {
		select {
		case <-s.given:
			return true
		default:
			return s.given == nil
		}
	}
	hold := func(what string, s slot, want bool) {
		t.Helper()
		if there(s) != want {
			t.Errorf("%s: given is %t", what, !want)
		}
	}
	a, b := p.Request(once, false), p.Request(often, false)
	c, d, e, gone, f := p.Request(once, false), p.Request(often, false), p.Request(once, false), p.Request(often, false), p.Request(often, false)
	loose := p.Request(often, true)
	hold("a", a, true)
	hold("b", b, true)
	hold("loose", loose, true)
	hold("c", c, false)
	p.Release(b) // c's activity is busy: d gets it
	hold("c behind its activity", c, false)
	hold("d, which that does not hold up", d, true)
	hold("f", f, false)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if gone.Wait(over) {
		t.Error("it was given to whom it was not")
	}
	p.Release(gone)
	p.Release(a)
	hold("c, the first", c, true)
	hold("e", e, false)
	p.Release(d)
	hold("e, whose activity is busy", e, false)
	hold("f, and not who is gone", f, true)
	for _, s := range []slot{c, f, loose, e} {
		p.Release(s)
	}
	if p.taken != [2]int{} || p.each[once] != 0 || len(p.queue) != 0 {
		t.Errorf("left: %v", p)
	}
}
