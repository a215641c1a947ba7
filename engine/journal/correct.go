package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/plan"
	"obelus/store"
)

// With returns the arguments that a person is shown with corrections, for [Decision.Arguments]; nil
// without any. Each replaces the value at its key: an argument, or, by dots, a value inside one, in
// an array by an index from 0 to its length: {"note": "ok", "lines.0.amount": 5}. Its error is
// about a key.
func (h *Hold) With(set map[string]any) (map[string]any, error) {
	if len(set) == 0 {
		return nil, nil
	}
	corrections := make([]correction, 0, len(set))
	for key, v := range set {
		if strings.Count(key, ".") >= store.MaxDepth {
			return nil, fmt.Errorf("%s…: it leads more than %d deep", key[:32], store.MaxDepth)
		}
		corrections = append(corrections, correction{plan.CorrectionPlace(key, h.Arguments), v})
	}
	slices.SortFunc(corrections, correction.compare)
	arguments := any(map[string]any(h.Arguments))
	for _, c := range corrections {
		var err error
		if arguments, err = replaceAt(arguments, c.place, c.value); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(c.place, "."), err)
		}
	}
	return arguments.(map[string]any), nil
}

// Correct returns a call as issued with the corrections that a person made. The hold may be nil.
func (h *Hold) Correct(issued map[string]any) map[string]any {
	if h == nil || len(h.Corrected) == 0 {
		return issued
	}
	corrected := maps.Clone(issued)
	for _, name := range h.Corrected {
		delete(corrected, name)
		if v, ok := h.Arguments[name]; ok {
			corrected[name] = plan.Literal(v)
		}
	}
	return corrected
}

// correction is a value and the place where it is to stand, from the argument inwards.
type correction struct {
	place []string
	value any
}

func (c correction) compare(other correction) int {
	return jsonvalue.ComparePlaces(c.place, other.place)
}

// replaceAt gives a value in which another one stands at a place. It changes neither.
func replaceAt(v any, place []string, there any) (any, error) {
	if len(place) == 0 {
		return there, nil
	}
	key, rest := place[0], place[1:]
	if key == "" {
		return nil, errors.New("a key has an empty part")
	}
	switch v := v.(type) {
	case map[string]any:
		inner, err := replaceAt(v[key], rest, there)
		object := make(map[string]any, len(v)+1)
		maps.Copy(object, v)
		object[key] = inner
		return object, err
	case []any:
		i, ok := jsonvalue.Index(key)
		if !ok || i > len(v) {
			return nil, fmt.Errorf("in an array of %d only an index from 0 to %[1]d can be corrected, not %s", len(v), key)
		}
		list := slices.Clone(v)
		if i == len(v) {
			list = append(list, nil)
		}
		var err error
		list[i], err = replaceAt(list[i], rest, there)
		return list, err
	}
	inner, err := replaceAt(nil, rest, there)
	return map[string]any{key: inner}, err
}

// Correction says what a person made of an argument, with what it was and the reference that had
// given that, as far as they are known: "4, corrected by ada; was 5 ◂ †input.amount".
func Correction(now any, who Who, was plan.Values, refs map[string]string, name string) string {
	text := fmt.Sprintf("%s, corrected by %s", store.EncodeJSON(now), who.Name())
	old, had := was[name]
	ref := refs[name]
	switch {
	case had:
		text += fmt.Sprintf("; was %s", store.EncodeJSON(old))
	case ref != "":
		text += "; was"
	}
	if ref != "" {
		text += " ◂ " + ref
	}
	return text
}

// Correction is [Correction] of an argument of the call; it is empty for one that nobody corrected.
func (h *Hold) Correction(name string) string {
	if !slices.Contains(h.Corrected, name) {
		return ""
	}
	return Correction(h.Arguments[name], h.Who, h.Was, h.Refs, name)
}

// CorrectionsOf says what a person made of members of a call before its plan ran, by place in the
// call, as [Correction] does. A plan without a decision has none.
func (e *PlanDecisionEvent) CorrectionsOf(call string) map[string]string {
	if e == nil {
		return nil
	}
	var all map[string]string
	for key, value := range e.Set {
		place, isOfCall := strings.CutPrefix(key, call+".")
		if !isOfCall {
			continue
		}
		was, refs := plan.Values{}, map[string]string{}
		old, had := e.Shown[key]
		if text, isText := old.(string); isText && expr.IsExpr(text) {
			refs[place] = text
		} else if had {
			was[place] = old
		}
		if all == nil {
			all = map[string]string{}
		}
		all[place] = Correction(value, e.Who, was, refs, place)
	}
	return all
}
