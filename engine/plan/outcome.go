package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/store"
)

// An outcome of a call with several alternatives is {"to": T, "value": V}, where T is an
// alternative as [Call.Alternatives] has it; for the last one also {"to": T, "message": "…"}, a
// failure.

// ReadOutcome reads an outcome. Its result or its failure goes to the alternative that it names;
// wrong says why it is none.
func ReadOutcome(alternatives []string, given any) (result Result, failure *Failure, wrong error) {
	object, _ := given.(map[string]any)
	to, _ := object["to"].(string)
	i := slices.Index(alternatives, canonicalAlternative(to))
	last := i >= 0 && alternatives[i] == alternatives[len(alternatives)-1]
	value, hasValue := object["value"]
	message, _ := object["message"].(string)
	switch {
	case i < 0:
		return result, nil, fmt.Errorf(`expected {"to": …, "value": …}, where to is one of %s`, store.EncodeJSON(alternatives))
	case hasValue:
		return Result{To: alternatives[i], Value: value}, nil, nil
	case last && message != "":
		return result, NewFailure("%s", message), nil
	case last:
		return result, nil, fmt.Errorf(`value is missing, or for a failure "message", a text`)
	}
	return result, nil, errors.New("value is missing")
}

// IsOutcome reports whether a value has the form of an outcome that names an output path.
func IsOutcome(given any) bool {
	object, _ := given.(map[string]any)
	_, hasValue := object["value"]
	_, hasMessage := object["message"]
	to, _ := object["to"].(string)
	return len(object) == 2 && hasValue != hasMessage && canonicalAlternative(to) != ""
}

// canonicalAlternative returns an alternative of an output path as [Call.Alternatives] has it;
// empty for any other text.
func canonicalAlternative(text string) string {
	if all := OutputAlternatives(text); len(all) == 1 {
		return all[0]
	}
	return ""
}

// OutputAlternatives returns the alternatives of an output path as [Call.Alternatives] does; nil
// for a text that is none.
func OutputAlternatives(text string) []string {
	output, err := expr.ParseOutput(text)
	if err != nil {
		return nil
	}
	return alternativesOf(output)
}

func alternativesOf(output *expr.Output) (all []string) {
	for _, paths := range output.Alternatives {
		var names []string
		for _, path := range paths {
			names = append(names, path.String())
		}
		all = append(all, strings.Join(names, " && "))
	}
	return all
}

// Choice is the alternative of its call that the output of a delegate goes to.
type Choice struct {
	To    string `json:"to"`              // as [Call.Alternatives] has it, or a path in it
	Fails bool   `json:"fails,omitempty"` // the output is the message of a failure
}

// Choose takes an outcome in the request's output apart, and holds the choice to the alternatives
// that there are. Its error is a [*PlanError].
func (r *Request) Choose() error {
	if object, _ := r.Output.Value.(map[string]any); r.Choice == nil && len(r.Outcomes) > 1 && IsOutcome(object) {
		r.Choice = &Choice{To: object["to"].(string)}
		if r.Output.Value = object["value"]; object["message"] != nil {
			r.Choice.Fails, r.Output.Value = true, object["message"]
		}
	}
	if r.Choice == nil {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return &PlanError{[]Problem{{File: r.Name, Line: r.OutputLine, Severity: SeverityError, Code: "output", Message: "output: " + fmt.Sprintf(format, args...)}}}
	}
	if len(r.Outcomes) == 0 {
		return refuse("it is sent to %s, and there is nothing to choose: only the output of a delegate goes to an alternative of an _outputPath, which its call has", r.Choice.To)
	}
	i := slices.IndexFunc(r.Outcomes, func(alternative string) bool { return alternative == canonicalAlternative(r.Choice.To) })
	if path, err := store.ParsePath(r.Choice.To); i < 0 && err == nil {
		i = slices.IndexFunc(r.Outcomes, func(alternative string) bool {
			output, err := expr.ParseOutput(alternative)
			return err == nil && slices.Contains(output.Alternatives[0], path)
		})
	}
	last := r.Outcomes[len(r.Outcomes)-1]
	switch {
	case i < 0:
		return refuse("it is sent to %s, which is none of %s", r.Choice.To, store.EncodeJSON(r.Outcomes))
	case r.Choice.Fails && r.Outcomes[i] != last:
		return refuse("a failure goes to the last alternative, %s", last)
	}
	r.Choice = &Choice{r.Outcomes[i], r.Choice.Fails}
	return nil
}

// Answer is the result that a model gave a latent call as it planned it (protocol §5).
type Answer struct {
	Given   any // as it stands in the plan
	Result  Result
	Failure *Failure // in place of the result; nil for none

	// NeverCounts is why the answer does not count, whatever the call reads; empty where that decides.
	NeverCounts string
}

// parseAnswer reads the answer of a model that stands in its plan: an outcome, or a value, which
// goes to the first alternative.
func (c *Call) parseAnswer(given any) error {
	c.Answer = &Answer{Given: given, Result: Result{Value: given}, NeverCounts: c.neverCounts()}
	alternatives := c.Alternatives()
	canChoose := len(alternatives) > 1 || len(alternatives) == 1 && c.Definition.consts["_outputPath"] == nil
	if !canChoose || !IsOutcome(given) {
		return nil
	}
	var wrong error
	if c.Answer.Result, c.Answer.Failure, wrong = ReadOutcome(alternatives, given); wrong != nil {
		c.Answer = nil
		return Faultf(CodeSchema, "_output: %w", wrong)
	}
	return nil
}

// CheckAnswer holds the answer to the schema of the call's result.
func (c *Call) CheckAnswer() error {
	if c.Answer == nil || c.Answer.Failure != nil {
		return nil
	}
	return c.checkOutput(c.Answer.Result.Value)
}

// readsNothing reports whether the call has neither references nor scopes.
func (c *Call) readsNothing() bool { return len(c.Refs)+len(c.ScopePaths) == 0 }

// neverCounts returns why the answer of the model that planned the call does not count, whatever
// the call reads: it is about something else than the model was shown. It is empty for none.
func (c *Call) neverCounts() string {
	switch {
	case c.byModel.Every:
		return "it was given once for every instance"
	case len(c.After) > 0:
		return "the call waits for others by _after"
	case c.byModel.Lazy:
		return "the plan is lazy"
	}
	return ""
}
