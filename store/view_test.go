package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"obelus/store"
	"obelus/store/memory"
)

// TestView_IsTheLog: whatever is staged, committed, dropped and taken in from
// others, a view answers as the log would if it held the same; and if what is hidden were
// something else.
func TestView_IsTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		log := memory.New()
		add := func(name string, messages ...store.Message) {
			if _, err := log.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: messages}); err != nil {
				t.Fatal(err)
			}
		}
		paths := rapid.SampledFrom([]string{"†s", "†s.a", "†s.a.b", "†s.l", "†s.l.0", `†s["x y"]`, "†t"})
		message := rapid.Custom(func(t *rapid.T) store.Message {
			path := store.MustParsePath(paths.Draw(t, "path"))
			value := rapid.SampledFrom([]any{1, "x", map[string]any{"b": 2}, []any{3}}).Draw(t, "value")
			return store.Message{
				Type: store.TypeData, Kind: path.Kind(), Instance: rapid.SampledFrom([]string{"", "i"}).Draw(t, "instance"),
				Path: path, Method: rapid.SampledFrom([]store.Method{store.Set, store.Merge, store.Push}).Draw(t, "method"),
				Data: store.Wrap(path, value), HasData: true, Producer: true,
			}
		})
		if rapid.Bool().Draw(t, "there is something") {
			add("c", rapid.SliceOfN(message, 1, 4).Draw(t, "before")...)
		}
		view, err := store.OpenView(ctx, log, "c")
		if err != nil {
			t.Fatal(err)
		}
		var sent []store.Message
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"stage", "send", "commit", "drop", "others", "hide"}).Draw(t, "step") {
			case "stage":
				view.Stage(message.Draw(t, "message"))
			case "send":
				if len(sent) > 0 {
					continue
				}
				messages, expect := view.Send()
				if sent = slices.Clone(messages); expect != view.Committed() {
					t.Fatalf("what is sent first is to expect %d, not %d", expect, view.Committed())
				}
			case "commit":
				if len(sent) > 0 {
					add("c", sent...)
					view.Commit()
					sent = nil
				}
			case "drop":
				view.Drop()
				sent = nil
			case "hide":
				if view.Seq() > 0 {
					view.Hide(rapid.Int64Range(1, view.Seq()).Draw(t, "hidden"))
				}
			case "others":
				view.Drop()
				sent = nil
				add("c", message.Draw(t, "their message"))
				if _, err := view.Refresh(ctx); err != nil {
					t.Fatal(err)
				}
			}
			holdView(ctx, t, log, view, sent)
		}
	})
}

// holdView compares a view, of which messages have been sent, with a log that holds what
// it holds.
func holdView(ctx context.Context, t *rapid.T, log store.Log, view *store.View, sent []store.Message) {
	same := memory.New()
	var all []store.Message
	for m, err := range log.Messages(ctx, store.Filter{Context: "c", At: view.Committed()}) {
		if err != nil {
			t.Fatal(err)
		}
		if view.Committed() > 0 {
			all = append(all, *m)
		}
	}
	all = append(append(all, sent...), view.Staged()...)
	for i := range all {
		if view.Hides(int64(i) + 1) {
			all[i] = store.Message{Type: store.TypeText, Data: "hidden", HasData: true}
		}
	}
	if _, err := same.Append(ctx, store.Batch{Context: "c", Create: &store.Origin{}, Messages: all}); err != nil {
		t.Fatal(err)
	}
	if view.Seq() != int64(len(all)) {
		t.Fatalf("it is at %d, not at %d", view.Seq(), len(all))
	}
	kinds, err := view.Kinds(ctx)
	wanted, _ := same.Kinds(ctx, "c")
	if fmt.Sprint(kinds, err) != fmt.Sprint(wanted, nil) {
		t.Fatalf("the kinds are %v, %v, not %v", kinds, err, wanted)
	}
	for _, text := range []string{"†s", "†s.a", "†s.a.b", "†s.l", "†s.l.0", `†s["x y"]`, "†t", "†none"} {
		for _, instance := range []string{"", "i"} {
			for at := range view.Seq() + 1 {
				path := store.MustParsePath(text)
				ours := view.Resolver()
				ours.At = at
				got, err := ours.Resolve(ctx, path, instance)
				want, wantErr := store.Resolver{Log: same, Context: "c", At: at}.Resolve(ctx, path, instance)
				if fmt.Sprint(got, err) != fmt.Sprint(want, wantErr) {
					t.Fatalf("%s of %q at %d is %+v, %v, not %+v, %v", text, instance, at, got, err, want, wantErr)
				}
			}
		}
	}
}
