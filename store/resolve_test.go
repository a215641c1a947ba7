package store_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
	"obelus/store/memory"
)

var logs = flag.Int("logs", 1000, "how many random logs the resolver is held to the naive fold on")

// naive is the fold of protocol §3 word by word: every message, oldest to
// newest, applied to a copy of the kind's whole value. It shares no code with
// the resolver.
type naive struct {
	value  any
	exists bool
}

func naiveFold(ops []store.Op, kind, instance string, at int64) naive {
	var n naive
	for _, i := range []string{"", instance} {
		for _, op := range ops {
			if op.Path.Kind() == kind && op.Instance == i && op.Seq <= at {
				n.value = naiveApply(n.value, op.Path.Segments(), op.Method, op.Value)
				n.exists = true
			}
		}
		if instance == "" {
			break
		}
	}
	return n
}

func naiveApply(current any, segments []string, method store.Method, value any) any {
	if len(segments) == 0 {
		return naiveJoin(current, method, value)
	}
	key := segments[0]
	if array, ok := current.([]any); ok {
		if i, err := strconv.Atoi(key); err == nil && strconv.Itoa(i) == key && i <= len(array) {
			copied := slices.Clone(array)
			if i == len(array) {
				copied = append(copied, nil)
			}
			copied[i] = naiveApply(copied[i], segments[1:], method, value)
			return copied
		}
	}
	object, _ := current.(map[string]any)
	copied := map[string]any{}
	for k, v := range object {
		copied[k] = v
	}
	copied[key] = naiveApply(copied[key], segments[1:], method, value)
	return copied
}

func naiveJoin(current any, method store.Method, value any) any {
	switch method {
	case store.Merge:
		a, ok := current.(map[string]any)
		b, ok2 := value.(map[string]any)
		if !ok || !ok2 {
			return value
		}
		out := map[string]any{}
		for k, v := range a {
			out[k] = v
		}
		for k, v := range b {
			if old, ok := out[k]; ok {
				v = naiveJoin(old, method, v)
			}
			out[k] = v
		}
		return out
	case store.Assign:
		a, ok := current.(map[string]any)
		b, ok2 := value.(map[string]any)
		if !ok || !ok2 {
			return value
		}
		out := map[string]any{}
		for _, m := range []map[string]any{a, b} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	case store.Push:
		a, _ := current.([]any)
		return append(slices.Clone(a), value)
	case store.Concat:
		if a, ok := current.([]any); ok {
			if b, ok := value.([]any); ok {
				return append(slices.Clone(a), b...)
			}
		}
		if a, ok := current.(string); ok {
			if b, ok := value.(string); ok {
				return a + b
			}
		}
	}
	return value
}

