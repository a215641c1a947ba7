package page

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// inboxView is all that waits for a person.
type inboxView struct {
	Calls   []heldCall
	Plans   []*heldPlan
	Tools   []string // for the filter
	Tool    string
	Run     string // decisions of this run and its delegates alone; empty for all
	More    int    // decisions that are not shown
	Damaged string
	Decides bool   // the author may decide
	By      string // name of the author, if a token says it
	Name    string // else the name that they have given
	Refused string // why a decision was not taken
	Of      string // the context that it was about
}

// heldCall is a call with the form for a decision about it.
type heldCall struct {
	journal.Record
	ID      string
	Fields  []field
	Whole   *node // all arguments, where the inputs do not show them all
	Granted []node
	Approve equivalent
	Reject  equivalent
}

// mostHeld is the number of calls that the inbox shows with their forms.
const mostHeld = 50

func (p *Page) inbox(r *http.Request) (*content, error) {
	v, err := p.inboxOf(r)
	if err != nil {
		return nil, err
	}
	return &content{Title: "Inbox", Section: "inbox", Template: "inbox", Data: v}, nil
}

func (p *Page) inboxOf(r *http.Request) (*inboxView, error) {
	ctx := r.Context()
	waiting, err := p.config.Waiting.Look(ctx)
	if err != nil {
		return nil, err
	}
	tool, run := r.URL.Query().Get("tool"), r.URL.Query().Get("run")
	held := waiting.Contexts
	if run != "" {
		held = nil
		for _, info := range waiting.Contexts {
			within, err := journal.In(p.config.Log, info.Context).IsWithin(ctx, run)
			if err != nil {
				return nil, err
			}
			if within {
				held = append(held, info)
			}
		}
	}
	in, rest, err := history.ReadOldest(ctx, p.config.Log, held, mostHeld, tool)
	if err != nil {
		return nil, err
	}
	author := p.config.Author(r)
	v := &inboxView{Tool: tool, Run: run, More: rest, Decides: author.Role >= host.MayDecide, Name: claimedName(r)}
	if author.Signed {
		v.By = author.Name
	}
	if in.Damaged != nil {
		v.Damaged = in.Damaged.Error()
	}
	definitions := definitions{p.read, map[string][]engine.Tick{}}
	if rest > 0 || tool != "" { // what was not read may be of any
		v.Tools = p.config.Host.Generation().Registry().Names()
	}
	slices.SortStableFunc(in.Calls, func(a, b journal.Record) int { return strings.Compare(sinceOf(a), sinceOf(b)) })
	for _, record := range in.Calls {
		if !slices.Contains(v.Tools, record.Tool) {
			v.Tools = append(v.Tools, record.Tool)
		}
		switch {
		case v.Tool != "" && record.Tool != v.Tool:
		case len(v.Calls) == mostHeld:
			v.More++
		default:
			held, err := definitions.heldCallOf(ctx, record, p.callerOf(r))
			if err != nil {
				return nil, err
			}
			v.Calls = append(v.Calls, held)
		}
	}
	slices.Sort(v.Tools)
	for _, lazy := range in.Plans {
		held, err := p.heldPlanOf(r, lazy.Context)
		if err != nil {
			return nil, err
		}
		if held != nil { // it was not decided meanwhile
			held.Back = "inbox"
			v.Plans = append(v.Plans, held)
		}
	}
	return v, nil
}

func sinceOf(r journal.Record) string {
	if r.Hold == nil {
		return ""
	}
	return r.Hold.Since
}

