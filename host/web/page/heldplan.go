package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// heldPlan is a plan that waits for a person, with the form for the decision.
type heldPlan struct {
	*history.ShownPlan
	ID        string
	Back      string // "inbox" on the inbox
	Cost      string // of the model that planned it
	Rows      []heldPlanCall
	Approve   equivalent
	Reject    equivalent
	Effects   []string // what a decision that is to be confirmed would change
	Confirmed string   // identifies that decision, as changeOf has it: another one has to be confirmed by itself
}

// heldPlanCall is a call of a plan that waits.
type heldPlanCall struct {
	history.ShownCall
	Inputs []planInput
	Drops  bool // the form drops it
}

// planInput is the input for an argument of a call of a plan that waits.
type planInput struct {
	Name  string
	Place string // "1.2.amount"
	Text  string
	Note  string // what a reference comes to
	Large bool   // it is too long for an input: Text is its beginning
}

// HasLines reports whether the text has several lines, which only a textarea keeps.
func (i planInput) HasLines() bool { return strings.ContainsAny(i.Text, "\r\n") }

// heldPlanOf returns the plan that waits in a context, or in a delegate's there; nil for none.
func (p *Page) heldPlanOf(r *http.Request, name string) (*heldPlan, error) {
	shown, err := p.config.ShowPlan(r.Context(), name)
	if _, none := errors.AsType[*journal.NoSuchCallError](err); none || err != nil {
		if none {
			err = nil
		}
		return nil, err
	}
	held := &heldPlan{ShownPlan: shown, ID: "plan-" + shown.Context}
	if shown.Model != nil {
		held.Cost = usageText(shown.Model)
	}
	for _, call := range shown.Calls {
		row := heldPlanCall{ShownCall: call}
		for _, argument := range call.Arguments {
			input := planInput{Name: argument.Name, Place: call.Call + "." + argument.Name, Text: argumentText(argument.Value), Note: argumentNote(argument)}
			if cut := cutText(input.Text, mostText); cut != input.Text {
				input.Large, input.Text = true, cut
			}
			row.Inputs = append(row.Inputs, input)
		}
		held.Rows = append(held.Rows, row)
	}
	c := p.callerOf(r)
	held.Approve = equivalent{"approve", commandOf("approve", "--plan="+shown.Hash, "-c", shown.Context), c.curl(act{http.MethodPost, contextPath(shown.Context, "approve"), map[string]any{"hash": shown.Hash}})}
	held.Reject = equivalent{
		"reject", commandOf("reject", "--plan="+shown.Hash, "--reason", "…", "-c", shown.Context),
		c.curl(act{http.MethodPost, contextPath(shown.Context, "reject"), map[string]any{"hash": shown.Hash, "reason": "…"}}),
	}
	return held, nil
}

// argumentText returns an argument as an input has it: a text as it is, anything else as JSON.
func argumentText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return encode(v)
}

// argumentNote says what an argument with references comes to.
func argumentNote(a history.ShownArgument) string {
	switch {
	case a.Now != nil:
		return "now " + cutText(encode(*a.Now), mostText)
	case len(a.By) > 0:
		return "by " + strings.Join(a.By, ", ")
	case a.Missing:
		return "missing"
	}
	return ""
}

// planAct returns the request for the form of a plan that waits: approve-plan or reject-plan.
func (p *Page) planAct(ctx context.Context, name, what string, form url.Values) (act, error) {
	body := map[string]any{"hash": form.Get("hash")}
	if by := strings.TrimSpace(form.Get("by")); by != "" {
		body["by"] = by
	}
	if what == "reject-plan" {
		body["reason"] = form.Get("reason")
		return act{http.MethodPost, contextPath(name, "reject"), body}, nil
	}
	shown, err := p.config.ShowPlan(ctx, name)
	if err != nil {
		return act{}, err
	}
	without := form["without"]
	set := map[string]any{}
	for _, call := range shown.Calls {
		for _, argument := range call.Arguments {
			place := call.Call + "." + argument.Name
			text := withoutReturns(form.Get(valueOf + place))
			isKept := text == withoutReturns(argumentText(argument.Value))
			if slices.Contains(without, call.Call) || !form.Has(valueOf+place) || isKept {
				continue
			}
			if set[place], err = correctionOf(place, argument.Value, text); err != nil {
				return act{}, err
			}
		}
	}
	if len(set) > 0 {
		body["set"] = set
	}
	if len(without) > 0 {
		body["without"] = without
	}
	return act{http.MethodPost, contextPath(name, "approve"), body}, nil
}

// withoutReturns returns a text with the ends of lines that all browsers give back alike.
func withoutReturns(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// correctionOf reads what a person has typed in the place of an argument: a text where that was
// one, an expression, or else JSON.
func correctionOf(place string, was any, text string) (any, error) {
	old, wasText := was.(string)
	if expr.IsExpr(text) || wasText && !expr.IsExpr(old) {
		return text, nil
	}
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		return nil, &fieldError{place, "it must be an expression that begins with †, or JSON (a text in quotes): " + err.Error()}
	}
	return v, nil
}

// previewPlan returns what the decision of a form would change, for the person to confirm; none for
// one that is confirmed, or changes nothing for other calls.
func (p *Page) previewPlan(r *http.Request, a act) ([]string, error) {
	body, _ := a.Body.(map[string]any)
	isChange := body["without"] != nil || body["set"] != nil
	if isConfirmed := r.PostForm.Get("confirmed") == changeOf(r.PostForm); isConfirmed || !isChange {
		return nil, nil
	}
	preview := map[string]any{"preview": true}
	for name, v := range body {
		preview[name] = v
	}
	var answer struct{ Effects []string }
	err := p.do(r, act{a.Method, a.Path, preview}, &answer)
	return answer.Effects, err
}

// changeOf identifies what a form for a plan that waits drops and has in its inputs.
func changeOf(form url.Values) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if name == "without" || strings.HasPrefix(name, valueOf) {
			fmt.Fprintf(sum, "%q %q\n", name, withoutReturns(strings.Join(form[name], ",")))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// refill puts the values of a form into the inputs of a plan.
func (h *heldPlan) refill(form url.Values, effects []string) {
	h.Effects, h.Confirmed = effects, changeOf(form)
	for i := range h.Rows {
		row := &h.Rows[i]
		row.Drops = slices.Contains(form["without"], row.Call)
		for j := range row.Inputs {
			if form.Has(valueOf + row.Inputs[j].Place) {
				row.Inputs[j].Text = form.Get(valueOf + row.Inputs[j].Place)
			}
		}
	}
}
