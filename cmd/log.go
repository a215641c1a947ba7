package cmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/sqlite"
)

// logOptions holds the flags of log.
type logOptions struct {
	history.LogFilter
	path, since string
	at          int64
	follow      bool
}

func logCommand(a *app) *cobra.Command {
	var o logOptions
	var model bool
	var scopes []string
	c := &cobra.Command{
		Use:   "log",
		Short: "print the messages of a context, oldest first",
		Long: `Print the messages of a context, the latest unless -c names one. On a terminal a
line is cut at its width, unless -v is given; with --json every message is
whole, and append takes it back. --follow goes on with what is appended, until it
is interrupted.

--model prints the parts of the messages that a model may see: without what is
hidden from models, and with those that --scopes names last, marked as the ones
to use. A prompt shows their values once they are joined, see obelus prompt.`,
		Example: `  obelus log --kind state
  obelus log --path state.user --since 1h --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkAt(c, o.at); err != nil {
				return err
			}
			var err error
			if o.Path, err = cli.ReadPath("path", o.path); err != nil {
				return err
			}
			if o.Since, err = cli.ReadTime("since", o.since); err != nil {
				return err
			}
			if model {
				isFiltered := len(o.Tool) > 0 || o.Text != ""
				if o.follow || isFiltered {
					return exit.Usage("--model shows what a model sees at one time: leave --follow, --tool and --search out")
				}
				return printModelView(c.Context(), a, o, scopes)
			} else if len(scopes) > 0 {
				return exit.Usage("--scopes goes with --model: it marks what a model is to use")
			}
			if o.follow && o.at > 0 {
				return exit.Usage("--follow goes on with what comes, and --at ends before it: give one of them")
			}
			return printLog(c.Context(), a, o)
		},
	}
	c.Flags().StringVar(&o.Kind, "kind", "", "only data of the kind `K`, or tool, plan, system and text messages")
	c.Flags().StringVar(&o.path, "path", "", "only messages that touch the path `P`")
	c.Flags().Var((*cli.Words)(&o.Tool), "tool", "only what calls of the `TOOL,...` wrote")
	c.Flags().StringVar(&o.Text, "search", "", "only messages with `TEXT` in them, in any case")
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with what is appended")
	c.Flags().StringVar(&o.since, "since", "", "only messages since `T`: a time (RFC 3339; without a zone, of this machine's), or a span before now (90s, 7d)")
	c.Flags().Int64Var(&o.at, "at", 0, "only messages up to `SEQ`")
	c.Flags().BoolVar(&model, "model", false, "the parts that a model may see, in JSON")
	c.Flags().Var((*cli.Words)(&scopes), "scopes", "with --model: mark these kinds or paths, `KIND,...`")
	return c
}

func printLog(ctx context.Context, a *app, o logOptions) error {
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	f := o.Messages(name)
	f.At = o.at
	show := func() error {
		for m, err := range a.log.Messages(ctx, f) {
			if err != nil {
				return err
			}
			f.After = m.Seq
			if !o.Picks(m) {
				continue
			}
			if err := printMessage(a, m); err != nil {
				return err
			}
		}
		return nil
	}
	if !o.follow {
		return show()
	}
	created := time.Time{}
	return followUntilDone(ctx, func() error {
		info, err := a.log.Info(ctx, f.Context)
		switch {
		case errors.Is(err, store.ErrNoContext): // it was pruned, and may be made anew later
			return nil
		case err != nil:
			return err
		case !info.Created.Equal(created):
			created, f.After = info.Created, 0
		}
		return show()
	})
}

// followInterval is the time between two looks at a log that is followed.
const followInterval = 200 * time.Millisecond

// followUntilDone calls show again and again until ctx is done. It goes on if the log was locked.
func followUntilDone(ctx context.Context, show func() error) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		if err := show(); ctx.Err() != nil {
			return exit.Interrupted
		} else if err != nil && !errors.Is(err, sqlite.ErrLocked) { // the lock may be free next time
			return err
		}
		select {
		case <-ctx.Done():
			return exit.Interrupted
		case <-ticker.C:
		}
	}
}

// printModelView prints the messages that a model sees for a latent call with these scopes.
func printModelView(ctx context.Context, a *app, o logOptions, names []string) error {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	scopes, err := plan.ParseScopes(list)
	if err != nil {
		return exit.Usage("--scopes" + err.Error())
	}
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	superseded, err := journal.In(a.log, name).Superseded(ctx)
	if err != nil {
		return err
	}
	f := o.Messages(name)
	f.At = o.at
	var messages []*store.Message
	for m, err := range a.log.Messages(ctx, f) {
		if err != nil {
			return err
		}
		if !superseded.Has(m.Seq) && o.Picks(m) {
			messages = append(messages, m)
		}
	}
	for _, shown := range plan.ModelView(messages, scopes, "") {
		if err := a.term.NDJSON(shown); err != nil {
			return err
		}
	}
	return nil
}

func printMessage(a *app, m *store.Message) error {
	if a.json {
		text, err := m.MarshalJSON() // json.Marshal would escape <, > and &
		if err != nil {
			return err
		}
		return a.term.Line(string(text))
	}
	text := human.Printable(view.Message(m))
	if !a.verbose {
		text = human.Cut(text, a.term.Width())
	}
	return a.term.Line(text)
}
