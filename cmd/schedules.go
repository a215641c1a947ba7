package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/host/schedule"
	"obelus/host/schedule/ledger"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

func schedulesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schedules",
		Short: "list the schedules: when each is due, how it ran last, what was skipped",
		Long: `List the schedules that obelus.lua has under serve (obelus help settings): when each
is due next, by the clock of its zone, its newest run with its status, and below
them the runs that were skipped, the newest first, with the reason:

  missed       no server was there when they were due
  overlapping  the run before had not ended
  refused      the plan or its input was refused
  cancelled    a person cancelled the run before its turn

A server runs them: obelus serve. What it did is read from the log, whether it is
running or not. A run that was skipped can be made by hand, under the name that it
would have had: obelus run PLAN -c nightly-20261126T020000Z.`,
		Example: `  obelus schedules
  obelus schedules --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listSchedules(c.Context(), a) },
	}
}

// scheduleLine describes a schedule, as --json prints it.
type scheduleLine struct {
	Schedule string         `json:"schedule"`
	Plan     string         `json:"plan"`
	Cron     string         `json:"cron"`
	Zone     string         `json:"zone"`
	Next     string         `json:"next"`
	Last     *scheduledRun  `json:"last"`
	Skipped  []skippedLines `json:"skipped"`

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

func listSchedules(ctx context.Context, a *app) error {
	path, err := a.dbPath()
	if err == nil && a.host == nil { // --db names the log
		err = a.openSettings()
	}
	if err != nil {
		return err
	}
	schedules := a.host.Generation().Settings().Serve.Schedules
	if len(schedules) == 0 {
		a.term.Infof("the project has no schedules: they are in %s, serve = { schedules = { … } } (obelus help settings)", host.SettingsFile)
		return nil
	}
	log := store.Reader(memory.New())
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
			return err
		}
		log = a.log
	}
	var lines []scheduleLine
	for _, s := range schedules {
		line, err := readSchedule(ctx, log, s)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	return printSchedules(a, lines)
}

func readSchedule(ctx context.Context, log store.Reader, s host.Schedule) (scheduleLine, error) {
	now := time.Now()
	line := scheduleLine{Schedule: s.Name, Plan: s.Plan, Cron: s.Cron, Zone: s.Zone, Skipped: []skippedLines{}, when: s.When}
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
func (l *scheduleLine) clock(t time.Time) string { return l.when.Local(t).Format("2006-01-02 15:04") }

// printSchedules prints the schedules, and then the runs that were skipped.
func printSchedules(a *app, lines []scheduleLine) error {
	var rows, skipped [][]string
	for _, line := range lines {
		if a.json {
			if err := a.term.NDJSON(line); err != nil {
				return err
			}
			continue
		}
		last, status := "", ""
		if line.Last != nil {
			last, status = line.Last.Context, string(line.Last.Status)
		}
		rows = append(rows, []string{line.Schedule, line.Cron, line.Zone, line.clock(line.next), human.OrDash(last), human.OrDash(status)})
		for _, k := range line.Skipped {
			until := ""
			if k.Count > 1 {
				until = line.clock(k.until)
			}
			skipped = append(skipped, []string{line.Schedule, line.clock(k.from), human.OrDash(until), fmt.Sprint(k.Count), string(k.Reason), human.OrDash(k.Error)})
		}
	}
	if a.json {
		return nil
	}
	if err := a.term.Table([]string{"SCHEDULE", "CRON", "ZONE", "NEXT", "LAST", "STATUS"}, rows); err != nil {
		return err
	}
	for _, line := range lines {
		if !line.seen {
			a.term.Infof("no server has seen the schedule %s in this log yet: obelus serve starts its runs", line.Schedule)
		}
	}
	if len(skipped) == 0 {
		return nil
	}
	header := []string{"SKIPPED", "FROM", "UNTIL", "RUNS", "REASON", "ERROR"}
	const message = 5
	human.Fit(append([][]string{header}, skipped...), a.term.Width(), message)
	if err := a.term.Line(""); err != nil {
		return err
	}
	return a.term.Table(header, skipped)
}
