package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"obelus/engine"
)

func (a *app) callsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "calls",
		Short: "print the calls of a context: status, time, script, error",
		Long: `Print the calls of a context, the latest unless -c names one: how they stand, how
often they were tried, how long they took, and where they wrote or why they did
not. -v adds the script that ran and the start of its SHA-256.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.calls(c.Context()) },
	}
}

func (a *app) calls(ctx context.Context) error {
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	records, err := engine.Records(ctx, a.log, name)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, r := range records {
		if a.json {
			if err := a.term.ndjson(r); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, a.callRow(r))
	}
	if a.json {
		return nil
	}
	header := []string{"CALL", "TOOL", "STATUS", "TRIES", "TIME", "RESULT"}
	if a.verbose {
		header = slices.Insert(header, 5, "SCRIPT")
	}
	return a.term.table(header, rows)
}

func (a *app) callRow(r engine.Record) []string {
	tool := r.Tool
	if r.Instance != "" {
		tool += " " + r.Instance
	}
	took, script := "-", "-"
	if r.Started != "" && r.Status.Settled() {
		took = duration(time.Duration(r.Duration * float64(time.Millisecond)))
	}
	if r.Script != "" {
		script = r.Script + "@" + r.SHA256[:min(7, len(r.SHA256))]
	}
	result := strings.Join(r.Writes, " ")
	switch {
	case r.Error != nil:
		result = firstLine(a.failure(r))
	case r.Status == engine.Held:
		result = "for a person: " + describeArguments(r.Hold)
	case r.Status == engine.Ready:
		result = r.Hold.Decision
	case r.Reason != "":
		result = r.Reason
	case len(r.WaitingOn) > 0:
		result = "waits for " + strings.Join(r.WaitingOn, " ")
	}
	row := []string{r.Call, tool, string(r.Status), fmt.Sprint(r.Attempts), took, result}
	if a.verbose {
		row = slices.Insert(row, 5, script)
	}
	return row
}
