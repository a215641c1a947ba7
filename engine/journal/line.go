package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"

	"obelus/store"
)

// Line is a call in a list, as lists and counts show it.
type Line struct {
	Call           string // "1.2"
	Tick, Position int
	Tool, Instance string
	Status         Status
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
	cut RunStatus
}

// Retrying is the [Line.Word] of a call that pauses before its next attempt.
const Retrying = "retrying"

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
		if err := h.nameCallsOf(ctx, c); err != nil {
			return nil, err
		}
		r := c.blocked()
		lines[i] = LineOf(&r)
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
func (h *History) current(ctx context.Context) (lines []*Line, err error) {
	run, abandoned, err := h.abandoned(ctx, func() (bool, error) {
		lines, err = h.linesAt(ctx, 0)
		return slices.ContainsFunc(lines, (*Line).isOfHolder), err
	})
	if err != nil || !abandoned {
		return lines, err
	}
	stand := make([]*Line, len(lines))
	for i, line := range lines {
		stand[i] = line.withoutHolder(run)
	}
	return stand, nil
}

// abandoned reports whether the context has no holder, and returns the status of its run. It calls
// read, again if a holder has appended meanwhile, which reports whether that matters to what it has
// read of the history; the context does not count as abandoned where it does not.
func (h *History) abandoned(ctx context.Context, read func() (matters bool, err error)) (RunStatus, bool, error) {
	for {
		if matters, err := read(); err != nil || !matters {
			return "", false, err
		}
		last, err := h.c.LastRun(ctx)
		if err != nil {
			return "", false, err
		}
		if holder, err := h.c.Log.Holder(ctx, h.c.Name); err != nil || holder != "" {
			return "", false, err
		}
		before := h.n
		if err := h.Advance(ctx); err != nil || h.n == before {
			return last.Status, err == nil, err
		}
	}
}

// isOfHolder reports whether how the call stands depends on whether its context has a holder.
func (l *Line) isOfHolder() bool {
	switch l.Status {
	case Running, Cancelled:
		return true
	case Waiting:
		return l.timed
	case Blocked:
		return l.tried
	}
	return false
}

// withoutHolder returns the line of the call in a context whose run has a status and no holder.
func (l *Line) withoutHolder(run RunStatus) *Line {
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
func (l *Line) record() Record {
	r := Record{Status: l.Status, Attempts: l.Attempts, Rests: l.rests, NotIdempotent: l.NotIdempotent, Unstored: l.Unstored}
	if l.tried {
		r.Error = map[string]any{}
	}
	return r
}

// WordOf returns the outcome of a call, or [Retrying].
func WordOf(r *Record) string {
	if r.AwaitsRetry() {
		return Retrying
	}
	return r.Outcome()
}

// decode reads the data of entries, and makes their lines.
func (h *History) decode(ctx context.Context, entries []*callEntry) error {
	return h.each(ctx, entries, func(e *callEntry, entry store.Entry) error {
		if h.kept < mostKept && e == e.call.newest {
			r, err := ReadRecord(entry)
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
			Status        Status              `json:"status"`
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
			_, err := ReadRecord(entry)
			return cmp.Or(err, UnknownCall(entry))
		}
		r := Record{
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
func (h *History) keep(e *callEntry, r *Record) {
	e.record = r
	h.kept++
}

// LineOf returns the line of a record.
func LineOf(r *Record) *Line {
	line := &Line{
		Call: r.Call, Tick: r.Tick, Position: r.Position, Tool: r.Tool, Instance: r.Instance, Status: r.Status, Word: WordOf(r), Attempts: r.Attempts,
		Duration: time.Duration(r.Duration * float64(time.Millisecond)), Script: r.Script, ScriptSHA256: r.SHA256, Generation: r.Generation,
		Unstored: r.Unstored, NotIdempotent: r.NotIdempotent, rests: r.Rests, tried: r.Error != nil, timed: r.Due != "" || r.Rests,
	}
	line.Started, _ = time.Parse(time.RFC3339Nano, r.Started)
	return line
}

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

// InBackground is [Record.InBackground].
func (l *Line) InBackground() bool { r := l.record(); return r.InBackground() }
