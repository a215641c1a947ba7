package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// rerunView is the form that forks a run, corrects arguments of a call, and runs it again with all
// that depends on it.
type rerunView struct {
	Context  string
	Call     string
	Tool     string
	Name     string // of the fork
	At       int64  // the seq at which the fork is made, where the call's tick had ended; 0 for now
	Calls    []callRow
	Again    []callRow // what runs again, the call itself first
	Kept     []callRow
	Acted    []callRow // what runs again though it must not run twice
	Fields   []field
	Commands []string
	Curls    []string
	By, Who  string
	Refused  string
}

func (p *Page) rerun(r *http.Request) (*content, error) {
	v, _, err := p.rerunOf(r)
	if err != nil {
		return nil, err
	}
	return &content{Title: "Run again from " + v.Call, Section: "runs", Template: "rerun", Data: v, Still: true}, nil
}

// rerunOf returns the form for a call, and the call as the plan has it.
func (p *Page) rerunOf(r *http.Request) (*rerunView, *plan.Call, error) {
	ctx, name := r.Context(), r.PathValue("context")
	v := &rerunView{Context: name, Call: r.FormValue("from"), Name: r.FormValue("name"), Who: claimedName(r)}
	if author := p.config.Author(r); author.Signed {
		v.By = author.Name
	}
	ticks, err := p.read.Ticks(ctx, name, 0)
	if err != nil {
		return nil, nil, err
	}
	lines, err := p.read.Lines(ctx, name, 0)
	if err != nil {
		return nil, nil, err
	}
	if v.Calls, err = p.read.callsToRerun(ctx, name, ticks, lines); err != nil {
		return nil, nil, err
	}
	if v.Call == "" {
		v.Call = firstToRerun(v.Calls)
	}
	tick, err := p.read.RerunTick(ctx, name, v.Call)
	if err != nil {
		return nil, nil, err
	}
	v.At = tick.At
	again, err := history.Downstream(ctx, journal.In(p.config.Log, name), tick.Plan, tick.Records, v.Call)
	if err != nil {
		return nil, nil, err
	}
	var call *plan.Call
	for _, record := range tick.Records {
		row := rowOfCall(record)
		switch {
		case slices.Contains(again, record.Call):
			v.Again = append(v.Again, row)
			if record.NotIdempotent && record.Started != "" {
				v.Acted = append(v.Acted, row)
			}
		case record.Status.Settled():
			v.Kept = append(v.Kept, row)
		}
		if record.Call == v.Call && record.Position <= len(tick.Plan.Calls) {
			call, v.Tool = tick.Plan.Calls[record.Position-1], record.Tool
			if v.Fields, err = p.read.fieldsOfCall(r, name, record, call); err != nil {
				return nil, nil, err
			}
		}
	}
	if v.Name == "" {
		v.Name = p.read.freeName(r, name)
	}
	fork, at := map[string]any{"context": v.Name}, []string{"fork", "-c", name}
	if v.At > 0 {
		fork["at"], at = v.At, append(at, "--at", number(v.At))
	}
	v.Commands = []string{commandWith(at, v.Name), commandOf("run", "--from", v.Call, "-c", v.Name)}
	c := p.callerOf(r)
	v.Curls = []string{
		c.curl(act{http.MethodPost, contextPath(name, "fork"), fork}),
		c.curl(act{http.MethodPost, contextPath(v.Name, "resume"), map[string]any{"from": v.Call}}),
	}
	return v, call, nil
}

// callsToRerun lists the calls of the newest run that have settled, of all its ticks. Its error
// says why there is none.
func (l reader) callsToRerun(ctx context.Context, name string, ticks []engine.Tick, lines []*journal.Line) ([]callRow, error) {
	refuse := func(format string, args ...any) error {
		return &refusedError{http.StatusConflict, fmt.Sprintf(format, args...)}
	}
	if len(ticks) == 0 {
		return nil, refuse("nothing has run in %s: there is no call that could run again", name)
	}
	first, hasCalls, refused := ticks[0].Tick, false, error(nil)
	for _, tick := range ticks {
		hasCalls = hasCalls || len(tick.Plan.Calls) > 0
		if tick.Refused != nil {
			refused = tick.Refused
		}
	}
	settled := journal.Pick(lines, func(line *journal.Line) bool { return line.Tick >= first && line.Status.Settled() })
	switch {
	case len(settled) > 0:
	case refused != nil:
		return nil, refused
	case !hasCalls:
		return nil, refuse("the plan of %s has no calls: there is none that could run again", name)
	default:
		return nil, refuse("no call of %s has ended: there is none from which it could run again", name)
	}
	records, err := l.Records(ctx, name, settled[:min(len(settled), mostRows)])
	if err != nil {
		return nil, err
	}
	var rows []callRow
	for _, record := range records {
		rows = append(rows, rowOfCall(record))
	}
	return rows, nil
}

