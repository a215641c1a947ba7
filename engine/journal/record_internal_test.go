package journal

import (
	"reflect"
	"testing"

	"obelus/engine/plan"
	"obelus/store"
)

// TestRecord_EncodedByTags holds the encoding that is written by hand to
// what the struct's tags say, with each field by itself and with all of them.
func TestRecord_EncodedByTags(t *testing.T) {
	full := Record{Hold: &Hold{Since: "now", Arguments: plan.Values{"a": nil}, Scopes: []string{"state"}}}
	fields := reflect.ValueOf(&full).Elem()
	records := []Record{{}}
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Interface().(type) {
		case string, Status:
			f.SetString("†\"" + fields.Type().Field(i).Name)
		case int, int64:
			f.SetInt(int64(i) + 1)
		case float64:
			f.SetFloat(1.5)
		case bool:
			f.SetBool(true)
		case []string:
			f.Set(reflect.ValueOf([]string{"†b", "<a>"}))
		case map[string]int64:
			f.Set(reflect.ValueOf(map[string]int64{"†b": 2, "†a": 1}))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"b": "<1>", "a": "2, corrected by ada"}))
		case plan.Values:
			f.Set(reflect.ValueOf(plan.Values{"message": "no", "at": map[string]any{"b": 1.5, "a": []any{true}}}))
		case *plan.Usage:
			cost := 0.25
			f.Set(reflect.ValueOf(&plan.Usage{Model: "fast", Requests: 2, Input: 10, Output: 3, Cost: &cost}))
		case *Condition:
			f.Set(reflect.ValueOf(&Condition{Holds: true, Reads: map[string]int64{"†b": 2}}))
		case *Answered:
			f.Set(reflect.ValueOf(&Answered{How: WithPlan, Tick: 2, Hash: "a1"}))
		case *SetAside:
			f.Set(reflect.ValueOf(&SetAside{Value: []byte(`"fine"`), Missing: []string{"†a"}, Never: "no"}))
		case *Hold:
		default:
			t.Fatalf("there is no value for the field %s here", fields.Type().Field(i).Name)
		}
		var one Record
		reflect.ValueOf(&one).Elem().Field(i).Set(fields.Field(i))
		records = append(records, one)
	}
	for _, r := range append(records, full) {
		if got, want := r.JSON(), string(store.EncodeJSON(r)); got != want {
			t.Errorf("a record is written\n%s, not\n%s", got, want)
		}
	}
}
