package cmd

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"obelus/store"
	"obelus/store/sqlite"
)

var manyContexts = flag.Int("contexts", 2000, "number of contexts in the log of the tests and benchmarks of lists")

// manyRuns is a project whose log has many contexts: a delegate among 50, one that waits among 100,
// others that are done or have failed, and one that is held for each 2,000.
func manyRuns(t testing.TB) (dir string) {
	dir = project(t, map[string]string{
		"obelus.lua":     "return {}",
		"plans/pay.lua":  `return { { _tool = "pay", amount = 7, _outputPath = "†state.paid" } }`,
		"activities.lua": "",
		"activities/pay.lua": `Activity.register("pay", function() return 1 end)
			Tool.register("pay", { properties = { amount = { type = "number" } } })`,
	})
	held := max(*manyContexts/2000, 1)
	for i := range held {
		obelusOutput(t, exitWaiting, "-C", dir, "run", "-q", filepath.Join(dir, "plans/pay.lua"), "-c", fmt.Sprintf("held-%d", i), "--approve", "pay", "--label", "customer=held")
	}
	log, err := sqlite.Open(filepath.Join(dir, ".obelus/log.db"), sqlite.Options{Synchronous: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var tasks sync.WaitGroup
	for worker := range 64 {
		tasks.Go(func() {
			for i := worker; i < *manyContexts-held; i += 64 {
				b := oneOfMany(i)
				if _, err := log.Append(t.Context(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	tasks.Wait()
	return dir
}

func oneOfMany(i int) store.Batch {
	s := &store.Standing{
		Status: "done", Plan: fmt.Sprintf("plans/p%d.lua", i%20), Tick: 1, Calls: 5, Done: 5,
		Labels: map[string]string{"customer": fmt.Sprint(i % 1000)},
	}
	b := store.Batch{Context: fmt.Sprintf("run-%07d", i), Create: &store.Origin{}, ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "note"}}, Standing: s}
	switch {
	case i%100 == 1:
		s.Status, s.Waiting, s.Wakes, s.WaitingOn = "waiting", 1, true, []string{"†input.amount", fmt.Sprintf("†input.x%d", i%300)}
	case i%200 == 5:
		s.Status, s.Retrying, s.Due = "waiting", 2, time.Now().Add(time.Hour)
	case i%200 == 7:
		s.Status, s.Retrying, s.Due = "running", 1, time.Now() // its process has died
	case i%50 == 2:
		b.Create = &store.Origin{Parent: fmt.Sprintf("run-%07d", i-2), Call: "1.1"}
	case i%30 == 3:
		s.Status, s.Error = "failed", "it broke"
	}
	return b
}

// lists are questions about contexts, with the arguments of the command, the parameters of the API
// and the condition in SQL.
var lists = []struct{ args, query, where string }{
	{"", "", "parent IS NULL"},
	{"--all", "all=true", "1"},
	{"--status waiting", "status=waiting", "parent IS NULL AND status = 'waiting'"},
	{"--status failed --plan plans/p3.lua", "status=failed&plan=plans/p3.lua", "parent IS NULL AND status = 'failed' AND plan = 'plans/p3.lua'"},
	{"--status failed,done --plan plans/p3.lua", "status=failed,done&plan=plans/p3.lua", "parent IS NULL AND status IN ('failed', 'done') AND plan = 'plans/p3.lua'"},
	{"--label customer=7 --plan plans/p7.lua", "label=customer=7&plan=plans/p7.lua", "parent IS NULL AND labels ->> 'customer' = '7' AND plan = 'plans/p7.lua'"},
	{"--search N-00001", "q=N-00001", "parent IS NULL AND context LIKE '%n-00001%'"},
	{"--held", "held=true", "parent IS NULL AND held > 0"},
	{"--retrying", "retrying=true", "parent IS NULL AND retrying > 0 AND status = 'waiting'"},
	{"--waiting-on input.x101", "waiting=input.x101", `parent IS NULL AND waiting_on LIKE '%"†input.x101"%'`},
	{"--waiting-on †input.amount --status waiting", "waiting=%E2%80%A0input.amount&status=waiting", `parent IS NULL AND status = 'waiting' AND waiting_on LIKE '%"†input.amount"%'`},
	{"--since 1h --until 1h", "since=2000-01-01T00:00:00Z&until=2000-01-01T00:00:00Z", "0"},
}

// TestLists_AgainstSQL holds the lists of the command and of the API to what plain SQL says, page by
// page, and the inbox to the calls that are held.
func TestLists_AgainstSQL(t *testing.T) {
	dir := manyRuns(t)
	db := openPlain(t, filepath.Join(dir, ".obelus/log.db"))
	p, address := serving(t, dir, "-q", "--no-resume")
	get := func(path string, into any) {
		t.Helper()
		r, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(into); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, r.StatusCode, err)
		}
	}
	for _, list := range lists {
		var want []string
		rows, err := db.Query("SELECT context FROM contexts WHERE " + list.where + " ORDER BY updated DESC, context DESC")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			want = append(want, name)
		}
		var listed, paged []string
		for line := range strings.Lines(obelusOutput(t, exitDone, append([]string{"-C", dir, "contexts", "--json"}, strings.Fields(list.args)...)...)) {
			var context struct{ Context string }
			if err := json.Unmarshal([]byte(line), &context); err != nil {
				t.Fatal(err)
			}
			listed = append(listed, context.Context)
		}
		for cursor, more := "", true; more; {
			var page struct {
				Runs []struct{ Context string }
				Next string
			}
			get("/v1/runs?limit=700&"+list.query+"&cursor="+url.QueryEscape(cursor), &page)
			for _, run := range page.Runs {
				paged = append(paged, run.Context)
			}
			cursor, more = page.Next, page.Next != ""
		}
		var counts struct {
			Total  int
			Status map[string]int
		}
		get("/v1/runs/counts?"+list.query, &counts)
		if !slices.Equal(listed, want) || !slices.Equal(paged, want) || counts.Total != len(want) {
			t.Errorf("contexts %s: the command lists %d, the API %d and counts %d, and there are %d", list.args, len(listed), len(paged), counts.Total, len(want))
		}
		shown, shownCounts := shownRuns(t, address+"/runs?"+list.query)
		if onPage(list.query) && !slices.Equal(shown, want) {
			t.Errorf("the page lists %d runs with %s, and there are %d", len(shown), list.query, len(want))
		}
		for status, n := range counts.Status {
			// Beside the held runs the page counts all others.
			if onPage(list.query) && list.query != "held=true" && list.query != "retrying=true" && shownCounts[status] != n {
				t.Errorf("the page counts %d %s runs with %s, and there are %d", shownCounts[status], status, list.query, n)
			}
		}
	}
	var inbox []struct{ Context, Call string }
	get("/v1/approvals", &inbox)
	lines := strings.Count(obelusOutput(t, exitDone, "-C", dir, "approvals", "--json"), "\n")
	if held := max(*manyContexts/2000, 1); len(inbox) != held || lines != held {
		t.Errorf("%d calls are held, and %d are in the inbox, %d in that of the API", held, lines, len(inbox))
	}
	p.ends(syscall.SIGTERM)
}

// onPage reports whether the filter of the page has what a query of the API asks for.
func onPage(query string) bool {
	return !strings.Contains(query, "until=") && !strings.Contains(query, "status=failed,done")
}

// shownRuns returns the names of the runs that the page lists, from its first window to the last, and
// the numbers by status in the first.
func shownRuns(t *testing.T, address string) (names []string, counts map[string]int) {
	t.Helper()
	count := regexp.MustCompile(`([a-z-]+)</span> ([0-9,]+)</a>`)
	older := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	row := regexp.MustCompile(`<tr id="run-([^"]+)"`)
	first, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for next := address; next != ""; {
		r, err := http.Get(next)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", next, r.StatusCode, err)
		}
		for _, match := range row.FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
		if counts == nil {
			counts = map[string]int{}
			for _, match := range count.FindAllStringSubmatch(string(text), -1) {
				counts[match[1]], _ = strconv.Atoi(strings.ReplaceAll(match[2], ",", ""))
			}
		}
		next = ""
		if match := older.FindStringSubmatch(string(text)); match != nil {
			next = first.Scheme + "://" + first.Host + html.UnescapeString(match[1])
		}
	}
	return names, counts
}

// BenchmarkLists times lists, counts and the inbox over HTTP: go test ./cmd -run '^$' -bench Lists
// -contexts 100000.
func BenchmarkLists(b *testing.B) {
	dir := manyRuns(b)
	_, address := serving(b, dir, "-q")
	paths := []string{"/v1/approvals"}
	for _, list := range lists {
		paths = append(paths, "/v1/runs?"+list.query, "/v1/runs/counts?"+list.query)
		if onPage(list.query) {
			paths = append(paths, "/runs?"+list.query)
		}
	}
	for _, path := range paths {
		b.Run(strings.TrimPrefix(path, "/v1/"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.Get(address + path)
				if err != nil {
					b.Fatal(err)
				}
				r.Body.Close()
			}
		})
	}
}
