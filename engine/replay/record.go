package replay

import (
	"context"
	"fmt"
	"slices"

	"obelus/engine/journal"
	"obelus/store"
)

// record is the newest run of a context as the log has it, read in one pass over the journal and
// one over the messages.
type record struct {
	context    string
	first      int   // the run's first tick
	start      int64 // the seq at which that began
	last       *journal.PlanEvent
	status     journal.RunStatus
	steps      []step
	lives      map[string]*life // by call
	ends       map[int]int      // by tick, the step with which it ended last
	timeline   journal.Timeline
	messages   []*store.Message // of the context, by seq
	superseded []superseded     // in the order of the positions
}

// step is an entry of the journal. Exactly one of the pointers is set.
type step struct {
	n, seq int64
	call   *journal.Record
	plan   *journal.PlanEvent
	end    *journal.RunEvent
}

// life is the part of a call's history that led to its newest outcome: since it was to run anew, if
// it was.
type life struct {
	began   int   // the step that shows that it has read; -1 for none
	settled int   // the step with its outcome; -1 for none
	at      int64 // the seq as of which it read; 0 if its records lack it
	newest  *journal.Record
	wrote   []int64 // seqs of its messages, those of earlier lives too
}

// superseded is a message that a rerun or a retry has superseded, at a position in the journal.
type superseded struct{ seq, since int64 }

// readRecord reads the newest run of a context as of a position in the journal, or for 0 as of now.
// Its error is [store.ErrNoContext] where nothing had run by then.
func readRecord(ctx context.Context, log store.Reader, name string, at int64) (*record, error) {
	r := &record{context: name, timeline: journal.NewTimeline(), lives: map[string]*life{}, ends: map[int]int{}}
	in := journal.In(log, name)
	return r, in.Together(ctx, func(int64) error {
		newest, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: name, Event: journal.EventPlan, At: at})
		if err != nil {
			return err
		}
		if !ok {
			return in.PrunedMeanwhile()
		}
		last, err := journal.ReadPlanEvent(newest)
		if err != nil {
			return err
		}
		r.first = last.First
		return r.read(ctx, log, at)
	})
}

// read reads the journal up to a position, and then the messages.
func (r *record) read(ctx context.Context, log store.Reader, at int64) error {
	var end int64
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: r.context, At: at}) {
		if err == nil {
			err = r.timeline.Add(entry, r.first)
		}
		if err == nil {
			err = r.add(entry)
		}
		if err != nil {
			return err
		}
		end = entry.Seq
	}
	for m, err := range log.Messages(ctx, store.Filter{Context: r.context, At: end}) {
		if err != nil {
			return err
		}
		if m.Seq > end {
			break
		}
		r.messages = append(r.messages, m)
		if l := r.lives[m.Call]; l != nil {
			l.wrote = append(l.wrote, m.Seq)
		}
		if since, ok := r.timeline.SupersededSince(m); ok {
			r.superseded = append(r.superseded, superseded{m.Seq, since})
		}
	}
	if int64(len(r.messages)) != end {
		return r.damaged("its newest entry was written when there were %d messages, and there are %d", end, len(r.messages))
	}
	slices.SortStableFunc(r.superseded, func(a, b superseded) int { return int(a.since - b.since) })
	return nil
}

func (r *record) damaged(format string, args ...any) error {
	return &journal.DamagedError{Context: r.context, What: fmt.Sprintf(format, args...)}
}

// add adds the next entry of the journal, if it is one of the run.
func (r *record) add(entry store.Entry) error {
	s, tick := step{n: entry.N, seq: entry.Seq}, 0
	switch {
	case entry.Call != "":
		call, err := journal.ReadRecord(entry)
		if err != nil {
			return err
		}
		s.call, tick = &call, call.Tick
	case entry.Event == journal.EventPlan:
		event, err := journal.ReadPlanEvent(entry)
		if err != nil {
			return err
		}
		s.plan, tick = &event, event.Tick
	case journal.IsPlanDecision(entry):
		return r.addDecision(entry)
	case entry.Event == journal.EventRun:
		end, output, err := journal.ReadRunEvent(entry)
		if err != nil {
			return err
		}
		end.Output = output
		s.end, tick = &end, end.Tick
	}
	if tick >= r.first {
		r.addStep(s)
	}
	return nil
}

// addDecision adds a person's decision about the newest plan. A fork's own stands before one that
// it inherits.
func (r *record) addDecision(entry store.Entry) error {
	decision, err := journal.ReadPlanDecision(entry)
	if err != nil || r.last == nil {
		return err
	}
	isAbout := decision.Tick == 0 || decision.Tick == r.last.Tick
	if isAbout && r.last.IsLazy() {
		r.last.Decision = &decision
	}
	return nil
}

func (r *record) addStep(s step) {
	switch {
	case s.call != nil:
		r.addToLife(s.call)
	case s.plan != nil:
		if r.last == nil {
			r.start = s.plan.Start
		}
		r.last, r.status = s.plan, journal.RunRunning
	default:
		r.status = s.end.Status
		if r.status.Finished() || r.status == journal.RunContinued { // else the tick has halted
			r.ends[s.end.Tick] = len(r.steps)
		}
	}
	r.steps = append(r.steps, s)
}

// addToLife adds the record of the next step to the life of its call, which begins anew where the
// call is to read anew, or has read as of another seq.
func (r *record) addToLife(call *journal.Record) {
	l := r.lives[call.Call]
	if l == nil {
		l = &life{began: -1, settled: -1}
		r.lives[call.Call] = l
	}
	l.newest = call
	hasRead := call.At != 0 || call.Status == journal.Running || call.Status.Settled()
	switch {
	case !hasRead:
		l.began, l.settled = -1, -1
	case l.began < 0 || call.At != l.at:
		l.began, l.settled, l.at = len(r.steps), -1, call.At
	}
	if call.Status.Settled() {
		l.settled = len(r.steps)
	}
}

// message returns the message at a seq, nil where there is none.
func (r *record) message(seq int64) *store.Message {
	if seq < 1 || seq > int64(len(r.messages)) {
		return nil
	}
	return r.messages[seq-1]
}

// planAt returns the calls of the plan message at a seq; none for 0, as of a refused plan.
func (r *record) planAt(seq int64) ([]any, error) {
	if seq == 0 {
		return nil, nil
	}
	if m := r.message(seq); m != nil && m.Type == store.TypePlan {
		if calls, ok := m.Data.Value.([]any); ok {
			return calls, nil
		}
	}
	return nil, r.damaged("message %d of its log is not the plan that it tells of", seq)
}