func (l *definitions) heldCallOf(ctx context.Context, record journal.Record, c caller) (heldCall, error) {
	held := heldCall{Record: record, ID: "held-" + record.Context + "-" + record.Call}
	held.Approve = equivalentOf(c, record.Context, "approve", record.Call, "approve", record.Call)
	held.Reject = equivalentOf(c, record.Context, "reject", record.Call, "reject", record.Call, "--reason", "…")
	if record.Hold == nil {
		return held, nil
	}
	left := newRoom()
	for _, name := range slices.Sorted(maps.Keys(record.Hold.Granted)) {
		held.Granted = append(held.Granted, left.treeOf(name, "", record.Hold.Granted[name], ""))
	}
	var err error
	held.Fields, err = l.argumentFields(ctx, record)
	if arguments := map[string]any(record.Hold.Arguments); err == nil && !covers(held.Fields, arguments) {
		n := left.treeOf("arguments", "", any(arguments), "")
		held.Whole = &n
	}
	return held, err
}

// argumentFields returns the inputs for the arguments of a held call, as it is held.
func (l *definitions) argumentFields(ctx context.Context, record journal.Record) ([]field, error) {
	var schema any
	if tool, ok := l.toolOf(ctx, record); ok {
		schema = tool.Schema
	}
	arguments := map[string]any(record.Hold.Arguments)
	return withUnknown(fieldsOf(schema, any(arguments)), arguments), nil
}

// definitions finds the definitions of calls' tools. It keeps the runs that it read.
type definitions struct {
	reader
	runs map[string][]engine.Tick // by context
}

// toolOf returns the definition of a call's tool, from its plan or from the scripts.
func (l *definitions) toolOf(ctx context.Context, record journal.Record) (*plan.Tool, bool) {
	ticks, known := l.runs[record.Context]
	if !known {
		ticks, _ = l.Ticks(ctx, record.Context, 0) // of a run that can't be read the scripts know
		l.runs[record.Context] = ticks
	}
	for _, one := range ticks {
		if one.Tick == record.Tick && record.Position >= 1 && record.Position <= len(one.Plan.Calls) {
			if tool := one.Plan.Calls[record.Position-1].Definition; tool != nil {
				return tool, true
			}
		}
	}
	return l.Host.Generation().Registry().Tool(record.Tool)
}

// inboxMark tells states of the inbox apart, without reading the calls.
func (p *Page) inboxMark(r *http.Request) (string, error) {
	waiting, err := p.config.Waiting.Look(r.Context())
	return fmt.Sprint(waiting.Version, p.config.Host.Generation().Number, p.config.Host.LastReload().Err), err
}

// addCorrections adds to an approval the arguments that a form has with other values than the call.
func (p *Page) addCorrections(r *http.Request, name string, body map[string]any) error {
	record, err := journal.In(p.config.Log, name).HeldCall(r.Context(), r.PostForm.Get("call"))
	if err != nil || record.Hold == nil {
		return err
	}
	fields, err := (&definitions{p.read, map[string][]engine.Tick{}}).argumentFields(r.Context(), record)
	if err != nil {
		return err
	}
	set, err := corrections(fields, r.PostForm)
	if err != nil || set == nil {
		return err
	}
	body["set"], err = decoded(set)
	return err
}

// decoded returns values of JSON texts, by their names.
func decoded(set map[string]json.RawMessage) (map[string]any, error) {
	values := map[string]any{}
	for name, text := range set {
		v, err := store.DecodeJSON(text)
		if err != nil {
			return nil, &fieldError{name, err.Error()}
		}
		values[name] = v
	}
	return values, nil
}

// sendInbox answers with the inbox, and why a decision was not taken.
func (p *Page) sendInbox(w http.ResponseWriter, r *http.Request, status int, name, message string, effects []string) error {
	return p.answer(w, r, func(r *http.Request) (*content, error) {
		v, err := p.inboxOf(r)
		if err != nil {
			return nil, err
		}
		v.Refused, v.Of = message, name+" "+r.PostForm.Get("call")
		for _, held := range v.Plans {
			if held.Context == name {
				held.refill(r.PostForm, effects)
			}
		}
		for i := range v.Calls {
			if c := &v.Calls[i]; c.Context == name && c.Call == r.PostForm.Get("call") {
				refill(c.Fields, r.PostForm, message)
			}
		}
		return &content{Title: "Inbox", Section: "inbox", Template: "inbox", Data: v, Still: true, Status: status}, nil
	})
}
