package replay

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/store"
)

// foreign holds the messages that others appended to a context while its run went on, and that are
// not in the twin yet.
type foreign struct {
	messages []store.Message
	errors   map[string]int64 // by call, the seq of its error that the replay reports too
	journal.Timeline
	// Superseded messages by seq, with the position in the journal since which each is.
	superseded journal.Superseded
	// Of these, the seqs in the twin of those that were injected before they were superseded.
	injected map[int64]int64
	next     int64 // the first position since which one of those is superseded
}

// foreignOf returns the foreign messages of a context. It reads them once.
func (r *recorded) foreignOf(ctx context.Context, name string) (*foreign, error) {
	if f, ok := r.foreign[name]; ok {
		return f, nil
	}
	f := &foreign{errors: map[string]int64{}, injected: map[int64]int64{}, next: math.MaxInt64}
	if err := f.read(ctx, r, name); err != nil {
		return nil, err
	}
	r.foreign[name] = f
	return f, nil
}

// read reads the foreign messages of a context.
func (f *foreign) read(ctx context.Context, r *recorded, name string) error {
	last, err := journal.In(r.log, name).LastRun(ctx)
	if err != nil || last.Tick == 0 {
		return err
	}
	plans, err := journal.In(r.log, name).Plans(ctx, last.Event.First)
	if err != nil {
		return err
	}
	if f.Timeline, err = journal.In(r.log, name).ReadTimeline(ctx, last.Event.First); err != nil {
		return err
	}
	if f.superseded, err = f.SupersededIn(ctx, journal.In(r.log, name)); err != nil {
		return err
	}
	return f.find(ctx, r, name, plans)
}

// until takes out what had arrived by a seq.
func (f *foreign) until(seq int64) []store.Message {
	n := slices.IndexFunc(f.messages, func(m store.Message) bool { return m.Seq > seq })
	if n < 0 {
		n = len(f.messages)
	}
	arrived := f.messages[:n:n]
	f.messages = f.messages[n:]
	return arrived
}

// Timeline implements [script.Script].
func (r *recorded) Timeline(ctx context.Context, name string) (*journal.Timeline, error) {
	f, err := r.foreignOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return &f.Timeline, nil
}

// Superseded implements [script.Script].
func (r *recorded) Superseded(ctx context.Context, name string) (journal.Superseded, error) {
	f, err := r.foreignOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return f.superseded, nil
}

// ErrorSeq implements [script.Script].
func (r *recorded) ErrorSeq(ctx context.Context, name, call string) (int64, error) {
	f, err := r.foreignOf(ctx, name)
	if err != nil {
		return 0, err
	}
	return f.errors[call], nil
}

// Inject implements [script.Script].
func (r *recorded) Inject(ctx context.Context, view *store.View, name string, at journal.Position) error {
	f, err := r.foreignOf(ctx, name)
	if err = cmp.Or(err, r.err); err != nil {
		return err
	}
	arrived, seq := f.until(at.Seq), view.Seq()
	view.Stage(arrived...)
	f.hide(view, arrived, seq, at)
	return nil
}

// BeginTick implements [script.Script]: what reads it then does so in the log.
func (r *recorded) BeginTick(ctx context.Context, view *store.View, name string, tick int) error {
	f, err := r.foreignOf(ctx, name)
	if err != nil {
		return err
	}
	now := f.Starts[tick]
	arrived, seq := f.until(now.Seq), view.Seq()
	if err := r.append(ctx, name, arrived); err != nil {
		return err
	}
	if _, err := view.Refresh(ctx); err != nil {
		return err
	}
	f.hide(view, arrived, seq, now)
	return nil
}

// hide hides the superseded messages in the twin as of a position, those just injected after a seq
// of the twin included.
func (f *foreign) hide(view *store.View, arrived []store.Message, seq int64, now journal.Position) {
	for n, m := range arrived {
		if since, ok := f.superseded[m.Seq]; ok {
			f.next = min(f.next, since)
			f.injected[m.Seq] = seq + int64(n) + 1
		}
	}
	if f.next > now.N {
		return
	}
	f.next = math.MaxInt64
	maps.DeleteFunc(f.injected, func(seq, twin int64) bool {
		since := f.superseded[seq]
		if since <= now.N {
			view.Hide(twin)
			return true
		}
		f.next = min(f.next, since)
		return false
	})
}

func (r *recorded) append(ctx context.Context, name string, messages []store.Message) error {
	if len(messages) == 0 {
		return nil
	}
	_, err := r.twin.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, Messages: messages})
	return err
}

// find finds the messages of a run that a replay does not produce: foreign ones, faults of refused
// plans (which are not in the log), and writes and failures of calls that ran again since.
func (f *foreign) find(ctx context.Context, r *recorded, name string, plans []journal.PlanEvent) error {
	refused := func(seq int64) bool {
		for i, plan := range plans {
			if plan.Seq == 0 && seq > plan.Start && (i == len(plans)-1 || seq <= plans[i+1].Start) {
				return true
			}
		}
		return false
	}
	newest := map[[2]string]int64{} // by call and path
	for m, err := range r.log.Messages(ctx, store.Filter{Context: name, After: plans[0].Start}) {
		if err != nil {
			return err
		}
		if m.Type == store.TypePlan {
			continue
		}
		if m.Call == "" && m.Kind == store.KindError && !refused(m.Seq) {
			overcome, err := r.overcome(ctx, name, m, f.Events)
			if err != nil {
				return err
			}
			call, _ := journal.ReportedFailure(m)
			switch {
			case overcome:
				// The errors before are injected too, for a replay would report them after this
				// one.
				clear(f.errors)
			case call == "":
				continue
			default:
				f.errors[call] = m.Seq
			}
		}
		newest[[2]string{m.Call, m.Path.String()}] = m.Seq
		f.messages = append(f.messages, *m)
	}
	var err error
	f.messages = slices.DeleteFunc(f.messages, func(m store.Message) bool {
		if m.Call == "" {
			call, _ := journal.ReportedFailure(&m)
			return m.Kind == store.KindError && f.errors[call] == m.Seq
		}
		record, _, wrong := r.Record(ctx, name, m.Call)
		err = cmp.Or(err, wrong)
		path := m.Path.String()
		return m.Seq == newest[[2]string{m.Call, path}] && slices.Contains(record.Writes, path)
	})
	return err
}

// overcome reports whether an error is one that the replay does not report: of a call that was
// retried since and did not fail in the same way, or that a person went on without, or of a tick
// that went on; or a foreign message.
func (r *recorded) overcome(ctx context.Context, name string, m *store.Message, events []journal.Arrival) (bool, error) {
	call, failure := journal.ReportedFailure(m)
	first, _ := slices.BinarySearchFunc(events, m.Seq, func(e journal.Arrival, seq int64) int { return cmp.Compare(e.Seq, seq) })
	tick := 0
	for _, e := range events[first:] {
		if e.Tick == 0 {
			if m.Seq > e.Seq-e.Messages {
				return true, nil
			}
			continue
		}
		if call != "" || tick != 0 && tick != e.Tick {
			break
		}
		if tick == e.Tick {
			return true, nil
		}
		tick = e.Tick
	}
	record, ok, err := r.Record(ctx, name, call)
	return ok && (record.Status != journal.Failed || !jsonvalue.Equal(failure, map[string]any(record.Error))), err
}
