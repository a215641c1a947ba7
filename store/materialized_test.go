package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"obelus/store"
	"obelus/store/memory"
)

// TestView_MaterializedValues: what a view keeps of values is what they are, whatever comes, and
// changes no message.
func TestView_MaterializedValues(t *testing.T) {
	values := []any{1, nil, "x", map[string]any{}, map[string]any{"b": map[string]any{"c": 2}}, map[string]any{"b": map[string]any{"d": []any{1}}, "l": 1}, []any{}, []any{3, map[string]any{"e": 4}}}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		view, err := store.OpenView(ctx, memory.New(), "c")
		if err != nil {
			t.Fatal(err)
		}
		var told []string // of the messages, as they came
		stage := func(text string, method store.Method, value any, instance string) {
			path := store.MustParsePath(text)
			value, err := store.FromGo(value, "")
			if err != nil {
				t.Fatal(err)
			}
			m := store.Message{Type: store.TypeData, Kind: path.Kind(), Instance: instance, Path: path, Method: method, Data: store.Some(store.Wrap(path, value)), Producer: true}
			told = append(told, string(store.EncodeJSON(m.Data.Value)))
			view.Stage(m)
		}
		for i := range 40 {
			stage(fmt.Sprintf("†s.a.k%d", i), store.Set, map[string]any{"n": i}, "")
			stage("†s.l", store.Push, map[string]any{"n": i}, "")
			stage("†s.text", store.Concat, "x", "")
		}
		asked := []string{"†s", "†s.a", "†s.l", "†s.text", "†s.a.k3", "†s.l[3]", "†none"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"stage", "stage", "stage", "stage", "unstage", "hide", "ask"}).Draw(t, "step") {
			case "stage":
				stage(
					rapid.SampledFrom([]string{"†s", "†s.a", "†s.a.k3", "†s.a.k3.n", "†s.a.k3.b", "†s.a.new", "†s.l", "†s.l[3]", "†s.l[3].n", "†s.l[200]", "†s.l.key", "†s.text"}).Draw(t, "path"),
					rapid.SampledFrom([]store.Method{store.Set, store.Merge, store.Assign, store.Push, store.Concat}).Draw(t, "method"),
					rapid.SampledFrom(values).Draw(t, "value"),
					rapid.SampledFrom([]string{"", "", "", "i"}).Draw(t, "instance"))
			case "unstage":
				seq := max(100, view.Seq()-rapid.Int64Range(1, 3).Draw(t, "back"))
				view.Unstage(seq)
				told = told[:view.Seq()]
			case "hide":
				view.Hide(rapid.Int64Range(1, view.Seq()).Draw(t, "hidden"))
			case "ask":
				for _, text := range asked {
					for _, instance := range []string{"", "i"} {
						path := store.MustParsePath(text)
						got, err := view.Resolver().Value(ctx, path, instance)
						want, wantErr := view.Resolver().Resolve(ctx, path, instance)
						if diff := cmp.Diff(want.Value, got); diff != "" || err != nil || wantErr != nil {
							t.Fatalf("%s of %q: %v, %v\n%s", text, instance, err, wantErr, diff)
						}
					}
				}
				other := view.Resolver()
				other.Log = struct{ store.OpReader }{view} // which keeps nothing
				op := store.Op{
					Path:   store.MustParsePath(rapid.SampledFrom([]string{"†s.l[3]", "†s.l[3].n", "†s.l[40]", "†s.l[99]", "†s.l.key", "†s.a.k3.n", "†s.text"}).Draw(t, "path")),
					Method: rapid.SampledFrom([]store.Method{store.Set, store.Merge, store.Assign, store.Push, store.Concat}).Draw(t, "method"),
					Value:  rapid.SampledFrom(values).Draw(t, "value"),
				}
				if got, want := view.Resolver().CheckOp(ctx, op), other.CheckOp(ctx, op); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s at %s: %v, not %v", op.Method, op.Path, got, want)
				}
				for i, m := range view.Staged() {
					if text := string(store.EncodeJSON(m.Data.Value)); text != told[i] {
						t.Fatalf("message %d is %s, and was %s", i+1, text, told[i])
					}
				}
			}
		}
	})
}
