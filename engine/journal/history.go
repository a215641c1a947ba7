package journal

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/store"
)

// History is what the journal of a context has about its calls, as far as it was read. It knows the
// order of all entries, and decodes the data of those alone that a question needs: a list of calls
// the newest entry of each, a page of records those of the page. What it has decoded for lists it
// keeps. It is for one goroutine at a time.
type History struct {
	c     Context
	n     int64 // position of the newest entry that was read
	ticks []tickStart
	// The newest decisions about lazy plans, by the plan's tick.
	decisions map[int]*PlanDecisionEvent

	calls   []*call
	entries []*callEntry // about calls, in the order of the journal
	names   map[string]string
	kept    int     // records that entries keep
	newest  []*Line // the calls as the journal has them; nil where they are to be looked up

	// whole reports that entries are read with their data: those that are the newest of their calls
	// keep it, for [History.records].
	whole bool
	// firstTick is the first tick whose plan is read. Entries about calls of earlier ticks are left
	// out.
	firstTick int
}

// tickStart is a tick's plan event.
type tickStart struct {
	PlanEvent
	n, seq int64
	first  int // index of the tick's first call
}

// call is a call of a plan.
type call struct {
	id             string // "1.2"
	tick, position int
	tool, instance string // empty until they are known
	newest         *callEntry
}

// callEntry is an entry about a call.
type callEntry struct {
	n, seq int64
	date   time.Time
	status Status
	data   string // of the newest entry of its call, where entries are read whole
	call   *call
	before *callEntry // the call's entry before it; nil for the first
	line   *Line      // nil until the data are decoded
	record *Record    // the same, of the few that are kept
}

// mostKept bounds the records that are kept, of calls as they stand: of a small run that is
// followed each entry is decoded once.
const mostKept = 256

// HistoryOf returns the history of a context, without any entry read.
func HistoryOf(log store.Reader, name string) *History {
	return &History{c: In(log, name), names: map[string]string{}, decisions: map[int]*PlanDecisionEvent{}}
}

// ReadHistory returns the history of a context with all entries that it has.
func ReadHistory(ctx context.Context, log store.Reader, name string) (*History, error) {
	h := HistoryOf(log, name)
	return h, h.Advance(ctx)
}

// Advance reads the entries that are new. Its error is a [*DamagedError] for those that no
// run has written.
func (h *History) Advance(ctx context.Context) error { return h.advance(ctx, nil) }

// advance is [History.Advance]. It calls observe with each entry; a nil function is not called.
func (h *History) advance(ctx context.Context, observe func(store.Entry) error) error {
	if err := store.CheckStoredContext(h.c.Name); err != nil { // to the journal an empty name means all contexts
		return err
	}
	for entry, err := range h.c.Log.Journal(ctx, store.JournalFilter{Context: h.c.Name, After: h.n, Bare: !h.whole}) {
		if err == nil {
			err = h.add(ctx, entry)
		}
		if err == nil && observe != nil {
			err = observe(entry)
		}
		if err != nil { // the next time begins with the entry
			return err
		}
		h.n, h.newest = entry.N, nil
	}
	return nil
}

// add adds an entry.
func (h *History) add(ctx context.Context, entry store.Entry) error {
	if entry.Call != "" {
		return h.addAbout(ctx, entry)
	}
	isDecision := IsPlanDecision(entry)
	if entry.Event != EventPlan && !isDecision {
		return nil
	}
	entry, err := h.withData(ctx, entry)
	if err != nil {
		return err
	}
	if isDecision {
		return h.addDecision(entry)
	}
	event, err := ReadPlanEvent(entry)
	if err != nil {
		return err
	}
	begun := tickStart{event, entry.N, entry.Seq, len(h.calls)}
	h.ticks = append(h.ticks, begun)
	if event.Seq == 0 {
		return nil
	}
	for position := 1; position <= event.Calls; position++ {
		h.calls = append(h.calls, &call{id: CallID(event.Tick, position), tick: event.Tick, position: position})
	}
	return nil
}

