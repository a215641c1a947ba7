package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// chain is n calls each of which reads what the one before writes.
func chain(n int) string {
	calls := []string{`{"_tool": "value", "value": 0, "_outputPath": "†state.c0"}`}
	for i := 1; i < n; i++ {
		calls = append(calls, fmt.Sprintf(`{"_tool": "value", "value": "†state.c%d", "_outputPath": "†state.c%d"}`, i-1, i))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// layers is n calls in layers of ten, each of which reads two of the layer
// before.
func layers(n int) string {
	var calls []string
	for i := range n {
		value := `"x"`
		if i >= 10 {
			value = fmt.Sprintf(`"†state.l%d.c%d && †state.l%d.c%d"`, i/10-1, i%10, i/10-1, (i+1)%10)
		}
		if i%10 == 0 && i > 0 {
			value = fmt.Sprintf(`"†(len(†state.l%d))"`, i/10-1)
		}
		calls = append(calls, fmt.Sprintf(`{"_tool": "value", "value": %s, "_outputPath": "†state.l%d.c%d"}`, value, i/10, i%10))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// pushes is n calls that push to one list.
func pushes(n int) string {
	return repeated(n, `{"_tool": "value", "value": #, "_outputPath": "†state.all", "_outputMethod": "push"}`)
}

func BenchmarkCompile(b *testing.B) {
	registry := newRunner(nil, map[string]activity{"value": value}).Registry
	for name, text := range map[string]string{"chain-1000": chain(1000), "layers-1000": layers(1000)} {
		b.Run(name, func(b *testing.B) {
			request := readPlan(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := plan.Compile(request, registry, plan.NothingExists); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRun runs whole plans in memory, from the request to its outcome.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct{ name, context, text string }{
		{"one-call", "[]", `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`},
		{"chain-1000", "[]", chain(1000)},
		{"layers-1000", "[]", layers(1000)},
		{"concat-1000", "[]", repeated(1000, `{"_tool": "value", "value": [#], "_outputPath": "†state.all", "_outputMethod": "concat"}`)},
		{"schema-1000", `[{"type": "data", "kind": "state", "schema": {"properties": {"c1": {"type": "number"}, "c2": {"minimum": 0}}}}]`, chain(1000)},
		{"elements-1000", `[{"type": "data", "kind": "state", "data": {"items": [` + strings.Repeat("0, ", 1000) + `0]}}]`, repeated(1000, `{"_tool": "value", "value": {}, "_outputPath": "†state.items[#]"}`)},
		{"whole-1000", `[{"type": "data", "kind": "state", "schema": {"maxProperties": 5000, "anyOf": [{"type": "object"}]}}]`, chain(1000)},
		{"whole-4000", `[{"type": "data", "kind": "state", "schema": {"maxProperties": 5000, "anyOf": [{"type": "object"}]}}]`, chain(4000)},
		{"list-1000", `[{"type": "data", "kind": "state", "schema": {"properties": {"all": {"maxItems": 5000, "items": {"type": "number"}}}}}]`, pushes(1000)},
		{"instance-4000", `[{"type": "data", "kind": "state", "schema": {"properties": {"all": {"maxItems": 5000, "items": {"type": "number"}}}}}]`, strings.ReplaceAll(pushes(4000), `"_tool"`, `"_instance": "i", "_tool"`)},
		{"list-4000", `[{"type": "data", "kind": "state", "schema": {"properties": {"all": {"maxItems": 5000, "items": {"type": "number"}}}}}]`, pushes(4000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := start(b, c.text)
			s.Request.Context = messages(b, c.context)
			b.ReportAllocs()
			for b.Loop() {
				outcome, err := newRunner(memory.New(), map[string]activity{"value": value}).Run(b.Context(), s)
				if err != nil || outcome.Status != journal.RunDone {
					b.Fatal(outcome, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(s.Request.Calls)), "µs/call")
		})
	}
}

// BenchmarkAppend appends as many messages as an export may have: by each method, each of a
// kind of its own, and each behind a schema.
func BenchmarkAppend(b *testing.B) {
	shapes := map[string][]store.Message{}
	for i := range 4000 {
		text, method, value := fmt.Sprintf("†state.k%d", i), store.Set, any(i)
		switch i % 4 {
		case 0:
			text, method, value = "†state.list", store.Concat, []any{i}
		case 1:
			text, method, value = "†state.object", store.Assign, map[string]any{text: i}
		case 2:
			text, method = "†state.items", store.Push
		}
		path := store.MustParsePath(text)
		shapes["methods"] = append(shapes["methods"], store.Message{Type: store.TypeData, Kind: "state", Path: path, Method: method,
			Data: store.Some(store.Wrap(path, value)), Producer: map[string]any{"_tool": "value"}})
		key := fmt.Sprint("k", i)
		shapes["kinds"] = append(shapes["kinds"], store.Message{Type: store.TypeData, Kind: key, Data: store.Some(i)})
		shapes["schemas"] = append(shapes["schemas"],
			store.Message{Type: store.TypeData, Kind: "state", Schema: map[string]any{"type": "object"}},
			store.Message{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{key: i})})
	}
	for name, batch := range shapes {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engine.Append(b.Context(), memory.New(), "c", batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
