package page

import (
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// callsView is a window of a run's calls.
type callsView struct {
	address
	Rows   []callRow
	Counts []statusCount
	Tools  []string
	Next   string // the cursor of the next window; empty for the last
	Total  int    // calls that match
	Wrong  string // about a filter that is not applied
}

// callsOf returns the calls that an address asks for: those that failed first, then the newest.
func (l reader) callsOf(ctx context.Context, lines []*journal.Line, a address) (callsView, error) {
	v := callsView{address: a}
	counts := map[string]int64{}
	for _, line := range lines {
		counts[line.Word]++
		if !slices.Contains(v.Tools, line.Tool) {
			v.Tools = append(v.Tools, line.Tool)
		}
	}
	slices.Sort(v.Tools)
	v.Counts = append(v.Counts, statusCount{Word: "all", Count: int64(len(lines)), Query: a.With("status", "", "cursor", ""), Picked: a.Status == ""})
	for _, word := range callWords {
		if counts[word] > 0 || a.Status == word {
			v.Counts = append(v.Counts, statusCount{Word: word, Count: counts[word], Query: a.With("status", word, "cursor", ""), Picked: a.Status == word})
		}
	}
	f := history.CallFilter{Text: a.Query}
	if a.Tool != "" {
		f.Tool = strings.Split(a.Tool, ",")
	}
	f.Since, v.Wrong = readMoment(a.From)
	picked := journal.Pick(lines, func(line *journal.Line) bool { return (a.Status == "" || line.Word == a.Status) && f.Picks(line) })
	slices.SortStableFunc(picked, func(x, y *journal.Line) int { return rankOf(x.Status) - rankOf(y.Status) })
	v.Total = len(picked)
	from := 0
	if a.Cursor != "" {
		from = 1 + slices.IndexFunc(picked, func(line *journal.Line) bool { return line.Call == a.Cursor })
	}
	window := picked[from:min(len(picked), from+mostRows)]
	if from+len(window) < len(picked) {
		v.Next = window[len(window)-1].Call
	}
	records, err := l.Records(ctx, a.Context, window)
	for _, r := range records {
		v.Rows = append(v.Rows, rowOfCall(r))
	}
	return v, err
}

// panel is all about one call, at the side of a run's page.
type panel struct {
	callRow
	Arguments []argument
	Granted   []node
	Wrote     []node
	Failure   *node
	Lines     []store.LogLine // that its script printed and logged, the newest ones
	Traceback string
	Key       string // the idempotency key of the call
	Plan      *plan.Call
	Close     string // the query of the page without the panel
	room      *room
}

// argument is a parameter of a call, with where its value comes from.
type argument struct {
	Name  string
	From  string // the reference that gives it, without its dagger; empty for a value of the plan's own
	Value node
	Lacks bool // the reference has no value
	// What a person made of it; empty for an argument that nobody corrected.
	Corrected string
}

func (l reader) panelOf(ctx context.Context, v address, lines []*journal.Line, ticks []engine.Tick) (*panel, error) {
	records, err := l.Records(ctx, v.Context, journal.Pick(lines, func(line *journal.Line) bool { return line.Call == v.Call }))
	if err != nil || len(records) == 0 { // its plan was not there yet at that moment
		return nil, err
	}
	r := records[0]
	out := &panel{callRow: rowOfCall(r), Close: v.With("sel", ""), Key: v.Context + "/" + r.Call, room: newRoom()}
	for _, tick := range ticks {
		if tick.Tick == r.Tick && r.Position >= 1 && r.Position <= len(tick.Plan.Calls) {
			out.Plan = tick.Plan.Calls[r.Position-1]
		}
	}
	if r.Error != nil {
		rest := map[string]any{}
		for name, value := range r.Error {
			if text, ok := value.(string); ok && name == "traceback" {
				out.Traceback = text
			} else {
				rest[name] = value
			}
		}
		n := out.room.treeOf("error", "", rest, "")
		out.Failure = &n
	}
	if err := l.addArguments(ctx, v, r, out); err != nil {
		return nil, err
	}
	for _, path := range r.Writes {
		value, err := l.valueAt(ctx, v, path, r.Instance, out.room)
		if err != nil {
			return nil, err
		}
		out.Wrote = append(out.Wrote, value)
	}
	return out, l.addLines(ctx, v, out)
}

// mostLines is the number of lines of a call's script that are shown.
const mostLines = 20

// addLines adds the lines that the script of a call has printed and logged.
func (l reader) addLines(ctx context.Context, v address, out *panel) error {
	for line, err := range l.Log.Logs(ctx, store.LogFilter{Context: v.Context, Call: out.Call, Newest: true}) {
		if err != nil {
			return err
		}
		line.Text = cutText(line.Text, 1000)
		out.Lines = append(out.Lines, line)
		if len(out.Lines) == mostLines {
			break
		}
	}
	slices.Reverse(out.Lines)
	return nil
}

// addArguments adds the parameters of a call: as they were held for a person, or as the plan has
// them, with the values that its references have now or had when it read them.
func (l reader) addArguments(ctx context.Context, v address, r journal.Record, out *panel) error {
	var issued map[string]any
	if out.Plan != nil {
		issued = out.Plan.Issued
	}
	if r.Hold != nil {
		for name, value := range r.Hold.Granted {
			out.Granted = append(out.Granted, out.room.treeOf(name, "", value, ""))
		}
	}
	for _, name := range sortedNames(issued, r.Hold) {
		if strings.HasPrefix(name, "_") {
			continue
		}
		arg := argument{Name: name}
		text, isText := issued[name].(string)
		if isText && strings.HasPrefix(text, store.Dagger) && !strings.HasPrefix(text, store.Dagger+store.Dagger) {
			arg.From = strings.TrimPrefix(text, store.Dagger)
		}
		value := issued[name]
		switch {
		case r.Hold != nil && r.Hold.Arguments[name] != nil:
			value = r.Hold.Arguments[name]
		case arg.From != "":
			var err error
			if value, err = l.evaluate(ctx, v.Context, text, r.At, r.Instance); err != nil {
				missing := (*history.MissingError)(nil)
				if !errors.As(err, &missing) {
					return err
				}
				arg.Lacks = true
			}
		}
		if arg.Corrected = r.Corrected[name]; r.Hold != nil && arg.Corrected == "" {
			arg.Corrected = r.Hold.Correction(name)
		}
		arg.Value = out.room.treeOf(name, "", value, "")
		out.Arguments = append(out.Arguments, arg)
	}
	return nil
}

func sortedNames(issued map[string]any, hold *journal.Hold) (names []string) {
	for name := range issued {
		names = append(names, name)
	}
	if hold != nil {
		for name := range hold.Arguments {
			if _, known := issued[name]; !known {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// evaluate returns the value of a reference as of a seq.
func (l reader) evaluate(ctx context.Context, name, text string, at int64, instance string) (any, error) {
	e, err := expr.Parse(text)
	if err != nil {
		return nil, err
	}
	return history.Get(ctx, journal.In(l.Log, name), e, at, instance)
}

// valueAt returns the value at a path, at the moment that is shown.
func (l reader) valueAt(ctx context.Context, v address, path, instance string, left *room) (node, error) {
	plain := strings.TrimPrefix(path, store.Dagger)
	value, err := l.evaluate(ctx, v.Context, path, v.At, instance)
	if missing := (*history.MissingError)(nil); errors.As(err, &missing) {
		return node{Key: plain, Path: plain, Type: "missing", Text: "missing"}, nil
	}
	return left.treeOf(plain, plain, value, ""), err
}
