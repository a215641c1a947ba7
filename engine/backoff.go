package engine

import (
	"time"

	"obelus/engine/internal/sched"
	"obelus/store"
)

// backOff records that a call failed and is retried after a pause. During the pause it takes no
// slot; where the run is to end, the retry is left to the next resume.
func (t *tick) backOff(res *result) {
	i := res.index
	c := t.state.Change(i)
	c.Record.Attempts += res.attempts
	c.Record.Error = failureOf(res.err)
	if t.stopping {
		t.requeue(i)
		return
	}
	c.Record.Rests = true
	c.Record.RetryAt = store.FormatDate(t.runner.now().Add(res.retry.after))
	c.Record.MaxTries = 1 + res.retry.activity.Retries
	if t.attempts == nil {
		t.attempts = map[int]start{}
	}
	t.attempts[i] = res.retry.start
	t.state.Apply(sched.Event{Kind: sched.Failing, Call: i, Due: time.Since(t.loop.opened) + res.retry.after})
	t.recordCall(i)
	t.pauses = true
}

// endPauses gives the calls their turn that are to be tried again by now.
func (t *tick) endPauses() {
	t.state.ApplyTime(time.Since(t.loop.opened))
	t.pauses = true // others may be left
}

// startRetry starts a call once more, with the arguments of its first start.
func (t *tick) startRetry(i int) {
	s := t.attempts[i]
	s.speculative = nil
	c := t.state.Change(i)
	c.Record.Rests, c.Record.RetryAt = false, ""
	t.enqueueStart(s)
}

// requeuePaused leaves calls that pause between attempts to the next resume.
func (t *tick) requeuePaused() {
	for i := range t.state.Calls {
		if c := &t.state.Calls[i]; c.Phase == sched.Paused || c.Again {
			t.requeue(i)
		}
	}
}
