package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"obelus/store"
)

const everyMessage = `[
	{"type":"data","data":{"a":[1,null,{"b":"†x ☃ \u0000 \" \\"}]}},
	{"type":"data","kind":"user","data":null,"schema":{"type":"object"},"description":"Who it is about."},
	{"type":"data","kind":"user","schema":false},
	{"type":"state","currentUser":{"id":7},"_instance":"①"},
	{"type":"input","input":[],"schema":true},
	{"type":"tool","tool":{"f":{"properties":{}}}},
	{"type":"plan","plan":[{"_tool":"f"}],"mode":"lazy"},
	{"type":"plan","plan":[]},
	{"type":"system","message":"Be brief."},
	{"type":"text","text":""},
	{"type":"meta","meta":{"x":1}},
	{"type":"data","kind":"state","data":{"user":{"status":""}},"path":"†state.user.status","_instance":"②",
	 "_call":{"_tool":"f","_outputPath":"†state.user.status","n":1.50},"_date":"2026-01-02T03:04:05.678+01:00","_outputMethod":"push"},
	{"type":"data","kind":"error","data":{"message":"no"},"_call":{"_outputPath":"†error"}}
]`

func testRoundTrip(t *testing.T, l store.Log) {
	given := parse(t, everyMessage)
	given[11].Call = "12.34"
	a := add(t, l, "c", given...)
	var want []*store.Message
	for i := range given {
		m := given[i]
		m.Context, m.Seq, m.Date = "c", int64(i)+1, a.Date
		want = append(want, &m)
	}
	equal(t, "messages", collect(t, l.Messages(t.Context(), store.Filter{Context: "c"})), want)
}

func testNumbers(t *testing.T, l store.Log) {
	numbers := []string{"1.10", "1e3", "1E+3", "-0", "0.0", strings.Repeat("9", 40), "-" + strings.Repeat("8", 40) + ".50", "1e400"}
	text := "[" + strings.Join(numbers, ",") + "]"
	add(t, l, "c", parse(t, `{"type":"data","data":{"n":`+text+`},"schema":{"enum":`+text+`}}`)...)
	m := collect(t, l.Messages(t.Context(), store.Filter{Context: "c"}))[0]
	equal(t, "data", string(store.EncodeJSON(m.Data.Value)), `{"n":`+text+`}`)
	equal(t, "schema", string(store.EncodeJSON(m.Schema)), `{"enum":`+text+`}`)
	op := collect(t, l.Touching(t.Context(), store.Query{Context: "c", Path: store.KindPath("data")}))[0]
	equal(t, "operation", string(store.EncodeJSON(op.Value)), `{"n":`+text+`}`)
}

func testFilters(t *testing.T, l store.Log) {
	given := parse(t, everyMessage)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range given {
		given[i].Date = noon.Add(time.Duration(i) * time.Millisecond)
	}
	add(t, l, "c", given...)
	add(t, l, "other", given...)
	for _, test := range []struct {
		filter store.Filter
		want   []int64
	}{
		{store.Filter{After: 11}, []int64{12, 13}},
		{store.Filter{At: 2}, []int64{1, 2}},
		{store.Filter{After: 3, At: 5}, []int64{4, 5}},
		{store.Filter{After: 3, At: 5, Newest: true}, []int64{5, 4}},
		{store.Filter{After: 99}, []int64{}},
		{store.Filter{After: 5, At: 5}, []int64{}},
		{store.Filter{Type: store.TypeTool}, []int64{6}},
		{store.Filter{Type: store.TypePlan, Newest: true}, []int64{8, 7}},
		{store.Filter{Type: store.TypeData, At: 4}, []int64{1, 2, 3, 4}},
		{store.Filter{Kind: "user"}, []int64{2, 3}},
		{store.Filter{Kind: "user", Type: store.TypeText}, []int64{}},
		{store.Filter{Schema: true}, []int64{2, 3, 5}},
		{store.Filter{Schema: true, Kind: "user", Newest: true}, []int64{3, 2}},
		{store.Filter{Schema: true, Type: store.TypeTool}, []int64{}},
		{store.Filter{Since: noon.Add(11 * time.Millisecond)}, []int64{12, 13}},
		{store.Filter{Since: noon.Add(11*time.Millisecond + 1)}, []int64{13}},
		{store.Filter{Since: noon.Add(11 * time.Millisecond).In(time.FixedZone("x", 3600))}, []int64{12, 13}},
	} {
		test.filter.Context = "c"
		got := seqsOf(collect(t, l.Messages(t.Context(), test.filter)), messageSeq)
		equal(t, fmt.Sprintf("%+v", test.filter), got, test.want)
	}
}

