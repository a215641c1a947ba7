package engine

import (
	"container/heap"
	"time"

	"obelus/store"
)

// backOff records that a call failed and is retried after a pause. During the pause it takes no
// slot; where the run is to end, the retry is left to the next resume.
func (t *tick) backOff(res *result) {
	i := res.index
	c := t.change(i)
	c.record.Attempts += res.attempts
	c.record.Error = failureOf(res.err)
	if t.stopping {
		t.requeue(i)
		return
	}
	t.release(i)
	c.record.Rests, c.retry = true, res.retry
	c.record.RetryAt = store.FormatDate(t.runner.now().Add(res.retry.after))
	c.record.MaxTries = 1 + res.retry.activity.Retries
	t.backingOff++
	t.recordCall(i)
	t.retries = append(t.retries, res.retry)
}

// setTimers has calls tried again whose failures have been recorded.
func (t *tick) setTimers(rests []*retryState) {
	for _, again := range rests {
		again.due = time.Since(t.loop.opened) + again.after
		heap.Push(&t.retryQueue, again.queued())
		again.timer = time.AfterFunc(again.after, func() { t.loop.leave(&result{tick: t, retryDue: true}) })
	}
}

// requeueDue gives the calls their turn that are to be tried again by now. Those for which it is
// time at once come in the order of the plan, whichever timer was first.
func (t *tick) requeueDue() {
	for now := time.Since(t.loop.opened); len(t.retryQueue) > 0 && t.retryQueue[0].rank.N <= int64(now); {
		i := heap.Pop(&t.retryQueue).(queuedCall).index
		c := t.change(i)
		if c.retry == nil || c.retryDue || c.retry.due > now { // it was requeued meanwhile
			continue
		}
		c.retryDue = true
		t.backingOff--
		t.queue(i)
	}
}

// startRetry starts a call once more, with the arguments of its first start.
func (t *tick) startRetry(i int) {
	c := t.change(i)
	s := c.retry.start
	s.speculative = nil
	c.retry, c.retryDue, c.record.Rests, c.record.RetryAt = nil, false, false, ""
	t.enqueueStart(s)
}

// stopTimers stops the timers of retries.
func (t *tick) stopTimers() {
	for i := range t.calls {
		if again := t.calls[i].retry; again != nil && again.timer != nil {
			again.timer.Stop()
		}
	}
}

// requeueBackedOff leaves calls that pause before a retry to the next resume.
func (t *tick) requeueBackedOff() error {
	t.stopTimers()
	for i := range t.calls {
		if t.calls[i].retry != nil {
			t.requeue(i)
		}
	}
	return nil
}
