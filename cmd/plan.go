package cmd

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
)

func planCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "plan [TICK]",
		Short: "print the plan of a tick as a plan file",
		Long: `Print the plan of a tick of a context, the latest unless -c names one, as a plan file
in JSON that runs: its calls, its output, the tools that it brought and the schema of its
output. Without TICK it is the newest tick. A plan that a person corrected is printed as
corrected, without the calls that were dropped. An answer that a model gave with its plan
is left out, so that the call is asked again.`,
		Example: `  obelus plan -c order-7 > plans/again.json
  obelus plan 2`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			tick := 0
			if len(args) > 0 {
				var err error
				if tick, err = strconv.Atoi(args[0]); err != nil || tick < 1 {
					return exit.Usagef("plan %s: the tick is a number from 1 on", args[0])
				}
			}
			return printPlanFile(c.Context(), a, tick)
		},
	}
}

// printPlanFile prints the plan of a tick, 0 for the newest.
func printPlanFile(ctx context.Context, a *app, tick int) error {
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	in := journal.In(a.log, name)
	ticks, err := in.Plans(ctx, tick)
	if err != nil {
		return err
	}
	switch {
	case len(ticks) == 0 && tick == 0:
		return exit.Usagef("context %s has no run, and so no plan", name)
	case len(ticks) == 0 || tick > 0 && ticks[0].Tick != tick:
		return exit.Usagef("context %s has no tick %d: obelus graph -c %[1]s shows those of its newest run", name, tick)
	}
	event := &ticks[0]
	if tick == 0 {
		event = &ticks[len(ticks)-1]
	}
	if event.Seq == 0 {
		return exit.Usagef("the planner of context %s gave no good plan in tick %d: obelus log -c %[1]s --kind error shows why", name, event.Tick)
	}
	file, err := planFile(ctx, in, event)
	if err != nil {
		return err
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a person reads it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(file); err != nil {
		return err
	}
	return a.term.Line(strings.TrimSuffix(text.String(), "\n"))
}

// planOfFile is the content of a plan file.
type planOfFile struct {
	Mode   string         `json:"mode,omitempty"`
	Tools  map[string]any `json:"tools,omitempty"`
	Schema any            `json:"schema,omitempty"`
	Calls  []any          `json:"calls"`
	Output any            `json:"output,omitempty"`
}

// planFile returns a plan as it ran as the content of a file.
func planFile(ctx context.Context, in journal.Context, event *journal.PlanEvent) (f planOfFile, err error) {
	f = planOfFile{Mode: event.Mode, Calls: []any{}}
	if f.Tools, err = event.DecodeTools(); err != nil {
		return f, err
	}
	if f.Schema, err = journal.DecodeJSON(event.Schema); err != nil {
		return f, err
	}
	if f.Output, err = journal.DecodeJSON(event.Output); err != nil {
		return f, err
	}
	calls, err := in.PlanMessage(ctx, event.MessageSeq())
	if err != nil {
		return f, err
	}
	for i, source := range event.Sources(calls) {
		call, ok := calls[i].(map[string]any)
		if source.Dropped || !ok {
			continue
		}
		if source.ByModel != nil {
			call = maps.Clone(call)
			delete(call, "_output")
		}
		f.Calls = append(f.Calls, call)
	}
	return f, nil
}
