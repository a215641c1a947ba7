package engine

import (
	"container/heap"
	"time"

	"obelus/store"
)

// rest records that a call failed which is tried again after a while. Until then it takes
// no place from others; where the run is to end it is left to whoever resumes that.
func (t *tick) rest(res *result) {
	i := res.index
	c := t.change(i)
	c.record.Attempts += res.attempts
	c.record.Error = failureOf(res.err)
	if t.stopping {
		t.putBack(i)
		return
	}
	t.free(i)
	c.record.Rests, c.again = true, res.again
	c.record.RetryAt = store.FormatDate(t.runner.now().Add(res.again.after))
	c.record.MaxTries = 1 + res.again.activity.Retries
	t.resting++
	t.note(i)
	t.rests = append(t.rests, res.again)
}

// setTimers has calls tried again whose failures have been recorded.
func (t *tick) setTimers(rests []*again) {
	for _, again := range rests {
		again.due = time.Since(t.loop.opened) + again.after
		heap.Push(&t.due, again.turn())
		again.timer = time.AfterFunc(again.after, func() { t.loop.leave(&result{tick: t, rested: true}) })
	}
}

// wake gives the calls their turn that are to be tried again by now. Those for which it is
// time at once come in the order of the plan, whichever timer was first.
func (t *tick) wake() {
	for now := time.Since(t.loop.opened); len(t.due) > 0 && t.due[0].rank.N <= int64(now); {
		i := heap.Pop(&t.due).(turn).index
		c := t.change(i)
		if c.again == nil || c.rested || c.again.due > now { // it was put back meanwhile
			continue
		}
		c.rested = true
		t.resting--
		t.queue(i)
	}
}

// tryAgain starts a call once more, whose turn has come, with what it began with.
func (t *tick) tryAgain(i int) {
	c := t.change(i)
	s := c.again.start
	s.ahead = nil
	c.again, c.rested, c.record.Rests, c.record.RetryAt = nil, false, false, ""
	t.engage(s)
}

// stopTimers lets go of what is to be tried again.
func (t *tick) stopTimers() {
	for i := range t.calls {
		if again := t.calls[i].again; again != nil && again.timer != nil {
			again.timer.Stop()
		}
	}
}

// putBackResting has calls that wait to be tried again wait for whoever resumes the run.
func (t *tick) putBackResting() error {
	t.stopTimers()
	for i := range t.calls {
		if t.calls[i].again != nil {
			t.putBack(i)
		}
	}
	return nil
}
