package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/sqlite"
)

func logCommand(a *app) *cobra.Command {
	var f store.Filter
	var path, since string
	var model, follow bool
	tool, kind := "", ""
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
			if err := checkAt(c, f.At); err != nil {
				return err
			}
			if kind = strings.TrimPrefix(kind, store.Dagger); !slices.Contains(kindless, store.Type(kind)) {
				f.Kind = kind
			}
			var err error
			if f.Path, err = parsePathFlag(path); err != nil {
				return err
			}
			if f.Since, err = cli.ReadTime("since", since); err != nil {
				return err
			}
			if model {
				if follow || tool != "" {
					return exit.Usage("--model shows what a model sees at one time: leave --follow and --tool out")
				}
				return printModelView(c.Context(), a, f, kind, scopes)
			} else if len(scopes) > 0 {
				return exit.Usage("--scopes goes with --model: it marks what a model is to use")
			}
			if follow && f.At > 0 {
				return exit.Usage("--follow goes on with what comes, and --at ends before it: give one of them")
			}
			return printLog(c.Context(), a, f, kind, tool, follow)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "only data of the kind `K`, or tool, plan, system and text messages")
	c.Flags().StringVar(&path, "path", "", "only messages that touch the path `P`")
	c.Flags().StringVar(&tool, "tool", "", "only what calls of the `TOOL` wrote")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is appended")
	c.Flags().StringVar(&since, "since", "", "only messages since `T`: a time (RFC 3339; without a zone, of this machine's), or a span before now (90s, 7d)")
	c.Flags().Int64Var(&f.At, "at", 0, "only messages up to `SEQ`")
	c.Flags().BoolVar(&model, "model", false, "the parts that a model may see, in JSON")
	c.Flags().Var((*cli.Words)(&scopes), "scopes", "with --model: mark these kinds or paths, `KIND,...`")
	return c
}

func parsePathFlag(text string) (store.Path, error) {
	if text == "" {
		return store.Path{}, nil
	}
	path, err := store.ParseTyped(text)
	if err != nil {
		return store.Path{}, fmt.Errorf("--path: %w", err)
	}
	return path, nil
}

func printLog(ctx context.Context, a *app, f store.Filter, kind, tool string, follow bool) error {
	var err error
	if f.Context, err = a.openForReading(ctx); err != nil {
		return err
	}
	show := func() error {
		for m, err := range a.log.Messages(ctx, f) {
			if err != nil {
				return err
			}
			f.After = m.Seq
			producer, _ := m.Producer.(map[string]any)
			isOfTool := tool == "" || producer["_tool"] == tool
			if !isOfTool || !isOfKind(m, kind) {
				continue
			}
			if err := printMessage(a, m); err != nil {
				return err
			}
		}
		return nil
	}
	if !follow {
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

// kindless are the types whose messages have no kind: where a kind has that name too, both are
// meant.
var kindless = []store.Type{store.TypeTool, store.TypePlan, store.TypeSystem, store.TypeText}

// isOfKind reports whether a message is of a kind, or of the type of that name; all are of none.
func isOfKind(m *store.Message, kind string) bool {
	return kind == "" || m.Kind == kind || string(m.Type) == kind
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
func printModelView(ctx context.Context, a *app, f store.Filter, kind string, names []string) error {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	scopes, err := plan.ParseScopes(list)
	if err != nil {
		return exit.Usage("--scopes" + err.Error())
	}
	if f.Context, err = a.openForReading(ctx); err != nil {
		return err
	}
	superseded, err := journal.In(a.log, f.Context).Superseded(ctx)
	if err != nil {
		return err
	}
	var messages []*store.Message
	for m, err := range a.log.Messages(ctx, f) {
		if err != nil {
			return err
		}
		if !superseded.Has(m.Seq) && isOfKind(m, kind) {
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
