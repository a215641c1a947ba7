package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"obelus/engine/journal"
)

// follower follows a page as the script in a browser does: it keeps the pieces and the lists.
type follower struct {
	pieces map[string]string
	lists  map[string][]string
	last   string // id of the newest event
	events int
}

// connect connects to a page's stream, and returns its lines and what closes it.
func (f *follower) connect(ctx context.Context, s *site, path string) (lines *bufio.Scanner, leave func()) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if f.last != "" {
		r.Header.Set("Last-Event-ID", f.last)
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		s.t.Fatalf("the stream: status %d, %s: %s", response.StatusCode, kind, text)
	}
	lines = bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20)
	return lines, func() { _ = response.Body.Close() }
}

// follow follows a page, and calls seen after each event until that returns true.
func (f *follower) follow(s *site, path string, seen func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	lines, leave := f.connect(ctx, s, path)
	defer leave()
	event := ""
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			f.last = value
		case "event":
			event = value
		case "data":
			f.events++
			if event == "change" {
				f.apply(s.t, value)
			}
			if seen() {
				return
			}
		}
	}
	s.t.Fatal("the stream has ended before what is waited for")
}

// followToEnd follows a stream, calls once after its first event, and reports whether it ends by
// itself.
func (f *follower) followToEnd(s *site, path string, once func()) (ended bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	lines, leave := f.connect(ctx, s, path)
	defer leave()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") && once != nil {
			once()
			once = nil
		}
	}
	return ctx.Err() == nil
}

func (f *follower) apply(t testing.TB, data string) {
	t.Helper()
	var change struct {
		Lists  map[string][]string
		Pieces map[string]string
	}
	if err := json.Unmarshal([]byte(data), &change); err != nil {
		t.Fatal(err)
	}
	if f.pieces == nil {
		f.pieces, f.lists = map[string]string{}, map[string][]string{}
	}
	for id, text := range change.Pieces {
		f.pieces[id] = text
	}
	for id, order := range change.Lists {
		f.lists[id] = order
	}
}

// isAs reports whether what the follower has is what a fresh page shows.
func (f *follower) isAs(fresh string) error {
	listed := map[string]bool{}
	for list, order := range f.lists {
		var rows strings.Builder
		for _, id := range order {
			listed[id] = true
			rows.WriteString(f.pieces[id])
		}
		if !strings.Contains(space.ReplaceAllString(fresh, " "), space.ReplaceAllString(rows.String(), " ")) {
			return fmt.Errorf("the list %s is not as in the page: %v", list, order)
		}
	}
	for id, text := range f.pieces {
		if !listed[id] && strings.Contains(fresh, `id="`+id+`"`) && !strings.Contains(fresh, text) {
			return fmt.Errorf("the piece %s is not as in the page: %s", id, text)
		}
	}
	return nil
}

var space = regexp.MustCompile(`\s+`)

// TestLive follows pages while runs go on: in the end each has what a fresh page shows, also where
// the connection breaks in between.
func TestLive(t *testing.T) {
	for _, path := range []string{"/runs", "/runs/order-3?tab=calls", "/runs/order-3?tab=graph", "/runs/order-3?tab=timeline", "/runs/order-3?tab=log", "/runs/order-3?tab=state", "/inbox", "/plans"} {
		t.Run(path, func(t *testing.T) {
			s := serve(t, shop, nil)
			s.run("order-3", "plans/order.lua", `{"amount":80}`)
			f := &follower{}
			f.follow(s, path+joint(path)+"seen=-1", func() bool { return true }) // all of it, then the connection breaks
			s.run("order-4", "plans/order.lua", `{"amount":30}`)
			s.run("refund-1", "plans/refund.lua", "")
			s.post("/runs/order-3/result", "call", "1.2", "result", `{"paid": 1}`)
			s.await("order-3", journal.RunDone)
			s.post("/runs/order-3/append", "path", "†state.more", "value", "1")
			var err error
			f.follow(s, path, func() bool {
				err = f.isAs(s.get(path).text)
				return err == nil || f.events > 50
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func joint(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// TestLive_Reload tells pages of scripts that do not load, and of their mending, though neither is in
// the log.
func TestLive_Reload(t *testing.T) {
	s := serve(t, shop, nil)
	f := &follower{}
	steps := []func() bool{
		func() bool {
			s.write("activities/shop.lua", "\nreturn {")
			_ = s.host.Reload()
			return true
		},
		func() bool {
			if !strings.Contains(f.pieces["scripts"], "activities/shop.lua:2") || !strings.Contains(f.pieces["broken"], "newer files do not load") {
				return false
			}
			s.write("activities/shop.lua", shop["activities/shop.lua"])
			_ = s.host.Reload()
			return true
		},
		func() bool {
			return !strings.Contains(f.pieces["scripts"], "activities/shop.lua:2") && !strings.Contains(f.pieces["broken"], "!")
		},
	}
	f.follow(s, "/scripts?seen=-1", func() bool {
		if steps[0]() {
			steps = steps[1:]
		}
		return len(steps) == 0
	})
}

// TestLive_ReloadMeanwhile holds that a page which was not connected while scripts broke is told.
func TestLive_ReloadMeanwhile(t *testing.T) {
	s := serve(t, shop, nil)
	seen := attr(find(s.page("/scripts").doc, "main"), "data-seen")
	f := &follower{}
	f.follow(s, "/scripts?seen="+seen, func() bool { return true })
	if len(f.pieces) != 0 {
		t.Error("a page that is as it was is sent again")
	}
	s.write("activities/shop.lua", "\nreturn {")
	_ = s.host.Reload()
	f = &follower{}
	f.follow(s, "/scripts?seen="+seen, func() bool { return true })
	if !strings.Contains(f.pieces["scripts"], "activities/shop.lua:2") {
		t.Errorf("it is not told: %v", f.pieces)
	}
}

// TestLive_Gathers holds that a page that is followed is not told of each of many changes.
func TestLive_Gathers(t *testing.T) {
	s := serve(t, shop, nil)
	f := &follower{}
	begun := time.Now()
	f.follow(s, "/runs?seen=-1", func() bool {
		if f.events == 1 {
			for i := range 30 {
				s.run(fmt.Sprintf("order-%d", i), "plans/order.lua", `{"amount":20}`)
			}
		}
		return len(f.lists["rows"]) == 30
	})
	if most := 3 + int(time.Since(begun)/(200*time.Millisecond)); f.events > most {
		t.Errorf("%d events for 30 runs: at most %d were to be sent in that time", f.events, most)
	}
}

// TestLive_Source holds that the source of a call that ran stays what ran.
func TestLive_Source(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order", "plans/order.lua", `{"amount":80}`)
	link := ""
	for e := range elements(find(s.page("/runs/order?sel=1.2").doc, "aside")) {
		if strings.HasPrefix(attr(e, "href"), "/source/") {
			link = attr(e, "href")
		}
	}
	s.write("activities/shop.lua", strings.ReplaceAll(shop["activities/shop.lua"], "card was refused", "card was turned down"))
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	s.run("other", "plans/order.lua", `{"amount":80}`)
	if text := s.page(link).text; !strings.Contains(text, "card was refused") || strings.Contains(text, "turned down") {
		t.Errorf("the source is not what ran: %s", link)
	}
}