func testPathFilter(t *testing.T, l store.Log) {
	path := store.MustParsePath
	instanced := written(path("†state.user.name"), "", "i")
	instanced.Instance = "①"
	add(t, l, "c",
		written(path("†state"), "", map[string]any{}),         // 1
		written(path("†state.user"), store.Push, "x"),         // 2
		written(path("†state.user.name"), "", "x"),            // 3
		written(path("†state.user.name.first"), "", "x"),      // 4
		written(path("†state.user2"), "", "x"),                // 5
		instanced,                                             // 6
		parse(t, `{"type":"state","user":{"name":"x"}}`)[0],   // 7
		parse(t, `{"type":"state","user":{"age":1}}`)[0],      // 8
		parse(t, `{"type":"state","user":1,"user2":2}`)[0],    // 9
		parse(t, `{"type":"data","data":{"user":1}}`)[0],      // 10
		parse(t, `{"type":"state","schema":{}}`)[0],           // 11
		parse(t, `{"type":"state","_instance":"①","x":1}`)[0], // 12
	)
	for _, test := range []struct {
		filter store.Filter
		want   []int64
	}{
		{store.Filter{Path: path("†state.user.name")}, []int64{1, 2, 3, 4, 6, 7, 9}},
		{store.Filter{Path: path("†state.user.name"), Newest: true, After: 2, At: 6}, []int64{6, 4, 3}},
		{store.Filter{Path: path("†state.user2")}, []int64{1, 5, 9}},
		{store.Filter{Path: path("†state")}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 12}},
		{store.Filter{Path: path("†state.x")}, []int64{1, 12}},
		{store.Filter{Path: path("†data")}, []int64{10}},
		{store.Filter{Path: path("†data"), Kind: "state"}, []int64{}},
		{store.Filter{Path: path("†none")}, []int64{}},
	} {
		test.filter.Context = "c"
		got := seqsOf(collect(t, l.Messages(t.Context(), test.filter)), messageSeq)
		equal(t, fmt.Sprintf("%+v", test.filter), got, test.want)
	}
}

func testSize(t *testing.T, l store.Log) {
	size := func() int64 {
		info, err := l.Info(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		return info.Bytes
	}
	add(t, l, "c")
	equal(t, "empty", size(), int64(0))
	add(t, l, "c", parse(t, `{"type":"data","kind":"user","data":{"name":"ß"},"schema":{},"description":"not JSON"}`)...)
	equal(t, "data and schema", size(), int64(len(`{"name":"ß"}{}`)))
	add(t, l, "c", written(store.MustParsePath("†a.b"), "", nil))
	equal(t, "and a call", size(), int64(len(`{"name":"ß"}{}`+`{"b":null}{"_tool":"t"}`)))
}

func testJournal(t *testing.T, l store.Log) {
	for i, b := range []store.Batch{
		{Context: "a", Journal: []store.Entry{{Event: "start", Call: "1.1"}, {Event: "start", Call: "1.2", Data: `{"n":1.50}`}}},
		{Context: "b", Messages: parse(t, `{"type":"data","data":1}`), Journal: []store.Entry{{Event: "run"}}},
		{Context: "a", Messages: parse(t, `[{"type":"data","data":1},{"type":"data","data":2}]`), Journal: []store.Entry{{Event: "done", Call: "1.1"}}},
		{Context: "a"},
	} {
		b.Create, b.ExpectSeq = &store.Origin{}, store.AnySeq
		a, err := l.Append(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "n", a.N, []int64{2, 4, 7, 7}[i])
	}
	entries := collect(t, l.Journal(t.Context(), store.JournalFilter{}))
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%d %s %d %s %s %s", e.N, e.Context, e.Seq, e.Call, e.Event, e.Data))
	}
	equal(t, "entries", got, []string{"1 a 0 1.1 start ", `2 a 0 1.2 start {"n":1.50}`, "4 b 1  run ", "7 a 2 1.1 done "})
	for _, test := range []struct {
		filter store.JournalFilter
		want   []int64
	}{
		{store.JournalFilter{Newest: true}, []int64{7, 4, 2, 1}},
		{store.JournalFilter{After: 2}, []int64{4, 7}},
		{store.JournalFilter{Context: "a"}, []int64{1, 2, 7}},
		{store.JournalFilter{Context: "a", At: 6, Newest: true}, []int64{2, 1}},
		{store.JournalFilter{After: 1, At: 4}, []int64{2, 4}},
		{store.JournalFilter{Context: "a", Newest: true, After: 1}, []int64{7, 2}},
		{store.JournalFilter{Event: "run"}, []int64{4}},
		{store.JournalFilter{Context: "b", Event: "run", Newest: true}, []int64{4}},
		{store.JournalFilter{Event: "start"}, []int64{}},
		{store.JournalFilter{Context: "a", Call: "1.1"}, []int64{1, 7}},
		{store.JournalFilter{Event: "done", Call: "1.1"}, []int64{7}},
		{store.JournalFilter{Context: "none"}, []int64{}},
	} {
		got := seqsOf(collect(t, l.Journal(t.Context(), test.filter)), entryN)
		equal(t, fmt.Sprintf("%+v", test.filter), got, test.want)
		test.filter.Bare = true
		for i, e := range collect(t, l.Journal(t.Context(), test.filter)) {
			equal(t, "a bare entry", []any{e.N, e.Data}, []any{test.want[i], ""})
		}
	}
}