// addDecision adds a decision about the plan of a tick. A fork's own stands before one that it
// inherits.
func (h *History) addDecision(entry store.Entry) error {
	decision, err := ReadPlanDecision(entry)
	if err != nil || len(h.ticks) == 0 {
		return err
	}
	newest := &h.ticks[len(h.ticks)-1]
	isAbout := decision.Tick == 0 || decision.Tick == newest.Tick
	if isAbout && newest.IsLazy() {
		newest.Decision = &decision
		h.decisions[newest.Tick] = &decision
	}
	return nil
}

// addAbout adds an entry about a call.
func (h *History) addAbout(ctx context.Context, entry store.Entry) error {
	status, known := StatusIn(entry)
	if !known { // an edited log, of which the record counts
		whole, err := h.withData(ctx, entry)
		if err != nil {
			return err
		}
		r, err := ReadRecord(whole)
		if err != nil {
			return err
		}
		status = r.Status
	}
	of := h.find(entry.Call)
	if of == nil {
		if tick, _ := PlaceOf(entry.Call); tick < h.firstTick { // a call in the background outlasts its tick
			return nil
		}
		return UnknownCall(entry)
	}
	second := status == Ready && (of.newest == nil || of.newest.status != Held)
	if second { // the first decision counts
		return nil
	}
	if of.newest != nil && of.newest.record != nil {
		of.newest.record = nil
		h.kept--
	}
	if of.newest != nil {
		of.newest.data = ""
	}
	e := &callEntry{n: entry.N, seq: entry.Seq, date: entry.Date, status: status, data: entry.Data, call: of, before: of.newest}
	of.newest = e
	h.entries = append(h.entries, e)
	return nil
}

// find returns a call by its number; nil if no plan has it.
func (h *History) find(id string) *call {
	before, after, _ := strings.Cut(id, ".")
	tick, _ := strconv.Atoi(before)
	position, _ := strconv.Atoi(after)
	for i := len(h.ticks) - 1; i >= 0; i-- {
		t := &h.ticks[i]
		if t.Tick != tick || t.Seq == 0 {
			continue
		}
		if position < 1 || position > t.Calls || h.calls[t.first+position-1].id != id {
			return nil
		}
		return h.calls[t.first+position-1]
	}
	return nil
}

// Records returns the records of calls of which lines are known, in their order.
func (h *History) Records(ctx context.Context, lines []*Line) ([]Record, error) {
	records := make([]Record, len(lines))
	places := make(map[*callEntry]int, len(lines))
	var entries []*callEntry
	put := func(i int, r Record) {
		if lines[i].cut != "" {
			r.StandWithoutHolder(lines[i].cut)
		}
		h.complete(&r)
		records[i] = r
	}
	for i, line := range lines {
		switch {
		case line.entry == nil:
			put(i, Record{Call: line.Call, Tick: line.Tick, Position: line.Position, Tool: line.Tool, Instance: line.Instance, Status: line.Status})
		case line.entry.record != nil:
			put(i, *line.entry.record)
		default:
			entries, places[line.entry] = append(entries, line.entry), i
		}
	}
	err := h.each(ctx, entries, func(e *callEntry, entry store.Entry) error {
		r, err := ReadRecord(entry)
		if put(places[e], r); e == e.call.newest && h.kept < mostKept {
			h.keep(e, &r)
		}
		return err
	})
	return records, err
}

// records returns the calls as the journal has them, of a history whose entries were read whole.
func (h *History) records(ctx context.Context) ([]Record, error) {
	all := make([]Record, len(h.calls))
	for i, c := range h.calls {
		r := &all[i]
		if c.newest == nil {
			if err := h.nameCallsOf(ctx, c); err != nil {
				return nil, err
			}
			*r = c.blocked()
		} else {
			var err error
			if *r, err = ReadRecord(store.Entry{N: c.newest.n, Context: h.c.Name, Call: c.id, Data: c.newest.data}); err != nil {
				return nil, err
			}
		}
		h.complete(r)
	}
	return all, nil
}

