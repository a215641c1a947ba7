package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/host/trace"
)

func traceCommand(a *app) *cobra.Command {
	to, content := "", false
	c := &cobra.Command{
		Use:   "trace",
		Short: "send a run as a trace to a collector, or print it",
		Long: `Send the newest run of a context as one trace, with its delegates, its calls and
what they asked of models; or print the JSON that would be sent. A delegate's run
is in the trace of the run around it. --otlp is the address of a collector that
takes OTLP over HTTP. If it is that of serve.otlp in obelus.lua, the headers that
are set there are sent with it.

Names are those of OpenTelemetry's conventions for generative AI, ` + trace.Conventions + `.
A run that is sent twice has the same ids. Arguments, results and the texts of
errors are left out, unless --content asks for them.

Exit status: 0, or 1 if the collector did not take the trace.`,
		Example: `  obelus trace -c order-7 --otlp http://127.0.0.1:4318
  obelus trace | jq .resourceSpans`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("otlp") && to == "" {
				return exit.Usage("--otlp is empty: name a collector, or leave the flag out")
			}
			return sendTrace(c.Context(), a, to, content)
		},
	}
	c.Flags().StringVar(&to, "otlp", "", "send it to the collector at `URL`, such as http://127.0.0.1:4318")
	c.Flags().BoolVar(&content, "content", false, "with arguments, results and the texts of errors")
	return c
}

func sendTrace(ctx context.Context, a *app, to string, content bool) error {
	if err := a.openSettings(); err != nil {
		return err
	}
	settings := a.host.Generation().Settings()
	config := trace.Config{URL: to, Content: content}
	if own := settings.Serve.OTLP; own.URL == to {
		config.Headers = own.Headers
	}
	var sender *trace.Sender
	if to != "" {
		var err error
		if sender, err = trace.NewSender(config); err != nil {
			return exit.Usage("--otlp " + err.Error())
		}
	}
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	t, err := trace.Of(ctx, journal.In(a.log, name), settings.TraceOptions(content))
	switch {
	case errors.Is(err, trace.ErrNoRun):
		return exit.Usagef("nothing has run in context %s yet", name)
	case err != nil:
		return err
	case sender == nil:
		return a.term.NDJSON(t)
	}
	if err := sender.Send(ctx, t); err != nil {
		if ctx.Err() != nil {
			return exit.Interrupted
		}
		a.term.Error(err)
		return exit.Failed
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"context": t.Context, "trace": t.ID.String(), "spans": len(t.Spans)})
	}
	a.term.Infof("sent %s of context %s as trace %s", human.Count(len(t.Spans), "span"), t.Context, t.ID)
	return nil
}
