package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// A call that runs once more finds more in the log than it did at first. What it reads
// must not depend on that: not what calls wrote that wait until it has read. Of what others
// appended, one that runs again reads what it read at first; one that is tried again reads
// all of it. What calls that run again wrote before is hidden from all of the run, by its
// view.

// authors tells which calls of a tick wrote messages, by their seqs.
type authors map[int64]int

// callAt is the place of a tick's call that a message names, if it does.
func callAt(tick int, call string) (i int, ok bool) {
	position, ok := strings.CutPrefix(call, strconv.Itoa(tick)+".")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(position)
	return n - 1, err == nil && n > 0
}

// authorsIn finds the authors of what a log has of a tick since it began.
func (t *tick) authorsIn(ctx context.Context, log store.Log, began int64) (authors, error) {
	all := authors{}
	for m, err := range log.Messages(ctx, store.Filter{Context: t.context, After: began}) {
		if err != nil {
			return nil, err
		}
		if i, ok := callAt(t.event.Tick, m.Call); ok && i < len(t.calls) {
			all[m.Seq] = i
		}
	}
	return all, nil
}

// readAuthors finds who wrote what the log has of the tick. From then on reads depend on
// that.
func (t *tick) readAuthors(ctx context.Context) (err error) {
	t.authors, err = t.authorsIn(ctx, t.runner.Log, t.event.Start)
	return err
}

// wroteNow notes who wrote messages that are about to be staged.
func (t *tick) wroteNow(i, messages int) {
	for n := range messages {
		if t.authors != nil {
			t.authors[t.view.Seq()+int64(n)+1] = i
		}
	}
}

// forget drops what is not committed.
func (a authors) forget(committed int64) {
	maps.DeleteFunc(a, func(seq int64, _ int) bool { return seq > committed })
}

// resolver reads paths for call i: as of now, or as of when it started first.
func (t *tick) resolver(i int) store.Resolver {
	r, known, record := t.view.Resolver(), t.authors, t.calls[i].record
	r.At = record.At
	if p := t.runner.replay; p != nil {
		record, _, _ = p.record(context.Background(), t.context, record.Call) // one that can't be read has not been
		if record.Before != 0 || p.triedAgain(t.context, record) {            // it reads what it did
			a, _ := p.arriving(context.Background(), t.context)
			r.Log, r.At, known = without(p.log, a.former, t.replayed(i).began.n), record.At, p.authors(t)
		}
	}
	if known != nil {
		r.Log = &hindsight{r.Log, func(seq int64) bool {
			author, ours := known[seq]
			return ours && t.plan.graph.overwrites(author, i) || !ours && record.Before != 0 && seq > record.Before
		}}
	}
	return r
}

// joins holds what call i writes against what is there. Where that does not do for one that
// runs once more, it is held against what would be there if those had yet to write that wait
// for it. Its error is a [*fault], or that of the log.
func (t *tick) joins(ctx context.Context, i int, check func(store.Resolver) error) error {
	err := check(t.view.Resolver())
	if err != nil && t.authors != nil {
		behind, r := t.plan.graph.behind(i), t.view.Resolver()
		r.Log = &hindsight{t.view, func(seq int64) bool {
			author, ours := t.authors[seq]
			return ours && behind[author]
		}}
		err = check(r)
	}
	if p := t.runner.replay; err != nil && p != nil {
		again, wrong := p.wroteAgain(ctx, t.context, t.calls[i].record.Call)
		if again || wrong != nil {
			err = wrong // what the log has of it did do
		}
	}
	if _, misfit := errors.AsType[*store.FitError](err); misfit {
		return &fault{"method", err}
	}
	return err
}

// past is what a context's journal tells of when things happened there.
type past struct {
	events []coming            // in their order
	starts map[int]moment      // when each tick began
	ends   map[int]moment      // and when it ended
	again  map[string][]moment // in their order, when each call, and each tick with it, was to run again: nothing up to the seq counts since
}

// coming is where a context stood when a tick ended, or when somebody had appended
// messages to it.
type coming struct {
	seq      int64
	tick     int   // that ended, 0 for an append
	messages int64 // that were appended
}

// pastOf reads what happened in a context.
func pastOf(ctx context.Context, log store.Log, name string) (past, error) {
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
			p.ranAgain(&r, entry.N)
		}
	}
	return p, nil
}

// ranAgain notes that a call was to run again at a position in the journal, if it was.
func (p *past) ranAgain(r *Record, n int64) {
	if r.Again != 0 {
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
		case e.tick == 0 && seq > e.seq-e.messages:
			return 0
		case e.tick != 0 && seq > p.starts[e.tick].seq:
			return e.tick
		case e.tick != 0:
			return 0
		}
	}
	return 0
}

// former finds what there is in the context that counts no more, for its calls have run
// again, or are tried again: what they wrote, what told of their failures, and what told
// that their tick came to nothing. It gives the seqs, with the position in the journal
// since which each counts no more.
func (p *past) former(ctx context.Context, log store.Log, name string) (map[int64]int64, error) {
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
			if whose, _ = reportedFailure(m); whose == "" {
				whose = strconv.Itoa(p.endedWith(m.Seq))
			}
		}
		again := p.again[whose]
		if first := slices.IndexFunc(again, func(at moment) bool { return m.Seq <= at.seq }); first >= 0 {
			all[m.Seq] = again[first].n
		}
	}
	return all, nil
}

// former finds what counts no more in a context of which some calls are to run again as
// their records say, which the journal need not have yet.
func former(ctx context.Context, log store.Log, name string, records []Record) (map[int64]int64, error) {
	if !slices.ContainsFunc(records, func(r Record) bool { return r.Again != 0 }) {
		return nil, nil
	}
	p, err := pastOf(ctx, log, name)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		p.ranAgain(&r, 0)
	}
	return p.former(ctx, log, name)
}

// Former finds the messages of a context, by their seqs, that are there and count no more,
// since in it, a fork, calls ran again that had written them. Neither runs nor what is
// appended are held to them; [store.Resolver] over the log heeds them.
func Former(ctx context.Context, log store.Log, name string) (map[int64]bool, error) {
	all := map[int64]bool{}
	origin, _, err := originOf(ctx, log, name)
	if err != nil || origin.Fork == "" {
		return all, err
	}
	p, err := pastOf(ctx, log, name)
	if err != nil {
		return nil, err
	}
	former, err := p.former(ctx, log, name)
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

// without is a log without what counted no more at a position in the journal.
func without(log store.Reader, former map[int64]int64, n int64) store.Reader {
	return &hindsight{log, func(seq int64) bool {
		since, ok := former[seq]
		return ok && since <= n
	}}
}

// hindsight is a log without what a call is not to see.
type hindsight struct {
	store.Reader
	hides func(seq int64) bool
}

// Touching implements [store.Reader].
func (h *hindsight) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return func(yield func(store.Op, error) bool) {
		for op, err := range h.Reader.Touching(ctx, q) {
			if err == nil && h.hides(op.Seq) {
				continue
			}
			if !yield(op, err) {
				return
			}
		}
	}
}