// complete adds to a record what is no part of its entry.
func (h *History) complete(r *Record) {
	r.Context = h.c.Name
	r.Corrected = h.decisions[r.Tick].CorrectionsOf(r.Call)
}

// blocked returns the record of a call about which there is no entry.
func (c *call) blocked() Record {
	return Record{Call: c.id, Tick: c.tick, Position: c.position, Tool: c.tool, Instance: c.instance, Status: Blocked}
}

// name returns a text that equals another one, once for all lines.
func (h *History) name(text string) string {
	known, ok := h.names[text]
	if !ok {
		known = text
		h.names[text] = text
	}
	return known
}

// nameCallsOf finds in a plan the tools of its calls, unless that of one of them is known.
func (h *History) nameCallsOf(ctx context.Context, c *call) error {
	if c.tool != "" {
		return nil
	}
	for i := range h.ticks {
		t := &h.ticks[i]
		if t.Tick != c.tick || t.Seq == 0 {
			continue
		}
		issued, err := h.c.PlanMessage(ctx, t.MessageSeq())
		if err != nil {
			return err
		}
		for j, v := range issued[:min(len(issued), t.Calls)] {
			object, _ := v.(map[string]any)
			tool, _ := object["_tool"].(string)
			instance, _ := object["_instance"].(string)
			h.calls[t.first+j].tool, h.calls[t.first+j].instance = h.name(tool), h.name(instance)
		}
	}
	return nil
}

// nearby is how far apart entries are, in positions, that are read together.
const nearby = 16

// each calls a function with entries as the journal has them.
func (h *History) each(ctx context.Context, entries []*callEntry, take func(*callEntry, store.Entry) error) error {
	slices.SortFunc(entries, func(a, b *callEntry) int { return cmp.Compare(a.n, b.n) })
	for len(entries) > 0 {
		end := 1
		for end < len(entries) && entries[end].n-entries[end-1].n <= nearby {
			end++
		}
		together := entries[:end]
		f := store.JournalFilter{Context: h.c.Name, After: together[0].n - 1, At: together[end-1].n}
		for entry, err := range h.c.Log.Journal(ctx, f) {
			if err != nil {
				return err
			}
			if len(together) == 0 || entry.N != together[0].n {
				continue
			}
			if err := take(together[0], entry); err != nil {
				return err
			}
			together = together[1:]
		}
		if len(together) > 0 {
			return h.c.PrunedMeanwhile()
		}
		entries = entries[end:]
	}
	return nil
}

// withData returns an entry with its data.
func (h *History) withData(ctx context.Context, bare store.Entry) (store.Entry, error) {
	if h.whole {
		return bare, nil
	}
	for entry, err := range h.c.Log.Journal(ctx, store.JournalFilter{Context: h.c.Name, After: bare.N - 1, At: bare.N}) {
		return entry, err
	}
	return bare, h.c.PrunedMeanwhile()
}

// Ticks returns the events of the ticks that had begun at a seq or, with 0, that have begun, also
// those whose plans were refused, of all runs of the context.
func (h *History) Ticks(at int64) (all []PlanEvent) {
	for _, t := range h.ticks {
		if at == 0 || max(t.Seq, t.Start) <= at {
			all = append(all, t.PlanEvent)
		}
	}
	return all
}

// TicksOfRun returns the ticks of the newest run that had begun at a seq or, with 0, has begun.
func (h *History) TicksOfRun(at int64) []PlanEvent {
	all := h.Ticks(at)
	if len(all) == 0 {
		return nil
	}
	first := all[len(all)-1].First
	return slices.DeleteFunc(all, func(e PlanEvent) bool { return e.Tick < first })
}

// RanAgain reports whether a call may have run again: a decision or a retry had it begin anew.
func (h *History) RanAgain() bool {
	return slices.ContainsFunc(h.entries, func(e *callEntry) bool { return e.status == Blocked })
}

// Context returns the name of the context.
func (h *History) Context() string { return h.c.Name }

// Size is the number of entries about calls.
func (h *History) Size() int { return len(h.entries) }
