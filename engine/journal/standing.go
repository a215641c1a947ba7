package journal

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"obelus/store"
)

// longestError bounds the error of a standing, in bytes: the journal has all of it.
const longestError = 300

// Standing describes the run for lists ([store.Standing]), with its calls as they stand.
func (r *Run) Standing(records []Record) store.Standing {
	s := store.Standing{Status: string(r.Status), Plan: r.Plan, Error: ShortError(cmp.Or(r.Cause, r.Error)), Tick: r.Tick, Labels: r.Event.Labels, Started: r.Started, Worked: r.Worked}
	detached := false
	for i := range records {
		c := &records[i]
		detached = detached || c.LeftBehind()
		if r.Detached && r.Status.HasBackground() && c.InBackground() {
			s.Background++
		}
		if c.Tick != r.Tick {
			continue
		}
		s.Calls++
		if r.Status == RunWaiting {
			AddWait(&s, c)
		}
		if c.AwaitsRetry() {
			s.Retrying++
		}
		switch c.Status {
		case Done:
			s.Done++
		case Failed:
			s.Failed++
		case Waiting:
			s.Waiting++
		case Held:
			s.Held++
		}
	}
	if r.Held {
		s.Held = 1
	}
	var due time.Time
	if r.Status == RunWaiting {
		due, _ = EarliestDue(slices.DeleteFunc(slices.Clone(records), func(c Record) bool { return c.Tick != r.Tick }))
	}
	Schedule(&s, r.began, r.Stopped, r.Detached && detached, due)
	return s
}

// AddWait adds the paths that a call of a waiting run waits for to the run's standing.
func AddWait(s *store.Standing, c *Record) {
	if c.Status != Waiting {
		return
	}
	for _, path := range c.WaitingOn {
		at, known := slices.BinarySearch(s.WaitingOn, path)
		if known || at == store.MostWaitingOn {
			continue
		}
		s.WaitingOn = slices.Insert(s.WaitingOn, at, path)
		s.WaitingOn = s.WaitingOn[:min(len(s.WaitingOn), store.MostWaitingOn)]
	}
}

// Schedule sets when the run of a standing is to be looked at. A run that is under way, that was
// interrupted as its host stopped, or whose fire-and-forget calls go on, is due from when it began,
// unless it is held. A waiting run is due at the time for which it waits, if there is one, and once
// something has come. All others are never due. The calls of a cancelled run wait for nothing.
func Schedule(s *store.Standing, began time.Time, stopped, detached bool, waitsUntil time.Time) {
	status := RunStatus(s.Status)
	s.Wakes, s.Due = status == RunWaiting, time.Time{}
	if status == RunCancelled {
		s.Waiting, s.Held, s.Retrying, s.WaitingOn = 0, 0, 0, nil
	}
	switch {
	case status == RunRunning || status == RunInterrupted && stopped || detached:
		s.Due = began
	case status == RunWaiting:
		s.Due = waitsUntil
	}
}

// ShortError cuts the error of a run that is too long for a standing.
func ShortError(text string) string {
	if len(text) <= longestError {
		return text
	}
	end := longestError
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// ReadStanding computes the standing of a context from its journal.
func ReadStanding(ctx context.Context, c Context) (store.Standing, error) {
	last, err := c.LastRun(ctx)
	if err != nil || last.Tick == 0 {
		return store.Standing{}, err
	}
	records, err := c.Records(ctx)
	if err != nil {
		return store.Standing{}, err
	}
	return last.Standing(records), nil
}

// StatusOf returns the status of a context's newest run as [Context.CurrentRun] has it, without
// a look into the journal, and whether a server goes on with it by itself.
func StatusOf(info store.ContextInfo) (status RunStatus, stopped bool) {
	switch status = RunStatus(info.Standing.Status); {
	case info.Holder != "" && (status == RunInterrupted || status == RunCancelled):
		status = RunRunning
	case info.Holder == "" && status == RunRunning:
		status = RunInterrupted
	}
	return status, status == RunInterrupted && !info.Standing.Due.IsZero()
}
