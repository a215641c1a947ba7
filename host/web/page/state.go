package page

import (
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/visible"
	"obelus/store"
)

// stateView is the values of a context at a moment, and where one of them comes from.
type stateView struct {
	address
	Kinds     []node
	Instances []string
	Changes   []changeRow // since the moment that is compared with
	Compared  bool
	Why       *whyView
	Missing   string // the reason why the reference has no value
}

// whyView is the origin of a value.
type whyView struct {
	history.Why
	Ref      string
	Command  string
	Versions []version // what wrote to the path, newest first
}

// Text returns a value that is a text of several lines; empty for any other.
func (v whyView) Text() string {
	if text, _ := v.Value.(string); strings.Contains(text, "\n") {
		return cutText(text, mostShown)
	}
	return ""
}

// version is a message that touched a path.
type version struct {
	Seq  int64
	Date string
	Call string
	Kind string
	Text string
}

// changeRow is a path at which two moments differ.
type changeRow struct {
	Path, Instance string
	Old, New       string
	Sign           string // + for a new path, − for one that is gone, ~ for another value
}

func rowsOfChanges(changes []history.Change) (rows []changeRow) {
	for _, c := range changes {
		row := changeRow{Path: c.Path, Instance: c.Instance, Sign: "~"}
		if c.Old.Set {
			row.Old = oneLine(c.Old.Value)
		} else {
			row.Sign = "+"
		}
		if c.New.Set {
			row.New = oneLine(c.New.Value)
		} else {
			row.Sign = "−"
		}
		rows = append(rows, row)
	}
	return rows
}

func (l reader) stateOf(ctx context.Context, v address) (stateView, error) {
	out := stateView{address: v}
	kinds, err := l.Log.Kinds(ctx, v.Context) // instances that come later too: to know better takes a look at each
	if err != nil {
		return out, err
	}
	for _, k := range kinds {
		if k.Instance != "" && !slices.Contains(out.Instances, k.Instance) {
			out.Instances = append(out.Instances, k.Instance)
		}
	}
	if len(out.Instances) > mostItems {
		out.Instances = out.Instances[:mostItems]
	}
	values, err := l.Values(ctx, v.Context, v.At, v.Inside)
	if err != nil {
		return out, err
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	left := newRoom()
	for _, name := range names {
		out.Kinds = append(out.Kinds, left.treeOf(name, name, values[name], v.Ref))
	}
	if v.Since > 0 {
		out.Compared = true
		changes, err := history.Diff(ctx, l.Log, history.Moment{Context: v.Context, At: v.Since}, history.Moment{Context: v.Context, At: v.At})
		if err != nil {
			return out, err
		}
		out.Changes = rowsOfChanges(changes)
	}
	if v.Ref != "" {
		if out.Why, err = l.whyOf(ctx, v); err != nil {
			if _, missing := errors.AsType[*history.MissingError](err); !missing && store.ClassOf(err) != store.Usage {
				return out, err
			}
			out.Missing = err.Error()
		}
	}
	return out, nil
}

// mostVersions bounds how many versions of a value are listed.
const mostVersions = 20

func (l reader) whyOf(ctx context.Context, v address) (*whyView, error) {
	e, err := history.ParseRef(v.Ref)
	if err != nil {
		return nil, err
	}
	why, err := history.Explain(ctx, journal.In(l.Log, v.Context), e, v.At, v.Inside)
	if err != nil {
		return nil, err
	}
	out := &whyView{Why: *why, Ref: v.Ref}
	flags := []string{"-c", v.Context}
	if v.At > 0 {
		flags = append(flags, "--at", number(v.At))
	}
	if v.Inside != "" {
		flags = append(flags, "--instance", v.Inside)
	}
	if strings.HasPrefix(v.Ref, "-") {
		out.Command = commandWith(append([]string{"why"}, flags...), v.Ref)
	} else {
		out.Command = commandOf(append([]string{"why", v.Ref}, flags...)...)
	}
	path, err := store.ParsePath(store.Dagger + v.Ref)
	if err != nil {
		return out, nil // it is an expression, which has no versions of its own
	}
	at := v.At
	for m, err := range l.Log.Messages(ctx, store.Filter{Context: v.Context, Path: path, At: at, Newest: true}) {
		if err != nil {
			return nil, err
		}
		if len(out.Versions) == mostVersions {
			break
		}
		out.Versions = append(out.Versions, versionOf(m, path))
	}
	return out, nil
}

// versionOf describes a message as a version of a path.
func versionOf(m *store.Message, path store.Path) version {
	out := version{Seq: m.Seq, Date: store.FormatDate(m.Date), Call: m.Call, Kind: m.Kind}
	if !m.Data.Set {
		return out
	}
	value := m.Data.Value
	if v, ok := store.Dig(map[string]any{m.Kind: value}, path); ok {
		value = v
	}
	out.Text = oneLine(value)
	return out
}

// logView is a window of a context's messages.
type logView struct {
	address
	Rows  []logRow
	Older string // the query of the next window; empty on the last
	Wrong string // about a filter that is not applied
}

// logRow is a message.
type logRow struct {
	Seq                  int64
	ID, Date, Type, Kind string
	Instance, Call, Path string
	Tool                 string
	Text                 string // its data in one line
	Tree                 *node
}

// logRows is the number of messages in a window.
const logRows = 50

func (l reader) logOf(ctx context.Context, v address) (logView, error) {
	out := logView{address: v}
	asked := history.LogFilter{Kind: v.Kind, Text: visible.Text(v.Query)}
	if v.Tool != "" {
		asked.Tool = strings.Split(v.Tool, ",")
	}
	asked.Since, out.Wrong = readMoment(v.From)
	if v.Path != "" {
		path, err := store.ParseTyped(v.Path)
		if asked.Path = path; err != nil {
			out.Wrong = "A path is written as †state.user, and it is not looked for: " + err.Error()
		}
	}
	f := asked.Messages(v.Context)
	f.At, f.Newest = v.At, true
	if before := cursorSeq(v.Cursor); before > 0 {
		f.At = before - 1
		if f.At == 0 {
			return out, nil
		}
	}
	read, left := 0, newRoom()
	for m, err := range l.Log.Messages(ctx, f) {
		if err != nil {
			return out, err
		}
		if len(out.Rows) == logRows || read == mostSearched {
			out.Older = v.With("cursor", m.Seq+1)
			break
		}
		read++
		if asked.Picks(m) {
			out.Rows = append(out.Rows, logRowOf(m, left))
		}
	}
	return out, nil
}

// mostSearched is the number of messages in which a window looks for a text.
const mostSearched = 5000

func logRowOf(m *store.Message, left *room) logRow {
	row := logRow{Seq: m.Seq, ID: "message-" + number(m.Seq), Date: store.FormatDate(m.Date), Type: string(m.Type), Kind: m.Kind, Instance: m.Instance, Call: m.Call}
	if m.Call != "" {
		row.Path = m.Path.String()
	}
	if producer, ok := m.Producer.(map[string]any); ok {
		row.Tool, _ = producer["_tool"].(string)
	}
	if m.Data.Set {
		row.Text = cutText(encode(m.Data.Value), 300)
		if store.SizeOf(m.Data.Value) > lineLength && left.characters > 0 {
			n := left.treeOf(row.Kind, "", m.Data.Value, "")
			row.Tree = &n
		}
	} else if m.Schema != nil {
		row.Text = "declares a schema"
	}
	return row
}
