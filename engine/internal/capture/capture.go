// Package capture turns the result of an anonymous delegate's call into what its record keeps, for
// the parent's call to place, and back.
package capture

import (
	"errors"

	"obelus/engine/plan"
)

// Pack returns the result of an activity as the record of an anonymous delegate's call keeps it;
// nil where the activity broke down.
func Pack(result plan.Result, err error) plan.Values {
	captured, loose := plan.Values{}, result.Loose
	var failure *plan.Failure
	switch {
	case errors.As(err, &failure):
		captured["failure"], loose = failure.Fields, failure.Loose
	case err != nil:
		return nil
	case result.Message != nil:
		captured["message"] = result.Message
	default:
		captured["value"] = result.Value
		if result.To != "" {
			captured["to"] = result.To
		}
	}
	if loose {
		captured["loose"] = true
	}
	return captured
}

// Unpack is the way back from [Pack].
func Unpack(object plan.Values) (result plan.Result, err error) {
	loose, _ := object["loose"].(bool)
	if fields, ok := object["failure"].(map[string]any); ok {
		return result, &plan.Failure{Fields: fields, Loose: loose}
	}
	result = plan.Result{Value: object["value"], Loose: loose}
	result.To, _ = object["to"].(string)
	result.Message, _ = object["message"].(map[string]any)
	return result, nil
}
