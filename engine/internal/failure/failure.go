// Package failure gives errors of calls the form that the journal and error messages have.
package failure

import (
	"errors"

	"obelus/engine/plan"
	"obelus/store"
)

// Inside is the failure of an anonymous delegate: a fault, which goes to no alternative of its
// call.
type Inside struct{ Fields map[string]any }

func (e *Inside) Error() string { return (&plan.Failure{Fields: e.Fields}).Error() }

// Fields returns the fields of an error, with a message and a code at least.
func Fields(err error) map[string]any {
	var failure *plan.Failure
	if errors.As(err, &failure) {
		return readable(failure.Fields)
	}
	var inside *Inside
	if errors.As(err, &inside) {
		return inside.Fields
	}
	code := "runtime"
	var structural *plan.Fault
	if errors.As(err, &structural) {
		code = structural.Code
	}
	fields := map[string]any{"message": plan.ValidText(err.Error()), "code": code}
	var traced interface{ Trace() string }
	if errors.As(err, &traced) && traced.Trace() != "" {
		fields["traceback"] = traced.Trace()
	}
	return fields
}

// readable returns the fields of a failure, as far as an error message can hold them.
func readable(fields map[string]any) map[string]any {
	if store.CheckDepth(map[string]any{"error": fields}) == nil {
		return fields
	}
	kept := map[string]any{}
	for key, v := range fields {
		switch v.(type) {
		case map[string]any, []any:
		default:
			kept[key] = v
		}
	}
	return kept
}

// Handled returns the record of a failure that goes to the last alternative of its call: its
// message and its code.
func Handled(err *plan.Failure) plan.Values {
	handled := plan.Values{"message": err.Error()}
	if code, ok := err.Fields["code"].(string); ok {
		handled["code"] = code
	}
	return handled
}
