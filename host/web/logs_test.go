package web

import (
	"fmt"
	"slices"
	"testing"

	"obelus/store"
)

// printing is a project whose call 1.1 prints and logs, and whose call 1.2 prints a line.
var printing = map[string]string{
	"obelus.lua": "return {}",
	"activities/a.lua": `
		local log = require("log")
		Activity.register("a", function(call)
			for i = 1, call.n do print("line " .. i) end
			if call.n > 1 then log.warn("late", { id = 7 }) log.debug("fine") end
			return 1
		end)`,
	"plans/p.lua": `return { { _tool = "a", n = 3, _outputPath = "†state.a" }, { _tool = "a", n = 1, _after = "†state.a", _outputPath = "†state.b" } }`,
}

// TestLogs holds that pages of lines join to all lines of a context, and how they are filtered.
func TestLogs(t *testing.T) {
	s := serve(t, printing, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/p.lua","context":"a","wait":true}`)
	texts := func(query string) (texts []string) {
		t.Helper()
		var page struct {
			Lines []logLine
			Next  int64
		}
		s.answer("/v1/contexts/a/logs?"+query, &page)
		for _, l := range page.Lines {
			texts = append(texts, fmt.Sprintf("%s#%d %s %d %s %t: %s %s", l.Call, l.Line, l.Tool, l.Attempt, l.Level, l.Printed, l.Text, store.EncodeJSON(l.Fields)))
		}
		if page.Next > 0 {
			texts = append(texts, fmt.Sprint(page.Next))
		}
		return texts
	}
	all := []string{
		"1.1#1 a 1 info true: line 1 null", "1.1#2 a 1 info true: line 2 null", "1.1#3 a 1 info true: line 3 null",
		`1.1#4 a 1 warn false: late {"id":7}`, "1.1#5 a 1 debug false: fine null", "1.2#1 a 1 info true: line 1 null",
	}
	for _, limit := range []int{1, 4, 5, 6, 7} {
		var got []string
		for after := "0"; after != ""; {
			page := texts(fmt.Sprintf("limit=%d&after=%s", limit, after))
			if after = ""; len(page) > limit {
				after, page = page[limit], page[:limit]
			}
			if got = append(got, page...); len(got) > len(all) {
				break
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	for query, want := range map[string][]string{
		"":                               all,
		"call=1.2":                       all[5:],
		"level=warn":                     all[3:4],
		"newest=true&limit=1":            all[5:],
		"call=1.1&level=info&limit=1000": all[:4],
		"call=1.3":                       nil,
	} {
		if got := texts(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q", query, got)
		}
	}
	s.refused("GET", "/v1/contexts/b/logs", "", 404, "no-context")
	for _, wrong := range []string{"limit=1001", "call=x", "level=loud", "after=-1", "newest=1", "tool=a"} {
		s.refused("GET", "/v1/contexts/a/logs?"+wrong, "", 400, "request")
	}
}
