package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/store"
)

// Question is how a model was asked for a plan.
type Question struct {
	Seq   int64  `json:"seq"`             // the seq as of which it was shown the context
	Model string `json:"model,omitempty"` // its name; empty for the default one
	// The paths that it was shown, where the request restricts them; nil for all.
	Scopes []string `json:"scopes,omitzero"`
	Cut    []string `json:"cut,omitempty"`   // paths of values that it was shown in part
	Every  []int    `json:"every,omitempty"` // positions of calls that stand for one call for every instance
}

// Showed reports whether the question showed a value as a whole, or that it was missing.
func (q *Question) Showed(path store.Path) bool {
	granted := q.Scopes == nil || slices.ContainsFunc(q.Scopes, func(text string) bool {
		scope, err := store.ParsePath(text)
		return err == nil && scope.Contains(path)
	})
	cut := slices.ContainsFunc(q.Cut, func(text string) bool {
		part, err := store.ParsePath(text)
		return err != nil || part.Overlaps(path)
	})
	return granted && !cut && path.Kind() != store.KindError
}

// Sources returns the calls of the event's plan message, as accepted.
func (e *PlanEvent) Sources(calls []any) (all []plan.Source) {
	for i, call := range calls {
		src := plan.Source{Call: call, Accepted: true, Dropped: e.IsDropped(i + 1)}
		isGiven := e.corrects(i+1, "_output") // by a person
		if e.Question != nil && !isGiven {
			src.ByModel = &plan.ByModel{Model: e.Question.Model, Lazy: e.Mode == plan.ModeLazy, Every: slices.Contains(e.Question.Every, i+1)}
		}
		all = append(all, src)
	}
	return all
}

// Compiler is a function that makes a plan of a request.
type Compiler = func(*plan.Request, *plan.Registry, plan.Exists) (*plan.Plan, error)

// Compile makes a plan of the calls of the event's plan message, as accepted.
func (e *PlanEvent) Compile(calls []any, registry *plan.Registry, exists plan.Exists, compile Compiler) (*plan.Plan, error) {
	registry, err := registry.WithoutFormats(calls)
	if err != nil {
		return nil, err
	}
	request := &plan.Request{Name: e.Plan, Calls: e.Sources(calls)}
	request.Output.Set = e.Output != nil
	var wrong [3]error
	request.Tools, wrong[0] = e.DecodeTools()
	request.Schema, wrong[1] = DecodeJSON(e.Schema)
	request.Output.Value, wrong[2] = DecodeJSON(e.Output)
	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}
	return compile(request, registry, exists)
}

// Answered says how a model answered a latent call.
type Answered struct {
	How  string `json:"how"`            // [WithPlan], [WhenAsked] or [Unchecked]
	Tick int    `json:"tick"`           // of the plan, or of the call
	Hash string `json:"hash,omitempty"` // of the request that asked; empty where it is not known
	// Paths of values that a model was shown in part as it was asked: none that the call reads.
	Cut []string `json:"cut,omitempty"`
}

// The ways in which a model answers a latent call.
const (
	WithPlan  = "plan"
	WhenAsked = "asked"
	Unchecked = "unchecked" // with a plan of an older version: it counted, whatever the model had seen
)

// String says how the call was answered, and names the question.
func (a *Answered) String() string {
	text := fmt.Sprintf("answered with the plan of tick %d", a.Tick)
	switch a.How {
	case WhenAsked:
		text = "answered as it was asked"
	case Unchecked:
		text += ", unchecked"
	}
	if a.Hash != "" {
		text += fmt.Sprintf(" (request %.7s)", a.Hash)
	}
	return text
}

// AnswerNote says what is to be known of a model's answer to the call: that it came with the plan,
// or that one that did was set aside. It is empty where there is nothing of that.
func (r *Record) AnswerNote() string {
	switch {
	case r.SetAside != nil:
		return r.SetAside.String()
	case r.Answered != nil && r.Answered.How == WithPlan:
		return "answered with the plan"
	}
	return ""
}

// SetAside is an answer that a model gave with its plan, and that does not count (protocol §5). The
// lists say what the model was not shown of what the call reads: references, and names of arguments
// that a person corrected.
type SetAside struct {
	Value   json.RawMessage `json:"value"`
	Missing []string        `json:"missing,omitempty"` // they were not there yet
	Newer   []string        `json:"newer,omitempty"`   // they were written or corrected since
	Cut     []string        `json:"cut,omitempty"`     // they were not shown, or in part
	Never   string          `json:"never,omitempty"`   // why it would not count whatever the call reads
}

// Counts reports whether nothing speaks against the answer.
func (s *SetAside) Counts() bool {
	return s.Never == "" && len(s.Missing)+len(s.Newer)+len(s.Cut) == 0
}

// String says why the answer was set aside.
func (s *SetAside) String() string {
	before := func(paths []string, then string) string {
		return fmt.Sprintf("an answer given before %s %s was set aside", strings.Join(paths, ", "), then)
	}
	switch {
	case s.Never != "":
		return "the answer given with the plan was set aside: " + s.Never
	case len(s.Missing) > 0:
		return before(s.Missing, "was there")
	case len(s.Newer) > 0:
		return before(s.Newer, "was as it is now")
	}
	return fmt.Sprintf("an answer given without sight of all of %s was set aside", strings.Join(s.Cut, ", "))
}