func naiveDig(n naive, segments []string) naive {
	for _, key := range segments {
		switch c := n.value.(type) {
		case map[string]any:
			n.value = c[key]
			if _, ok := c[key]; !ok {
				return naive{}
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || strconv.Itoa(i) != key || i >= len(c) {
				return naive{}
			}
			n.value = c[i]
		default:
			return naive{}
		}
	}
	return n
}

// slice is a log that knows nothing but the interface's words.
type slice []store.Op

func (s slice) Touching(_ context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return func(yield func(store.Op, error) bool) {
		for _, op := range slices.Backward(s) {
			touches := slices.ContainsFunc(op.Touches(), q.Path.Overlaps)
			if touches && op.Instance == q.Instance && (q.At == 0 || op.Seq <= q.At) && !yield(op, nil) {
				return
			}
		}
	}
}

var keys = []string{"a", "b", "0", "1", "x y"}

func randomPath(r *rand.Rand, depth int) store.Path {
	p := store.KindPath("k")
	for range r.IntN(depth + 1) {
		p = p.Child(keys[r.IntN(len(keys))])
	}
	return p
}

func randomValue(r *rand.Rand, depth int) any {
	n := r.IntN(10)
	switch {
	case n < 4 && depth > 0:
		object := map[string]any{}
		for range r.IntN(3) {
			object[keys[r.IntN(len(keys))]] = randomValue(r, depth-1)
		}
		return object
	case n < 6 && depth > 0:
		array := []any{}
		for range r.IntN(3) {
			array = append(array, randomValue(r, depth-1))
		}
		return array
	case n == 6:
		return nil
	case n == 7:
		return "s" + strconv.Itoa(r.IntN(3))
	}
	return json.Number(strconv.Itoa(r.IntN(5)))
}

func randomLog(r *rand.Rand) []store.Op {
	ops := make([]store.Op, 1+r.IntN(12))
	for i := range ops {
		op := store.Op{Seq: int64(i + 1), Path: store.KindPath("k"), Method: store.Merge, Value: randomValue(r, 3)}
		if r.IntN(3) > 0 {
			op.Path, op.Method = randomPath(r, 3), store.Methods[r.IntN(len(store.Methods))]
		}
		op.Instance = []string{"", "", "①"}[r.IntN(3)]
		ops[i] = op
	}
	return ops
}

// TestResolve_IsTheFold holds the resolver to the naive fold, at random paths,
// instances and seqs of random logs, misfits among them, and so holds its
// three laws too: composition and early stop (the naive fold composes and
// never stops), and as-of.
//
//	go test ./store -run TestResolve_IsTheFold -logs 100000
func TestResolve_IsTheFold(t *testing.T) {
	for seed := range *logs {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		ops := randomLog(r)
		for range 12 {
			path, instance, at := randomPath(r, 4), []string{"", "①", "②"}[r.IntN(3)], int64(1+r.IntN(len(ops)))
			want := naiveDig(naiveFold(ops, "k", instance, at), path.Segments())
			got, err := store.Resolver{Log: slice(ops), At: at}.Resolve(context.Background(), path, instance)
			if err != nil {
				t.Fatal(err)
			}
			if got.Exists != want.exists || !cmp.Equal(got.Value, want.value) {
				for _, op := range ops {
					t.Logf("%d %q %s %s %s", op.Seq, op.Instance, op.Path, op.Method, store.EncodeJSON(op.Value))
				}
				t.Fatalf("seed %d: %s for %q at %d: got %v %s, want %v %s", seed, path, instance, at,
					got.Exists, store.EncodeJSON(got.Value), want.exists, store.EncodeJSON(want.value))
			}
		}
	}
}

// TestCheckOp_WritesFit holds that a log of which every write was checked has
// no misfits to read, and that what is refused would have been one.
func TestCheckOp_WritesFit(t *testing.T) {
	ctx := context.Background()
	for seed := range *logs {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		var ops []store.Op
		for range 12 {
			op := store.Op{Seq: int64(len(ops) + 1), Path: randomPath(r, 3), Method: store.Methods[r.IntN(len(store.Methods))], Value: randomValue(r, 2)}
			err := store.Resolver{Log: slice(ops)}.CheckOp(ctx, op)
			whole, _ := store.Resolver{Log: slice(append(slices.Clone(ops), op))}.Resolve(ctx, store.KindPath("k"), "")
			if fits := len(whole.Misfits) == 0; fits != (err == nil) {
				for _, op := range ops {
					t.Logf("%d %s %s %s", op.Seq, op.Path, op.Method, store.EncodeJSON(op.Value))
				}
				t.Fatalf("seed %d: %s %s %s: fits %v, check says %v", seed, op.Path, op.Method, store.EncodeJSON(op.Value), fits, err)
			}
			if err == nil {
				ops = append(ops, op)
			}
		}
	}
}

func op(seq int64, path string, method store.Method, value string) store.Op {
	v, err := store.DecodeJSON([]byte(value))
	if err != nil {
		panic(err)
	}
	return store.Op{Seq: seq, Path: store.MustParsePath(path), Method: method, Value: v}
}

func TestProvenance(t *testing.T) {
	log := slice{
		op(1, "†s", store.Merge, `{"a":{"x":1},"l":[0],"n":[1,2]}`),
		op(2, "†s.a.x", store.Set, `2`),
		op(3, "†s.l", store.Push, `1`),
		op(4, "†s.a.x", store.Set, `3`),
		op(5, "†s.l", store.Push, `2`),
		op(6, "†s.n.0", store.Set, `9`),
	}
	for path, want := range map[string][]int64{
		"†s.a.x": {4},
		"†s.a":   {4, 1},
		"†s.l":   {5, 3, 1},
		"†s.n.0": {6},
		"†s.n.1": {1},
		"†s.zz":  {},
	} {
		got, err := store.Resolver{Log: log}.Resolve(context.Background(), store.MustParsePath(path), "")
		if err != nil || !slices.Equal(got.From, want) {
			t.Errorf("%s: from %v, want %v (%v)", path, got.From, want, err)
		}
	}
}

func TestResolve_MarksMisfits(t *testing.T) {
	log := slice{op(1, "†s.l", store.Set, `"text"`), op(2, "†s.l", store.Push, `1`)}
	got, err := store.Resolver{Log: log}.Resolve(context.Background(), store.MustParsePath("†s.l"), "")
	if err != nil || fmt.Sprint(got.Misfits) != "[2]" || string(store.EncodeJSON(got.Value)) != "[1]" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFitErrors(t *testing.T) {
	log := slice{op(1, "†s", store.Merge, `{"text":"x","list":[1],"n":5}`)}
	for _, c := range []struct {
		op   store.Op
		want string
	}{
		{op(2, "†s.text", store.Push, `1`), "can't push a number at †s.text, which is a string: push needs an array"},
		{op(2, "†s.list", store.Assign, `{}`), "can't assign an object at †s.list, which is an array: assign needs two objects"},
		{op(2, "†s.none", store.Assign, `1`), "can't assign a number at †s.none, which is a missing value: assign needs two objects"},
		{op(2, "†s.list", store.Concat, `"x"`), "can't concat a string at †s.list, which is an array: concat needs two arrays or two strings"},
		{op(2, "†s.list.key", store.Set, `1`), "can't set a number at †s.list.key: †s.list is an array, and below an array only an index from 0 to its length fits"},
		{op(2, "†s.list.2", store.Set, `1`), "can't set a number at †s.list.2: †s.list is an array, and below an array only an index from 0 to its length fits"},
		{op(2, "†s.list.1", store.Set, `1`), ""},
		{op(2, "†s.n.deep", store.Set, `1`), ""},
		{op(2, "†s.n", store.Merge, `{}`), ""},
	} {
		err := store.Resolver{Log: log}.CheckOp(context.Background(), c.op)
		if got := fmt.Sprint(err); got != c.want && !(err == nil && c.want == "") {
			t.Errorf("%s %s: %v, want %q", c.op.Path, c.op.Method, err, c.want)
		}
	}
}

// TestListReplaced: an object of indexes that a message merges over an array replaces it, at any
// depth and as its instance sees it; any other object, or one where no array is, is meant.
func TestListReplaced(t *testing.T) {
	log := memory.New()
	messages := []store.Message{
		{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"items": []any{"a"}, "deep": map[string]any{"list": []any{}}, "years": map[string]any{"2025": 1}})},
		{Type: store.TypeData, Kind: "input", Instance: "de", Data: store.Some(map[string]any{"items": map[string]any{}})},
	}
	if _, err := log.Append(t.Context(), store.Batch{Context: "c", Create: &store.Origin{}, Messages: messages}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ instance, value, want string }{
		{"", `{"items": {"1": "b"}}`, "†input.items"},
		{"", `{"items": {"0": {"name": "b"}, "1": 2}}`, "†input.items"},
		{"", `{"a": 1, "deep": {"list": {"0": 1}}}`, "†input.deep.list"},
		{"", `{"items": ["a", "b"], "years": {"2026": 2}, "none": {"0": 1}}`, ""},
		{"", `{"items": {"0": 1, "name": 2}}`, ""},
		{"", `{"items": {}}`, ""},
		{"", `[1]`, ""},
		{"de", `{"items": {"1": "b"}}`, ""},
	} {
		value, err := store.DecodeJSON([]byte(tt.value))
		if err != nil {
			t.Fatal(err)
		}
		list, err := store.Resolver{Log: log, Context: "c"}.ListReplaced(t.Context(), store.KindPath("input"), tt.instance, value)
		if err != nil || list.String() != tt.want {
			t.Errorf("%s in instance %q: %s, %v, want %s", tt.value, tt.instance, list, err, tt.want)
		}
	}
}
