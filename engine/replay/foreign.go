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
	former map[int64]int64
	// Of these, the seqs in the twin of those that were injected before they were superseded.
	unhidden map[int64]int64
	next     int64 // the first position since which one of those is superseded
}

// foreignOf finds the foreign messages of a context.
func (p *recorded) foreignOf(ctx context.Context, name string) (*foreign, error) {
	if a, ok := p.foreign[name]; ok {
		return a, nil
	}
	a := &foreign{errors: map[string]int64{}, unhidden: map[int64]int64{}, next: math.MaxInt64}
	p.foreign[name] = a
	last, err := journal.In(p.log, name).LastRun(ctx)
	if err != nil || last.Tick == 0 {
		return a, err
	}
	plans, err := journal.In(p.log, name).Plans(ctx, last.Event.First)
	if err != nil {
		return a, err
	}
	if a.Timeline, err = journal.In(p.log, name).ReadTimeline(ctx, last.Event.First); err != nil {
		return a, err
	}
	if a.former, err = a.SupersededIn(ctx, journal.In(p.log, name)); err != nil {
		return a, err
	}
	return a, a.find(ctx, p, name, plans)
}

// until takes out what had arrived by a seq.
func (a *foreign) until(seq int64) []store.Message {
	n := slices.IndexFunc(a.messages, func(m store.Message) bool { return m.Seq > seq })
	if n < 0 {
		n = len(a.messages)
	}
	arrived := a.messages[:n:n]
	a.messages = a.messages[n:]
	return arrived
}

// Timeline implements [script.Script].
func (p *recorded) Timeline(ctx context.Context, name string) (*journal.Timeline, error) {
	a, err := p.foreignOf(ctx, name)
	return &a.Timeline, err
}

// Superseded implements [script.Script].
func (p *recorded) Superseded(ctx context.Context, name string) (map[int64]int64, error) {
	a, err := p.foreignOf(ctx, name)
	return a.former, err
}

// ErrorSeq implements [script.Script].
func (p *recorded) ErrorSeq(ctx context.Context, name, call string) (int64, error) {
	a, err := p.foreignOf(ctx, name)
	return a.errors[call], err
}

// Inject implements [script.Script].
func (p *recorded) Inject(ctx context.Context, view *store.View, name string, at journal.Position) error {
	a, err := p.foreignOf(ctx, name)
	if err != nil {
		return err
	}
	arrived, seq := a.until(at.Seq), view.Seq()
	view.Stage(arrived...)
	a.hide(view, arrived, seq, at)
	return nil
}

// BeginTick implements [script.Script]: what reads it then does so in the log.
func (p *recorded) BeginTick(ctx context.Context, view *store.View, name string, tick int) error {
	a, err := p.foreignOf(ctx, name)
	if err != nil {
		return err
	}
	now := a.Starts[tick]
	arrived, seq := a.until(now.Seq), view.Seq()
	if err := p.append(ctx, name, arrived); err != nil {
		return err
	}
	if _, err := view.Refresh(ctx); err != nil {
		return err
	}
	a.hide(view, arrived, seq, now)
	return nil
}

// hide hides the superseded messages in the twin as of a position, those just injected after a seq
// of the twin included.
func (a *foreign) hide(view *store.View, arrived []store.Message, seq int64, now journal.Position) {
	for n, m := range arrived {
		if since, former := a.former[m.Seq]; former {
			a.next = min(a.next, since)
			a.unhidden[m.Seq] = seq + int64(n) + 1
		}
	}
	if a.next > now.N {
		return
	}
	a.next = math.MaxInt64
	maps.DeleteFunc(a.unhidden, func(seq, twin int64) bool {
		since := a.former[seq]
		if since <= now.N {
			view.Hide(twin)
			return true
		}
		a.next = min(a.next, since)
		return false
	})
}

func (p *recorded) append(ctx context.Context, name string, messages []store.Message) error {
	if len(messages) == 0 {
		return nil
	}
	_, err := p.twin.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, Messages: messages})
	return err
}

// find finds the messages of a run that a replay does not produce: foreign ones, faults of refused
// plans (which are not in the log), and writes and failures of calls that ran again since.
func (a *foreign) find(ctx context.Context, p *recorded, name string, plans []journal.PlanEvent) error {
	refused := func(seq int64) bool {
		for i, plan := range plans {
			if plan.Seq == 0 && seq > plan.Start && (i == len(plans)-1 || seq <= plans[i+1].Start) {
				return true
			}
		}
		return false
	}
	newest := map[[2]string]int64{} // by call and path
	for m, err := range p.log.Messages(ctx, store.Filter{Context: name, After: plans[0].Start}) {
		if err != nil {
			return err
		}
		if m.Type == store.TypePlan {
			continue
		}
		if m.Call == "" && m.Kind == store.KindError && !refused(m.Seq) {
			overcome, err := p.overcome(ctx, name, m, a.Events)
			if err != nil {
				return err
			}
			call, _ := journal.ReportedFailure(m)
			switch {
			case overcome:
				// The errors before are injected too, for a replay would report them after this
				// one.
				clear(a.errors)
			case call == "":
				continue
			default:
				a.errors[call] = m.Seq
			}
		}
		newest[[2]string{m.Call, m.Path.String()}] = m.Seq
		a.messages = append(a.messages, *m)
	}
	var err error
	a.messages = slices.DeleteFunc(a.messages, func(m store.Message) bool {
		if m.Call == "" {
			call, _ := journal.ReportedFailure(&m)
			return m.Kind == store.KindError && a.errors[call] == m.Seq
		}
		record, _, wrong := p.Record(ctx, name, m.Call)
		err = cmp.Or(err, wrong)
		path := m.Path.String()
		return m.Seq == newest[[2]string{m.Call, path}] && slices.Contains(record.Writes, path)
	})
	return err
}

// overcome reports whether an error is one that the replay does not report: of a call that was
// retried since and did not fail in the same way, or that a person went on without, or of a tick
// that went on; or a foreign message.
func (p *recorded) overcome(ctx context.Context, name string, m *store.Message, events []journal.Arrival) (bool, error) {
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
	r, ok, err := p.Record(ctx, name, call)
	return ok && (r.Status != journal.Failed || !jsonvalue.Equal(failure, map[string]any(r.Error))), err
}