// firstToRerun returns the call that a form begins with: the first that failed, or the first of
// all.
func firstToRerun(calls []callRow) string {
	for _, c := range calls {
		if c.Status == journal.Failed {
			return c.Call
		}
	}
	return calls[0].Call
}

// fieldsOfCall returns the inputs for the arguments of a call, with the values that it had.
func (l reader) fieldsOfCall(r *http.Request, name string, record journal.Record, call *plan.Call) ([]field, error) {
	arguments, err := l.argumentsOf(r, name, record, call)
	if err != nil {
		return nil, err
	}
	var schema any
	if call.Definition != nil {
		schema = call.Definition.Schema
	}
	return withUnknown(fieldsOf(schema, any(arguments)), arguments), nil
}

// argumentsOf returns the arguments with which a call ran.
func (l reader) argumentsOf(r *http.Request, name string, record journal.Record, call *plan.Call) (map[string]any, error) {
	if record.Hold != nil && record.Hold.Arguments != nil {
		return record.Hold.Arguments, nil
	}
	resolver := store.Resolver{Log: l.Log, Context: name, At: record.At}
	values, _, err := call.Evaluate(r.Context(), func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(r.Context(), path, record.Instance)
		return resolved.Value, resolved.Exists, false, err
	}, nil)
	if err != nil {
		return nil, err
	}
	own := map[string]any{}
	for key, value := range values {
		if key[0] != '_' {
			own[key] = value
		}
	}
	return own, nil
}

// longestStem bounds the part of a run's name with which the name of a fork begins.
const longestStem = 62

// freeName returns a name for a fork that no context has.
func (l reader) freeName(r *http.Request, name string) string {
	for letter := 'b'; letter <= 'z'; letter++ {
		free := name[:min(len(name), longestStem)] + "-" + string(letter)
		if _, err := l.Log.Head(r.Context(), free); errors.Is(err, store.ErrNoContext) && store.CheckContext(free) == nil {
			return free
		}
	}
	return ""
}

// postRerun forks a run and runs a call of it again. Corrections are checked first, so that a wrong
// one leaves no fork.
func (p *Page) postRerun(w http.ResponseWriter, r *http.Request) error {
	if err := CheckForm(r); err != nil {
		return p.Fail(w, r, err)
	}
	v, call, err := p.rerunOf(r)
	if err != nil {
		return p.Fail(w, r, err)
	}
	name := r.PathValue("context")
	body := map[string]any{"from": v.Call}
	set, err := corrections(v.Fields, r.PostForm)
	if err == nil && set != nil {
		var values map[string]any
		if values, err = decoded(set); err == nil {
			body["set"] = values
			err = p.checkCorrections(r, name, v, call, values)
		}
	}
	if by := strings.TrimSpace(r.PostForm.Get("by")); by != "" {
		body["by"] = by
		err = cmp.Or(err, journal.Who{Claimed: by}.Check())
	}
	fork := map[string]any{}
	if v.Name != "" {
		fork["context"] = v.Name
	}
	if v.At > 0 {
		fork["at"] = v.At
	}
	var made struct{ Context string }
	if err == nil {
		err = p.do(r, act{http.MethodPost, contextPath(name, "fork"), fork}, &made)
	}
	if err == nil {
		err = p.do(r, act{http.MethodPost, contextPath(made.Context, "resume"), body}, nil)
	}
	if err != nil {
		status, message := p.explain(r, err)
		if made.Context != "" {
			message = "the fork " + made.Context + " is made, but: " + message
		}
		v.Refused = message
		refill(v.Fields, r.PostForm, message)
		return p.send(w, r, &content{Title: "Run again from " + v.Call, Section: "runs", Template: "rerun", Data: v, Still: true, Status: status})
	}
	p.rememberName(w, r)
	http.Redirect(w, r, mount.Prefix(r)+"/runs/"+url.PathEscape(made.Context), http.StatusSeeOther)
	return nil
}

// checkCorrections returns the error with which a run would refuse corrections.
func (p *Page) checkCorrections(r *http.Request, name string, v *rerunView, call *plan.Call, set map[string]any) error {
	if call == nil || call.Definition == nil {
		return nil
	}
	lines, err := p.read.Lines(r.Context(), name, 0)
	if err != nil {
		return err
	}
	of := journal.Pick(lines, func(line *journal.Line) bool { return line.Call == v.Call })
	records, err := p.read.Records(r.Context(), name, of)
	if err != nil || len(records) == 0 {
		return err
	}
	arguments, err := p.read.argumentsOf(r, name, records[0], call)
	if err != nil {
		return err
	}
	hold := journal.Hold{Arguments: arguments}
	corrected, err := hold.With(set)
	if err := cmp.Or(err, call.Definition.Correctable(slices.Sorted(maps.Keys(set)), arguments)); err != nil {
		return &refusedError{http.StatusUnprocessableEntity, err.Error()}
	}
	if err := call.Definition.Accepts(corrected); err != nil {
		return &refusedError{http.StatusUnprocessableEntity, err.Error()}
	}
	return nil
}
