package history

import (
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// ShownPlan is a plan that waits for a person's decision, as it is shown to them wherever they
// decide (cmd/SURFACE.md, approvals).
type ShownPlan struct {
	journal.LazyPlan
	Hash      string      `json:"hash"`
	PlannedBy string      `json:"planned_by,omitempty"` // model or function; empty for a list of calls
	Model     *plan.Usage `json:"model,omitempty"`      // what a model used to plan it
	Calls     []ShownCall `json:"calls"`
	Output    any         `json:"output,omitempty"`   // as written
	Warnings  []string    `json:"warnings,omitempty"` // about the plan of a model
	Problem   string      `json:"problem,omitempty"`  // why it can't run with the scripts as they are now
}

// ShownCall is a call of a [ShownPlan].
type ShownCall struct {
	Call        string          `json:"call"`
	Tool        string          `json:"tool"`
	Instance    string          `json:"instance,omitempty"`
	Reason      string          `json:"reason,omitempty"` // its _reasoningForCall
	Arguments   []ShownArgument `json:"arguments"`
	If          any             `json:"if,omitempty"` // as written, as are the next two
	At          any             `json:"at,omitempty"`
	In          any             `json:"in,omitempty"`
	After       []string        `json:"after,omitempty"` // paths
	Scopes      []string        `json:"scopes"`
	Permissions []string        `json:"permissions,omitempty"` // that its activity may use: "net api.example.com"
	Writes      string          `json:"writes,omitempty"`      // its output path as written
	Rules       plan.Values     `json:"rules,omitempty"`       // its other properties as written, such as _delegate, _outputMethod and _retries
	Held        bool            `json:"held,omitempty"`        // it will be held for a person, with its arguments
	Dropped     bool            `json:"dropped,omitempty"`     // a person has dropped it
}

// ShownArgument is an argument of a [ShownCall].
type ShownArgument struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // as written
	// Of an argument with references: its value as it is now, unless it is missing, or calls of the
	// plan write what it reads.
	Now *any `json:"now,omitempty"`
	// The calls of the plan that may write what it reads.
	By      []string `json:"by,omitempty"`
	Missing bool     `json:"missing,omitempty"` // nothing is there now, and no call writes it
}

// ShowPlan returns a plan that waits in a context as it is shown. run is the run that it waits in,
// compiled is the plan, and permissions returns those that the activity of a call may use.
func ShowPlan(ctx context.Context, c journal.Context, run *journal.Run, hash string, compiled *plan.Plan, permissions func(*plan.Call) []string) (*ShownPlan, error) {
	event := &run.Event
	shown := &ShownPlan{LazyPlan: run.LazyPlan(c.Name), Hash: hash, Model: event.Model, Calls: []ShownCall{}, Warnings: event.Warnings}
	switch {
	case event.ByModel:
		shown.PlannedBy = "model"
	case event.Planner:
		shown.PlannedBy = "function"
	}
	var err error
	if shown.Output, err = journal.DecodeJSON(event.Output); err != nil {
		return nil, err
	}
	superseded, err := c.Superseded(ctx)
	if err != nil {
		return nil, err
	}
	resolver := store.Resolver{Log: superseded.Without(c.Log), Context: c.Name}
	policy := event.Approve.For(event.ByModel)
	for i, call := range compiled.Calls {
		one := ShownCall{
			Call: journal.CallID(run.Tick, call.Position), Tool: call.Tool, Instance: call.Instance, Scopes: texts(call.ScopePaths), Arguments: []ShownArgument{},
			If: call.Issued["_if"], At: call.Issued["_at"], In: call.Issued["_in"], Dropped: call.Dropped,
		}
		one.Reason, _ = call.Issued["_reasoningForCall"].(string)
		one.Rules = rulesOf(call.Issued)
		if call.Output != nil {
			one.Writes = call.Output.Source
		}
		if len(call.After) > 0 {
			one.After = texts(call.After)
		}
		if !call.Dropped {
			one.Permissions, one.Held = permissions(call), policy.Holds(call)
		}
		for _, p := range call.Params {
			argument, err := showArgument(ctx, resolver, run.Tick, compiled, i, p.Name, p.Template)
			if err != nil {
				return nil, err
			}
			one.Arguments = append(one.Arguments, argument)
		}
		shown.Calls = append(shown.Calls, one)
	}
	return shown, nil
}

// shownApart are the properties of a call that have members of their own in [ShownCall].
var shownApart = []string{"_tool", "_instance", "_reasoningForCall", "_if", "_at", "_in", "_after", "_scopes", "_outputPath"}

// rulesOf returns the properties of a call as issued that are neither arguments nor shown apart.
func rulesOf(issued map[string]any) (rules plan.Values) {
	for name, value := range issued {
		if !strings.HasPrefix(name, "_") || slices.Contains(shownApart, name) {
			continue
		}
		if rules == nil {
			rules = plan.Values{}
		}
		rules[name] = value
	}
	return rules
}

// showArgument returns an argument of call i.
func showArgument(ctx context.Context, resolver store.Resolver, tick int, p *plan.Plan, i int, name string, written *expr.Template) (ShownArgument, error) {
	call := p.Calls[i]
	argument := ShownArgument{Name: name, Value: call.Issued[name]}
	reads := written.Reads()
	if len(reads) == 0 {
		return argument, nil
	}
	for _, path := range reads {
		for _, j := range p.Graph.SourcesOf(i, path) {
			if id := journal.CallID(tick, p.Calls[j].Position); !slices.Contains(argument.By, id) {
				argument.By = append(argument.By, id)
			}
		}
	}
	if len(argument.By) > 0 {
		return argument, nil
	}
	v, missing, err := written.Eval(ctx, func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(ctx, path, call.Instance)
		return resolved.Value, resolved.Exists, false, err
	})
	if errors.As(err, new(*expr.Error)) || missing != nil {
		argument.Missing = true
		return argument, nil
	}
	argument.Now = &v
	return argument, err
}
