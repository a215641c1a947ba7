package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"obelus/store"
)

func touching(t *testing.T, l store.Log, q store.Query) []store.Op {
	t.Helper()
	q.Context = "c"
	return collect(t, l.Touching(t.Context(), q))
}

func testTouchingOrder(t *testing.T, l store.Log) {
	path := store.MustParsePath
	instanced := func(m store.Message) store.Message { m.Instance = "①"; return m }
	add(t, l, "c",
		written(path("†s"), "", map[string]any{"a": "whole"}),        // 1
		written(path("†s.a"), store.Push, "one"),                     // 2
		instanced(written(path("†s.a.b"), "", "mine")),               // 3
		written(path("†s.a.b"), "", nil),                             // 4
		written(path("†s.a.b.c"), store.Assign, map[string]any{}),    // 5
		written(path("†s.x"), "", "x"),                               // 6
		instanced(written(path("†s.a"), store.Concat, "more")),       // 7
		written(path("†s.a"), store.Merge, map[string]any{"b": "m"}), // 8
		written(path("†t.a"), "", "t"),                               // 9
	)
	for _, test := range []struct {
		query store.Query
		want  []int64
	}{
		{store.Query{Path: path("†s.a.b")}, []int64{8, 5, 4, 2, 1}},
		{store.Query{Path: path("†s.a")}, []int64{8, 5, 4, 2, 1}},
		{store.Query{Path: path("†s")}, []int64{8, 6, 5, 4, 2, 1}},
		{store.Query{Path: path("†s.a.b"), Instance: "①"}, []int64{7, 3}},
		{store.Query{Path: path("†s.a.b"), Instance: "②"}, []int64{}},
		{store.Query{Path: path("†s.a.b"), At: 5}, []int64{5, 4, 2, 1}},
		{store.Query{Path: path("†s.a.b"), At: 99}, []int64{8, 5, 4, 2, 1}},
		{store.Query{Path: path("†s.a"), Instance: "①", At: 6}, []int64{3}},
		{store.Query{Path: path("†s"), At: 1}, []int64{1}},
		{store.Query{Path: path("†t.a"), At: 8}, []int64{}},
		{store.Query{Path: path("†s.none.below")}, []int64{1}},
	} {
		equal(t, fmt.Sprintf("%+v", test.query), seqsOf(touching(t, l, test.query), opSeq), test.want)
	}
	equal(t, "operations", touching(t, l, store.Query{Path: path("†s.a.b"), Instance: "①"}), []store.Op{
		{Seq: 7, Instance: "①", Path: path("†s.a"), Method: store.Concat, Value: "more"},
		{Seq: 3, Instance: "①", Path: path("†s.a.b"), Method: store.Set, Value: "mine"},
	})
	equal(t, "null", touching(t, l, store.Query{Path: path("†s.a.b"), At: 4})[0],
		store.Op{Seq: 4, Path: path("†s.a.b"), Method: store.Set})
}

// testTouchingSiblings: paths that begin alike are not one below the other.
func testTouchingSiblings(t *testing.T, l store.Log) {
	keys := []string{"a", "ab", "a-b", "a.b", "a[", "a/", "a!", "a\x01", "aé", "a\U0010ffff", "A", "", "a_", "a0"}
	root := store.KindPath("s")
	for _, key := range keys {
		add(t, l, "c", written(root.Child(key), "", key))
	}
	add(t, l, "c", written(store.KindPath("sa"), "", "other"), written(store.KindPath("s2").Child("a"), "", "other"))
	for i, key := range keys {
		equal(t, key, seqsOf(touching(t, l, store.Query{Path: root.Child(key)}), opSeq), []int64{int64(i) + 1})
	}
	equal(t, "root", len(touching(t, l, store.Query{Path: root})), len(keys))
}

func testTouchingMerge(t *testing.T, l store.Log) {
	path := store.MustParsePath
	add(t, l, "c", parse(t, `[
		{"type":"state","user":{"name":"x","tags":["a"],"none":{}},"n":1},
		{"type":"data","kind":"state","schema":{"type":"object"}},
		{"type":"data","kind":"state","data":7},
		{"type":"data","kind":"error","data":{"message":"one"}},
		{"type":"data","kind":"error","data":{"message":"two"}}
	]`)...)
	wide := map[string]any{}
	for i := range 1000 {
		wide[fmt.Sprint("k", i)] = "x"
	}
	add(t, l, "c", store.Message{Type: store.TypeData, Kind: "wide", Data: wide, HasData: true})
	deep := store.Wrap(path("†deep.a.b"), wide)
	add(t, l, "c", store.Message{Type: store.TypeData, Kind: "deep", Data: deep, HasData: true})
	for _, test := range []struct {
		path string
		want []int64
	}{
		{"†state", []int64{3, 1}},
		{"†state.user", []int64{3, 1}},
		{"†state.user.name", []int64{3, 1}},
		{"†state.user.name.first", []int64{3, 1}},
		{"†state.user.tags.0", []int64{3, 1}},
		{"†state.user.none.x", []int64{3, 1}},
		{"†state.user.other", []int64{3}},
		{"†error", []int64{5, 4}},
		{"†error.message", []int64{5, 4}},
		{"†wide", []int64{6}},
		{"†wide.k7", []int64{6}},
		{"†wide.absent", []int64{6}},
		{"†deep", []int64{7}}, // has its leaves in common below a
		{"†deep.a", []int64{7}},
		{"†deep.a.b.k7", []int64{7}},
		{"†deep.a.c", []int64{}},
		{"†deep.c", []int64{}},
	} {
		equal(t, test.path, seqsOf(touching(t, l, store.Query{Path: path(test.path)}), opSeq), test.want)
	}
	op := touching(t, l, store.Query{Path: path("†error")})[0]
	equal(t, "an error", op, store.Op{Seq: 5, Path: path("†error"), Method: store.Set, Value: map[string]any{"message": "two"}})
}

