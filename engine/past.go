package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"obelus/store"
)

// past is what a context's journal tells of when things happened there.
type past struct {
	events []coming            // in their order
	starts map[int]moment      // when each tick began
	ends   map[int]moment      // and when it ended
	again  map[string][]moment // in their order, when each call, and each tick with it, was to run again: nothing up to the seq counts since
}

// moment is a place in a context's history: the seq to which it had come, and a position
// in the journal.
type moment struct{ seq, n int64 }

func (m moment) before(other moment) bool {
	return m.seq < other.seq || m.seq == other.seq && m.n < other.n
}

// coming is where a context stood when a tick ended, or when somebody had appended
// messages to it.
type coming struct {
	seq      int64
	tick     int   // that ended, 0 for an append
	messages int64 // that were appended
}

// pastOf reads what happened in a context, for a run that began with a tick: what was tried
// again in an earlier one is told of there.
func pastOf(ctx context.Context, log store.Log, name string, first int) (past, error) {
	p := past{starts: map[int]moment{}, ends: map[int]moment{}, again: map[string][]moment{}}
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name}) {
		if err != nil {
			return p, err
		}
		switch entry.Event {
		case eventAppend:
			var data struct {
				Messages int64 `json:"messages"`
			}
			_ = json.Unmarshal([]byte(entry.Data), &data) // what can't be read tells of none
			p.events = append(p.events, coming{seq: entry.Seq, messages: data.Messages})
		case eventPlan:
			plan, err := readPlanEvent(entry)
			if err != nil {
				return p, err
			}
			p.starts[plan.Tick] = moment{plan.Start, entry.N}
		case eventRun:
			end, _, err := readRunEvent(entry)
			if err != nil {
				return p, err
			}
			p.events = append(p.events, coming{seq: entry.Seq, tick: end.Tick})
			p.ends[end.Tick] = moment{entry.Seq, entry.N}
		case string(Blocked):
			r, err := readRecord(entry)
			if err != nil {
				return p, err
			}
			p.ranAgain(&r, entry.N, first)
		}
	}
	return p, nil
}

// ranAgain notes that a call was to run again at a position in the journal, if it was, or to
// be tried again in a run that began with a tick.
func (p *past) ranAgain(r *Record, n int64, first int) {
	if r.Again != 0 && (r.Before != 0 || r.Tick >= first) {
		tick := strconv.Itoa(r.Tick)
		p.again[r.Call] = append(p.again[r.Call], moment{r.Again, n})
		p.again[tick] = append(p.again[tick], moment{r.Again, n})
	}
}

// endedWith is the tick that a message came with the end of, which it tells of; 0 for one
// that somebody brought.
func (p *past) endedWith(seq int64) int {
	first, _ := slices.BinarySearchFunc(p.events, seq, func(e coming, seq int64) int { return cmp.Compare(e.seq, seq) })
	for _, e := range p.events[first:] {
		switch {
		case e.tick == 0 && seq <= e.seq-e.messages:
			continue
		case e.tick != 0 && seq > p.starts[e.tick].seq:
			return e.tick
		}
		return 0
	}
	return 0
}

// formerIn finds what there is in the context that counts no more, for its calls have run
// again, or are tried again: what they wrote, what told of their failures, and what told
// that their tick came to nothing. It gives the seqs, with the position in the journal
// since which each counts no more.
func (p *past) formerIn(ctx context.Context, log store.Log, name string) (map[int64]int64, error) {
	all := map[int64]int64{}
	if len(p.again) == 0 {
		return all, nil
	}
	for m, err := range log.Messages(ctx, store.Filter{Context: name}) {
		if err != nil {
			return nil, err
		}
		whose := m.Call
		if whose == "" && m.Kind == store.KindError {
			if tick := p.endedWith(m.Seq); tick > 0 { // nobody brought it
				call, _ := reportedFailure(m)
				whose = cmp.Or(call, strconv.Itoa(tick))
			}
		}
		again := p.again[whose]
		if first := slices.IndexFunc(again, func(at moment) bool { return m.Seq <= at.seq }); first >= 0 {
			all[m.Seq] = again[first].n
		}
	}
	return all, nil
}

// former finds what counts no more for a run that began with a tick, some calls of which
// are to run again as their records say, which the journal need not have yet.
func former(ctx context.Context, log store.Log, name string, first int, records []Record) (map[int64]int64, error) {
	if !slices.ContainsFunc(records, func(r Record) bool { return r.Again != 0 }) {
		return nil, nil
	}
	p, err := pastOf(ctx, log, name, first)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		p.ranAgain(&r, 0, first)
	}
	return p.formerIn(ctx, log, name)
}

// Former finds the messages of a context, by their seqs, that count no more for a run that
// begins there, nor for what is appended: in it, a fork, the calls that they are of ran
// again. They stay in the log, and [store.Resolver] over it heeds them.
func Former(ctx context.Context, log store.Log, name string) (map[int64]bool, error) {
	all := map[int64]bool{}
	origin, _, err := originOf(ctx, log, name)
	if err != nil || origin.Fork == "" {
		return all, err
	}
	p, err := pastOf(ctx, log, name, math.MaxInt)
	if err != nil {
		return nil, err
	}
	former, err := p.formerIn(ctx, log, name)
	for seq := range former {
		all[seq] = true
	}
	return all, err
}

// hideFormer hides from a view what counts no more of what it holds.
func hideFormer(ctx context.Context, view *store.View, log store.Log, name string) error {
	former, err := Former(ctx, log, name)
	for seq := range former {
		if seq <= view.Seq() {
			view.Hide(seq)
		}
	}
	return err
}
