package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/journal"
)

func graphCommand(a *app) *cobra.Command {
	format := ""
	c := &cobra.Command{
		Use:   "graph [PLAN]",
		Short: "show how a plan's calls depend on each other",
		Long: `Show a plan's data-flow graph: what each call reads, which calls that comes from,
and where it writes, with alternatives (||) and fan-outs (&&). The context is
taken for empty unless -c names one.

Without a plan, show the newest that a context ran, the latest unless -c names
one, as it ran: what was done, failed, skipped or waits, how long it took, and
where it wrote. Of a plan that is a function all ticks are shown.`,
		Example: `  obelus graph plans/refund.lua --format dot | dot -Tsvg > refund.svg
  obelus graph --context order-7`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePlans,
		RunE: func(c *cobra.Command, args []string) error {
			draw, ok := view.Formats[format]
			switch {
			case !ok:
				return exit.Usagef("--format %s: it is text, mermaid or dot", format)
			case a.json && c.Flags().Changed("format"):
				return exit.Usage("--json and --format: give one of them")
			case len(args) == 0:
				return graphLastRun(c.Context(), a, draw)
			}
			return graphPlan(c.Context(), a, args[0], draw)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, mermaid or dot")
	return c
}

// graphLastRun prints the newest plan of a context as it ran.
func graphLastRun(ctx context.Context, a *app, draw view.Format) error {
	run, err := a.openLastRun(ctx)
	if err != nil {
		return err
	}
	h, err := journal.ReadHistory(ctx, a.log, run.context)
	if err != nil {
		return err
	}
	ticks, err := run.runner.TicksOf(ctx, h)
	if err != nil {
		return err
	}
	lines, err := h.Lines(ctx, 0)
	if err != nil {
		return err
	}
	var all []view.Graph
	for _, of := range ticks {
		one := view.Graph{Plan: of.Plan, Ran: map[int]journal.Record{}}
		if len(ticks) > 1 {
			one.Tick = of.Tick
		}
		records, err := h.Records(ctx, journal.OfTick(lines, of.Tick))
		if err != nil {
			return err
		}
		for _, r := range records {
			one.Ran[r.Position] = r
		}
		all = append(all, one)
	}
	return printGraph(a, draw, all)
}

// printGraph prints graphs in a format, or as JSON.
func printGraph(a *app, draw view.Format, all []view.Graph) error {
	if !a.json {
		return a.term.Line(strings.TrimRight(draw(all), "\n"))
	}
	for _, one := range all {
		for _, line := range one.Lines() {
			if err := a.term.NDJSON(line); err != nil {
				return err
			}
		}
	}
	return nil
}

func graphPlan(ctx context.Context, a *app, file string, draw view.Format) error {
	request, registry, err := openPlan(a, file)
	if err != nil {
		return err
	}
	if request.Planner != nil {
		by := "gives its calls by a function"
		if request.IsModelPlanned() {
			by = "has its calls given by a model"
		}
		return exit.Usagef("%s %s, one tick after another: there is no graph before it is asked", file, by)
	}
	log, name, err := contextToCheck(ctx, a)
	if err != nil {
		return err
	}
	runner := &engine.Runner{Log: log, Registry: registry}
	plan, err := runner.Check(ctx, engine.Start{Context: name, Request: request})
	if err != nil {
		return err
	}
	return printGraph(a, draw, []view.Graph{{Plan: plan}})
}
