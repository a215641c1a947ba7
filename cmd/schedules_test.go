package cmd

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"obelus/host/schedule"
	"obelus/host/schedule/ledger"
	"obelus/store/sqlite"
)

// TestSchedules_OfTwoServers holds that two servers of one log, which begin when runs have been
// missed, start the newest of them once, record the others once as skipped, and that the command
// lists that.
func TestSchedules_OfTwoServers(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       `return { serve = { schedules = { often = { plan = "plans/p.lua", cron = "* * * * *", catchup = "5m", input = { to = "ops" } } } } }`,
		"plans/p.lua":      `return { calls = {}, output = "†input.due" }`,
		"activities/a.lua": ``,
	})
	now := time.Now()
	since := now.Add(-10 * time.Minute)
	log, err := sqlite.Open(filepath.Join(dir, ".obelus", "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := ledger.Read(t.Context(), log, "often", now)
	if err == nil {
		_, err = state.See(t.Context(), log, "often", "* * * * *", "", since)
	}
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for range 2 {
		_, url := serving(t, dir)
		urls = append(urls, url)
	}
	var listed struct {
		Schedule, Next string
		Last           *struct{ Context, Due, Status string }
		Skipped        []struct {
			From, Until time.Time
			Count       int
			Reason      string
		}
	}
	for deadline := time.Now().Add(30 * time.Second); listed.Last == nil || listed.Last.Status != "done"; {
		if time.Now().After(deadline) {
			t.Fatalf("no run has come: %+v", listed)
		}
		if err := json.Unmarshal([]byte(obelusOutput(t, 0, "-C", dir, "schedules", "--json")), &listed); err != nil {
			t.Fatal(err)
		}
	}
	s, err := schedule.Parse("* * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Skipped) == 0 || listed.Skipped[len(listed.Skipped)-1].Reason != "missed" {
		t.Fatalf("skipped: %+v", listed.Skipped)
	}
	dealt := since // the time up to which each due time is either skipped or has run
	for i := len(listed.Skipped) - 1; i >= 0; i-- {
		k := listed.Skipped[i]
		if first := s.Next(dealt); !k.From.Equal(first) {
			t.Errorf("skipped from %s, and not from %s", k.From, first)
		}
		dealt = k.Until
	}
	counted := 0 // by the metrics of the servers
	for _, url := range urls {
		answer, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^obelus_schedule_skipped_total{reason="missed",schedule="often"} (\d+)$`).FindStringSubmatch(string(text)); m != nil {
			n, _ := strconv.Atoi(m[1])
			counted += n
		}
	}
	if missed := listed.Skipped[len(listed.Skipped)-1].Count; counted != missed {
		t.Errorf("%d runs are counted as missed, and %d were", counted, missed)
	}
	first := schedule.RunName("often", s.Next(dealt))
	if got := obelusOutput(t, 0, "-C", dir, "get", "-r", "†input.due", "-c", first); strings.TrimSpace(got) != s.Next(dealt).Format(time.RFC3339) {
		t.Errorf("%s is due at %s", first, got)
	}
	for line := range strings.Lines(obelusOutput(t, 0, "-C", dir, "log", "--json", "-c", first)) {
		if strings.Contains(line, `"type":"plan"`) && !strings.Contains(line, `"seq":2,`) {
			t.Errorf("it has run twice: %s", line)
		}
	}
	text := obelusOutput(t, 0, "-C", dir, "schedules")
	for _, want := range []string{"SCHEDULE  CRON       ZONE  NEXT", "often     * * * * *  UTC", listed.Last.Context, "SKIPPED  FROM", "missed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	// Reading commands go on with the newest run, and not with the record of the schedule.
	if got := obelusOutput(t, 0, "-C", dir, "get", "-r", "†input.to"); strings.TrimSpace(got) != "ops" {
		t.Errorf("the newest context has %s", got)
	}
}