var oddKeys = []string{".", "[", "]", "/", `\`, `"`, `"]`, `["`, `a"].b`, `\"`, `\\`, "'", "†", "first-name", "☃", "ключ", "é", "e\u0301",
	"\u2028", "\x00", "\x7f", "<&>", " ", "", "0", "00", "-1", "$", "a.b[0]", "😀"}

func testTouchingOddKeys(t *testing.T, l store.Log) {
	root := store.KindPath("s")
	var messages []store.Message
	for _, key := range oddKeys {
		messages = append(messages, written(root.Child(key).Child("x").Child(key), "", key))
	}
	whole := map[string]any{}
	for _, key := range oddKeys {
		whole[key] = map[string]any{"x": "merged"}
	}
	messages = append(messages, store.Message{Type: store.TypeData, Kind: "s", Data: whole, HasData: true})
	last := add(t, l, "c", messages...).Seq
	for i, key := range oddKeys {
		want := []int64{last, int64(i) + 1}
		child := root.Child(key)
		for _, p := range []store.Path{child, child.Child("x"), child.Child("x").Child(key), child.Child("x").Child(key).Child(key)} {
			ops := touching(t, l, store.Query{Path: p})
			equal(t, p.String(), seqsOf(ops, opSeq), want)
			equal(t, p.String(), ops[1].Value, any(key))
		}
		equal(t, key, seqsOf(touching(t, l, store.Query{Path: child.Child("y")}), opSeq), []int64{})
	}
}

// testTouchingRandom checks a long random log against the definition: the operations that touch a
// path which overlaps the given one.
func testTouchingRandom(t *testing.T, l store.Log) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			name := fmt.Sprint("c", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			var messages []store.Message
			for range 3000 {
				messages = append(messages, randomMessage(r, seed))
			}
			add(t, l, name, messages...)
			var ops []store.Op
			for _, m := range collect(t, l.Messages(t.Context(), store.Filter{Context: name, Newest: true})) {
				if op, ok := m.Op(); ok {
					ops = append(ops, op)
				}
			}
			for range 300 {
				q := store.Query{Context: name, Path: randomPath(r, seed), Instance: randomInstance(r)}
				if r.IntN(2) == 0 {
					q.At = r.Int64N(int64(len(messages))) + 1
				}
				compareTouching(t, l, q, ops, r)
			}
		})
	}
}

func compareTouching(t *testing.T, l store.Log, q store.Query, newestFirst []store.Op, r *rand.Rand) {
	t.Helper()
	var want, got []store.Op
	for _, op := range newestFirst {
		overlaps := slices.ContainsFunc(op.Touches(), q.Path.Overlaps)
		if op.Instance == q.Instance && (q.At == 0 || op.Seq <= q.At) && overlaps {
			want = append(want, op)
		}
	}
	if r.IntN(3) == 0 && len(want) > 0 {
		want = want[:1+r.IntN(len(want))]
		for op, err := range l.Touching(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, op); len(got) == len(want) {
				break
			}
		}
	} else {
		got = collect(t, l.Touching(t.Context(), q))
	}
	equal(t, fmt.Sprintf("%+v", q), got, want)
}

// randomPath is of a narrow tree for odd seeds and of a wide one, with whole
// kinds written now and then, for even ones.
func randomPath(r *rand.Rand, seed uint64) store.Path {
	p := store.KindPath([]string{"s", "t"}[r.IntN(2)])
	for range r.IntN(4) {
		if seed%2 == 0 {
			p = p.Child(fmt.Sprint("k", r.IntN(40)))
		} else {
			p = p.Child([]string{"a", "ab", "a-b", ".", "0"}[r.IntN(5)])
		}
	}
	return p
}

func randomInstance(r *rand.Rand) string { return []string{"", "", "①", "②"}[r.IntN(4)] }

func randomMessage(r *rand.Rand, seed uint64) store.Message {
	m := written(randomPath(r, seed), store.Methods[r.IntN(len(store.Methods))], map[string]any{"v": fmt.Sprint(r.IntN(9))})
	switch r.IntN(6) {
	case 0:
		m.Producer, m.Path, m.Method, m.Call, m.Written = nil, store.Path{}, "", "", ""
	case 1:
		return store.Message{Type: store.TypeText, Data: "x", HasData: true}
	}
	m.Instance = randomInstance(r)
	return m
}
