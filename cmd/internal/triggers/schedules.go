package triggers

import (
	"context"
	"fmt"
	"time"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/term"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/host/schedule"
	"obelus/host/schedule/ledger"
	"obelus/store"
)

// Schedule describes a schedule and its state, as --json prints it.
type Schedule struct {
	Name    string         `json:"schedule"`
	Plan    string         `json:"plan"`
	Cron    string         `json:"cron"`
	Zone    string         `json:"zone"`
	Next    string         `json:"next"`
	Last    *scheduledRun  `json:"last"`
	Skipped []skippedLines `json:"skipped"`

	when *schedule.Schedule
	next time.Time
	seen bool // by a server
}

// scheduledRun describes the newest run of a schedule.
type scheduledRun struct {
	Context string            `json:"context"`
	Due     string            `json:"due"`
	Status  journal.RunStatus `json:"status"`
}

// skippedLines describes runs that were skipped for one reason.
type skippedLines struct {
	From   string          `json:"from"`
	Until  string          `json:"until"`
	Count  int             `json:"count"`
	Reason schedule.Reason `json:"reason"`
	Error  string          `json:"error,omitempty"`

	from, until time.Time
}

// ReadSchedules reads the state of schedules in a log.
func ReadSchedules(ctx context.Context, log store.Reader, schedules []host.Schedule) ([]Schedule, error) {
	var all []Schedule
	for _, s := range schedules {
		listed, err := readSchedule(ctx, log, s)
		if err != nil {
			return nil, err
		}
		all = append(all, listed)
	}
	return all, nil
}

func readSchedule(ctx context.Context, log store.Reader, s host.Schedule) (Schedule, error) {
	now := time.Now()
	line := Schedule{Name: s.Name, Plan: s.Plan, Cron: s.Cron, Zone: s.Zone, Skipped: []skippedLines{}, when: s.When}
	if line.Zone == "" {
		line.Zone = "UTC"
	}
	line.next = s.When.Next(now)
	line.Next = store.FormatDate(line.next)
	state, err := ledger.Read(ctx, log, s.Name, now)
	if err != nil {
		return line, err
	}
	line.seen = state.Cron != ""
	if run := state.Run; run != nil {
		line.Last = &scheduledRun{run.Context, store.FormatDate(run.Due), run.Status}
	}
	for _, k := range state.Skips {
		line.Skipped = append(line.Skipped, skippedLines{store.FormatDate(k.From), store.FormatDate(k.Until), k.Count, k.Reason, k.Error, k.From, k.Until})
	}
	return line, nil
}

// clock returns a time as the clock in the schedule's zone has it.
func (l *Schedule) clock(t time.Time) string { return l.when.Local(t).Format("2006-01-02 15:04") }

// PrintSchedules prints the schedules, and then the runs that were skipped.
func PrintSchedules(t *term.Terminal, asJSON bool, lines []Schedule) error {
	var rows, skipped [][]string
	for _, line := range lines {
		if asJSON {
			if err := t.NDJSON(line); err != nil {
				return err
			}
			continue
		}
		last, status := "", ""
		if line.Last != nil {
			last, status = line.Last.Context, string(line.Last.Status)
		}
		rows = append(rows, []string{line.Name, line.Cron, line.Zone, line.clock(line.next), human.OrDash(last), human.OrDash(status)})
		for _, k := range line.Skipped {
			until := ""
			if k.Count > 1 {
				until = line.clock(k.until)
			}
			skipped = append(skipped, []string{line.Name, line.clock(k.from), human.OrDash(until), fmt.Sprint(k.Count), string(k.Reason), human.OrDash(k.Error)})
		}
	}
	if asJSON {
		return nil
	}
	if err := t.Table([]string{"SCHEDULE", "CRON", "ZONE", "NEXT", "LAST", "STATUS"}, rows); err != nil {
		return err
	}
	for _, line := range lines {
		if !line.seen {
			t.Infof("no server has seen the schedule %s in this log yet: obelus serve starts its runs", line.Name)
		}
	}
	if len(skipped) == 0 {
		return nil
	}
	header := []string{"SKIPPED", "FROM", "UNTIL", "RUNS", "REASON", "ERROR"}
	const message = 5
	human.Fit(append([][]string{header}, skipped...), t.Width(), message)
	if err := t.Line(""); err != nil {
		return err
	}
	return t.Table(header, skipped)
}
