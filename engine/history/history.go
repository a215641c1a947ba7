package history

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// History is what the journal of a context has about its calls, as far as it was read. It knows the
// order of all entries, and decodes the data of those alone that a question needs: a list of calls
// the newest entry of each, a page of records those of the page. What it has decoded for lists it
// keeps. It is for one goroutine at a time.
type History struct {
	c     journal.Context
	n     int64 // position of the newest entry that was read
	ticks []tickStart
	// The newest decisions about lazy plans, by the plan's tick.
	decisions map[int]*journal.PlanDecisionEvent

	calls   []*call
	entries []*callEntry // about calls, in the order of the journal
	names   map[string]string
	kept    int     // records that entries keep
	newest  []*Line // the calls as the journal has them; nil where they are to be looked up
}

// tickStart is a tick's plan event.
type tickStart struct {
	journal.PlanEvent
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

// callEntry is an entry about a call, without its data.
type callEntry struct {
	n, seq int64
	date   time.Time
	status journal.Status
	call   *call
	before *callEntry      // the call's entry before it; nil for the first
	line   *Line           // nil until the data are decoded
	record *journal.Record // the same, of the few that are kept
}

// mostKept bounds the records that are kept, of calls as they stand: of a small run that is
// followed each entry is decoded once.
const mostKept = 256

// Line is a call in a list, as lists and counts show it.
type Line struct {
	Call           string // "1.2"
	Tick, Position int
	Tool, Instance string
	Status         journal.Status
	Word           string // its outcome, or [Retrying]
	Attempts       int
	Started        time.Time // zero for a call that has not begun
	Duration       time.Duration
	Script         string // empty for none
	ScriptSHA256   string
	Generation     string // digest of the scripts that it ran with
	Unstored       bool   // it writes to no path
	NotIdempotent  bool   // it has begun, and must not run twice

	entry *callEntry // nil for a call that has none
	rests bool
	tried bool // an attempt has failed
	timed bool // it waits for a time, perhaps that of its next attempt
	// The status of the run where that has no holder, and the call is not as its entry has it.
	cut journal.RunStatus
}

// Retrying is the [Line.Word] of a call that pauses before its next attempt.
const Retrying = "retrying"

// Of returns the history of a context, without any entry read.
func Of(log store.Reader, name string) *History {
	return &History{c: journal.In(log, name), names: map[string]string{}, decisions: map[int]*journal.PlanDecisionEvent{}}
}

// Read returns the history of a context with all entries that it has.
func Read(ctx context.Context, log store.Reader, name string) (*History, error) {
	h := Of(log, name)
	return h, h.Advance(ctx)
}

// Advance reads the entries that are new. Its error is a [*journal.DamagedError] for those that no
// run has written.
func (h *History) Advance(ctx context.Context) error {
	if err := store.CheckStoredContext(h.c.Name); err != nil { // to the journal an empty name means all contexts
		return err
	}
	for entry, err := range h.c.Log.Journal(ctx, store.JournalFilter{Context: h.c.Name, After: h.n, Bare: true}) {
		if err == nil {
			err = h.add(ctx, entry)
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
	isDecision := journal.IsPlanDecision(entry)
	if entry.Event != journal.EventPlan && !isDecision {
		return nil
	}
	entry, err := h.whole(ctx, entry)
	if err != nil {
		return err
	}
	if isDecision {
		return h.addDecision(entry)
	}
	event, err := journal.ReadPlanEvent(entry)
	if err != nil {
		return err
	}
	begun := tickStart{event, entry.N, entry.Seq, len(h.calls)}
	h.ticks = append(h.ticks, begun)
	if event.Seq == 0 {
		return nil
	}
	for position := 1; position <= event.Calls; position++ {
		h.calls = append(h.calls, &call{id: journal.CallID(event.Tick, position), tick: event.Tick, position: position})
	}
	return nil
}

// addDecision adds a decision about the plan of a tick. A fork's own stands before one that it
// inherits.
func (h *History) addDecision(entry store.Entry) error {
	decision, err := journal.ReadPlanDecision(entry)
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
	status, known := journal.StatusIn(entry)
	if !known { // an edited log, of which the record counts
		whole, err := h.whole(ctx, entry)
		if err != nil {
			return err
		}
		r, err := journal.ReadRecord(whole)
		if err != nil {
			return err
		}
		status = r.Status
	}
	of := h.find(entry.Call)
	if of == nil {
		return journal.UnknownCall(entry)
	}
	second := status == journal.Ready && (of.newest == nil || of.newest.status != journal.Held)
	if second { // the first decision counts
		return nil
	}
	if of.newest != nil && of.newest.record != nil {
		of.newest.record = nil
		h.kept--
	}
	e := &callEntry{n: entry.N, seq: entry.Seq, date: entry.Date, status: status, call: of, before: of.newest}
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

// Lines returns the calls as they stood at a seq or, with 0, as they stand, in the order of the
// plans. The lines are shared, and must not be changed.
func (h *History) Lines(ctx context.Context, at int64) ([]*Line, error) {
	if at == 0 {
		return h.current(ctx)
	}
	return h.linesAt(ctx, at)
}

// linesAt returns the calls as the journal has them at a seq or, with 0, at its end.
func (h *History) linesAt(ctx context.Context, at int64) ([]*Line, error) {
	if at == 0 && h.newest != nil {
		return h.newest, nil
	}
	calls := h.callsAt(at)
	var undecoded []*callEntry
	for _, c := range calls {
		if e := c.newest.at(at); e != nil && e.line == nil {
			undecoded = append(undecoded, e)
		}
	}
	if err := h.decode(ctx, undecoded); err != nil {
		return nil, err
	}
	lines := make([]*Line, len(calls))
	for i, c := range calls {
		if e := c.newest.at(at); e != nil {
			lines[i] = e.line
			continue
		}
		if c.tool == "" {
			if err := h.nameCalls(ctx, c.tick); err != nil {
				return nil, err
			}
		}
		lines[i] = &Line{Call: c.id, Tick: c.tick, Position: c.position, Tool: c.tool, Instance: c.instance, Status: journal.Blocked, Word: string(journal.Blocked)}
	}
	if at == 0 {
		h.newest = lines
	}
	return lines, nil
}

// callsAt returns the calls whose plans were there at a seq; all for 0.
func (h *History) callsAt(at int64) []*call {
	for _, t := range h.ticks {
		if at > 0 && t.seq > at {
			return h.calls[:t.first]
		}
	}
	return h.calls
}

// at returns the entry that counts at a seq or, with 0, now; nil for none.
func (e *callEntry) at(seq int64) *callEntry {
	for seq > 0 && e != nil && e.seq > seq {
		e = e.before
	}
	return e
}

// current returns the calls as they stand now. Where their context has no holder any more, a call
// that has started is interrupted, or in doubt.
func (h *History) current(ctx context.Context) ([]*Line, error) {
	for {
		lines, err := h.linesAt(ctx, 0)
		if err != nil || !slices.ContainsFunc(lines, (*Line).isOfHolder) {
			return lines, err
		}
		last, err := h.c.LastRun(ctx)
		if err != nil {
			return nil, err
		}
		if holder, err := h.c.Log.Holder(ctx, h.c.Name); err != nil || holder != "" {
			return lines, err
		}
		before := h.n
		if err := h.Advance(ctx); err != nil {
			return nil, err
		}
		if h.n != before { // a holder has appended since
			continue
		}
		stand := make([]*Line, len(lines))
		for i, line := range lines {
			stand[i] = line.withoutHolder(last.Status)
		}
		return stand, nil
	}
}

// isOfHolder reports whether how the call stands depends on whether its context has a holder.
func (l *Line) isOfHolder() bool {
	switch l.Status {
	case journal.Running, journal.Cancelled:
		return true
	case journal.Waiting:
		return l.timed
	case journal.Blocked:
		return l.tried
	}
	return false
}

// withoutHolder returns the line of the call in a context whose run has a status and no holder.
func (l *Line) withoutHolder(run journal.RunStatus) *Line {
	if !l.isOfHolder() {
		return l
	}
	r := l.record()
	r.StandWithoutHolder(run)
	cut := *l
	cut.cut, cut.Status, cut.Attempts, cut.Word = run, r.Status, r.Attempts, WordOf(&r)
	return &cut
}

// record returns a record that has what the line knows.
func (l *Line) record() journal.Record {
	r := journal.Record{Status: l.Status, Attempts: l.Attempts, Rests: l.rests, NotIdempotent: l.NotIdempotent, Unstored: l.Unstored}
	if l.tried {
		r.Error = map[string]any{}
	}
	return r
}

// WordOf returns the outcome of a call, or [Retrying].
func WordOf(r *journal.Record) string {
	if r.AwaitsRetry() {
		return Retrying
	}
	return r.Outcome()
}

// decode reads the data of entries, and makes their lines.
func (h *History) decode(ctx context.Context, entries []*callEntry) error {
	return h.each(ctx, entries, func(e *callEntry, entry store.Entry) error {
		if h.kept < mostKept && e == e.call.newest {
			r, err := journal.ReadRecord(entry)
			if err == nil {
				h.keep(e, &r)
				e.setLine(LineOf(&r))
			}
			return err
		}
		var data struct { // the rest is not decoded
			Call          string              `json:"call"`
			Tick          int                 `json:"tick"`
			Position      int                 `json:"position"`
			Tool          string              `json:"tool"`
			Status        journal.Status      `json:"status"`
			Instance      string              `json:"instance"`
			Attempts      int                 `json:"attempts"`
			Started       string              `json:"started"`
			Duration      float64             `json:"duration_ms"`
			Script        string              `json:"script"`
			SHA256        string              `json:"script_sha256"`
			Generation    string              `json:"generation"`
			Error         *struct{ Code any } `json:"error"`
			Handled       *struct{ Code any } `json:"handled"`
			Due           string              `json:"due"`
			Rests         bool                `json:"rests"`
			Unstored      bool                `json:"unstored"`
			NotIdempotent bool                `json:"once"`
		}
		if err := json.Unmarshal([]byte(entry.Data), &data); err != nil || data.Call != entry.Call || data.Status != e.status {
			_, err := journal.ReadRecord(entry)
			return cmp.Or(err, journal.UnknownCall(entry))
		}
		r := journal.Record{
			Call: e.call.id, Tick: data.Tick, Position: data.Position, Tool: h.name(data.Tool), Status: e.status, Instance: h.name(data.Instance), Attempts: data.Attempts,
			Started: data.Started, Duration: data.Duration, Script: h.name(data.Script), SHA256: h.name(data.SHA256), Generation: h.name(data.Generation),
			Due: data.Due, Rests: data.Rests, Unstored: data.Unstored, NotIdempotent: data.NotIdempotent,
		}
		if data.Error != nil {
			r.Error = map[string]any{"code": data.Error.Code}
		}
		if data.Handled != nil {
			r.Handled = map[string]any{"code": data.Handled.Code}
		}
		e.setLine(LineOf(&r))
		return nil
	})
}

func (e *callEntry) setLine(l *Line) {
	e.line, l.entry = l, e
	e.call.tool, e.call.instance = l.Tool, l.Instance
}

// keep keeps the record of an entry.
func (h *History) keep(e *callEntry, r *journal.Record) {
	e.record = r
	h.kept++
}

// LineOf returns the line of a record.
func LineOf(r *journal.Record) *Line {
	line := &Line{
		Call: r.Call, Tick: r.Tick, Position: r.Position, Tool: r.Tool, Instance: r.Instance, Status: r.Status, Word: WordOf(r), Attempts: r.Attempts,
		Duration: time.Duration(r.Duration * float64(time.Millisecond)), Script: r.Script, ScriptSHA256: r.SHA256, Generation: r.Generation,
		Unstored: r.Unstored, NotIdempotent: r.NotIdempotent, rests: r.Rests, tried: r.Error != nil, timed: r.Due != "" || r.Rests,
	}
	line.Started, _ = time.Parse(time.RFC3339Nano, r.Started)
	return line
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

// nameCalls finds the tools of the calls of a tick in its plan.
func (h *History) nameCalls(ctx context.Context, tick int) error {
	for i := range h.ticks {
		t := &h.ticks[i]
		if t.Tick != tick || t.Seq == 0 {
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

// Records returns the records of calls of which lines are known, in their order.
func (h *History) Records(ctx context.Context, lines []*Line) ([]journal.Record, error) {
	records := make([]journal.Record, len(lines))
	places := make(map[*callEntry]int, len(lines))
	var entries []*callEntry
	put := func(i int, r journal.Record) {
		if r.Context = h.c.Name; lines[i].cut != "" {
			r.StandWithoutHolder(lines[i].cut)
		}
		r.Corrected = h.decisions[r.Tick].CorrectionsOf(r.Call)
		records[i] = r
	}
	for i, line := range lines {
		switch {
		case line.entry == nil:
			put(i, journal.Record{Call: line.Call, Tick: line.Tick, Position: line.Position, Tool: line.Tool, Instance: line.Instance, Status: line.Status})
		case line.entry.record != nil:
			put(i, *line.entry.record)
		default:
			entries, places[line.entry] = append(entries, line.entry), i
		}
	}
	err := h.each(ctx, entries, func(e *callEntry, entry store.Entry) error {
		r, err := journal.ReadRecord(entry)
		if put(places[e], r); e == e.call.newest && h.kept < mostKept {
			h.keep(e, &r)
		}
		return err
	})
	return records, err
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

// whole returns an entry with its data.
func (h *History) whole(ctx context.Context, bare store.Entry) (store.Entry, error) {
	for entry, err := range h.c.Log.Journal(ctx, store.JournalFilter{Context: h.c.Name, After: bare.N - 1, At: bare.N}) {
		return entry, err
	}
	return bare, h.c.PrunedMeanwhile()
}

// Pause is a time in which a call did not work, though it was not settled.
type Pause struct {
	Began time.Time
	Ended time.Time // zero while the pause goes on
	Retry bool      // the call paused before its next attempt; else it waited, or was held for a person
}

// Pauses returns the pauses of calls up to where their lines are of, by the numbers of the calls
// and in the order of time. A call pauses from when it halts, also for a person, until it is
// recorded to run or has an outcome.
func (h *History) Pauses(ctx context.Context, lines []*Line) (map[string][]Pause, error) {
	var undecoded []*callEntry
	for _, line := range lines {
		for e := line.entry; e != nil && line.mayHavePaused(); e = e.before {
			if e.line == nil {
				undecoded = append(undecoded, e)
			}
		}
	}
	if err := h.decode(ctx, undecoded); err != nil {
		return nil, err
	}
	all := map[string][]Pause{}
	for _, line := range lines {
		if line.entry != nil && line.mayHavePaused() {
			if pauses := line.entry.pauses(); pauses != nil {
				all[line.Call] = pauses
			}
		}
	}
	return all, nil
}

// mayHavePaused reports whether the call may have paused: it has other entries than a start and an
// outcome.
func (l *Line) mayHavePaused() bool {
	if l.entry == nil || l.Attempts > 1 || !l.Status.Settled() {
		return l.entry != nil
	}
	start := l.entry.before
	return start != nil && (start.status != journal.Running || start.before != nil)
}

// pauses returns the pauses of the call up to an entry.
func (e *callEntry) pauses() (all []Pause) {
	if e.before != nil {
		all = e.before.pauses()
	}
	works := e.status == journal.Running && !e.line.rests || e.status.Settled()
	goesOn := len(all) > 0 && all[len(all)-1].Ended.IsZero()
	if goesOn {
		last := &all[len(all)-1]
		if !works && last.Retry == e.line.rests {
			return all
		}
		last.Ended = e.date
		if began := e.line.Started; began.After(last.Began) && began.Before(e.date) {
			last.Ended = began
		}
	}
	begun := !e.line.Started.IsZero() || e.status == journal.Held || len(all) > 0
	if !works && begun {
		all = append(all, Pause{Began: e.date, Retry: e.line.rests})
	}
	return all
}

// Ticks returns the events of the ticks that had begun at a seq or, with 0, that have begun, also
// those whose plans were refused, of all runs of the context.
func (h *History) Ticks(at int64) (all []journal.PlanEvent) {
	for _, t := range h.ticks {
		if at == 0 || max(t.Seq, t.Start) <= at {
			all = append(all, t.PlanEvent)
		}
	}
	return all
}

// TicksOfRun returns the ticks of the newest run that had begun at a seq or, with 0, has begun.
func (h *History) TicksOfRun(at int64) []journal.PlanEvent {
	all := h.Ticks(at)
	if len(all) == 0 {
		return nil
	}
	first := all[len(all)-1].First
	return slices.DeleteFunc(all, func(e journal.PlanEvent) bool { return e.Tick < first })
}

// RanAgain reports whether a call may have run again: a decision or a retry had it begin anew.
func (h *History) RanAgain() bool {
	return slices.ContainsFunc(h.entries, func(e *callEntry) bool { return e.status == journal.Blocked })
}

// Context returns the name of the context.
func (h *History) Context() string { return h.c.Name }

// Size is the number of entries about calls.
func (h *History) Size() int { return len(h.entries) }

// Pick returns the lines for which a function returns true.
func Pick(lines []*Line, picks func(*Line) bool) (picked []*Line) {
	for _, line := range lines {
		if picks(line) {
			picked = append(picked, line)
		}
	}
	return picked
}

// OfTick returns the lines of the calls of a tick, of lines as [History.Lines] has them.
func OfTick(lines []*Line, tick int) []*Line {
	first := sort.Search(len(lines), func(i int) bool { return lines[i].Tick >= tick })
	end := sort.Search(len(lines), func(i int) bool { return lines[i].Tick > tick })
	return lines[first:end]
}

// Is reports whether one of some words is the status or the outcome of the call. Without words it
// is.
func (l *Line) Is(words []string) bool {
	return len(words) == 0 || slices.Contains(words, string(l.Status)) || slices.Contains(words, l.Word)
}

// HasText reports whether the number of the call, its tool or its instance has a text in it, in
// any case.
func (l *Line) HasText(text string) bool {
	return strings.Contains(strings.ToLower(l.Call+" "+l.Tool+" "+l.Instance), strings.ToLower(text))
}

// InBackground is [journal.Record.InBackground].
func (l *Line) InBackground() bool { r := l.record(); return r.InBackground() }
