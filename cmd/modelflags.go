package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/model"
)

// modelFlags say which models are asked, what they may use, and what answers in their place.
type modelFlags struct {
	model    string
	budget   string
	stream   bool
	cassette string
	record   bool

	limits plan.Budget // that budget names
	tape   *model.Cassette
}

// register adds the flags of commands that ask models.
func (f *modelFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "the default model: a `NAME` of the setting models, or one like openai/gpt-5-mini")
	c.Flags().StringVar(&f.budget, "budget", "", "what models may use in a run: `USD`, or tokens=N, requests=N, cost=USD with commas between them")
}

// registerRun adds the flags of commands that run one plan.
func (f *modelFlags) registerRun(c *cobra.Command) {
	f.register(c)
	c.Flags().BoolVar(&f.stream, "stream", false, "show what models write as they write it")
	c.Flags().StringVar(&f.cassette, "cassette", "", "take the answers of models from a `FILE`, in place of asking them")
	c.Flags().BoolVar(&f.record, "record", false, "with --cassette: ask for what is not in the file, and record it there")
}

// apply has a project loaded as the flags say.
func (f *modelFlags) apply(config *host.Config) error {
	config.UseModel = f.model
	if err := f.parseBudget(); err != nil {
		return err
	}
	config.Budget = f.limits
	switch {
	case f.record && f.cassette == "":
		return exit.Usage("--record goes with --cassette: it names the file that answers are recorded in")
	case f.cassette == "":
		return nil
	}
	if _, err := os.Stat(f.cassette); err != nil && !f.record {
		return exit.Usagef("--cassette %s: there is no such file (--record makes it)", f.cassette)
	}
	var err error
	if f.tape, err = model.LoadCassette(f.cassette); err != nil {
		return err
	}
	f.tape.How = "--record beside --cassette"
	recording := model.ReplayOnly
	if f.record {
		recording = model.RecordMissing
	}
	config.Asker = func(_ model.Config, client model.Asker) model.Asker { return f.tape.Asker(client, recording) }
	return nil
}

// parseBudget reads --budget.
func (f *modelFlags) parseBudget() error {
	if f.budget == "" {
		return nil
	}
	wrong := exit.Usagef("--budget %s: it is an amount in US dollars, such as 0.50, or tokens=N, requests=N, cost=USD with commas between them", f.budget)
	for _, part := range strings.Split(f.budget, ",") {
		name, text, named := strings.Cut(part, "=")
		if !named {
			name, text = "cost", part
		}
		var err error
		n := 0
		switch name {
		case "cost":
			f.limits.Cost, err = strconv.ParseFloat(text, 64)
			n = 1
			if !(f.limits.Cost > 0) {
				n = 0
			}
		case "tokens":
			n, err = strconv.Atoi(text)
			f.limits.Tokens = int64(n)
		case "requests":
			n, err = strconv.Atoi(text)
			f.limits.Requests = n
		default:
			return wrong
		}
		if err != nil || n <= 0 {
			return wrong
		}
	}
	return nil
}

// save writes the cassette, if answers were recorded.
func (f *modelFlags) save() error {
	if f.tape == nil || !f.record {
		return nil
	}
	return f.tape.Save()
}

// watch has the runner show what models write.
func (f *modelFlags) watch(a *app, r *engine.Runner) {
	if !f.stream {
		return
	}
	var mu sync.Mutex
	last := ""
	r.Watch = func(context, call, text string) {
		mu.Lock()
		defer mu.Unlock()
		if a.json {
			_ = a.term.NDJSON(map[string]any{"event": "model", "context": context, "call": call, "delta": text})
			return
		}
		if at := context + "/" + call; at != last {
			if last != "" {
				_, _ = a.term.Write([]byte("\n"))
			}
			_, _ = a.term.Write([]byte("· " + call + " "))
			last = at
		}
		_, _ = a.term.Write([]byte(text))
	}
}

// reportSpending prints what models used in the run that a command ran.
func reportSpending(ctx context.Context, a *app, name string) error {
	if name == "" || a.host == nil || !a.host.Generation().Registry().HasModel() {
		return nil
	}
	in := journal.In(a.log, name)
	last, err := in.LastRun(ctx)
	if err != nil || last.Tick == 0 {
		return err
	}
	spent, err := journal.SpentOn(ctx, in, last.Event.First)
	if err == nil && spent.Requests > 0 {
		a.term.Infof("%s", describeUsage(spent))
	}
	return err
}

// describeUsage is what models used, in words: "3 requests, 4,120 + 310 tokens, 0.017 USD".
func describeUsage(u plan.Usage) string {
	text := fmt.Sprintf("%s, %s + %s tokens", human.Count(u.Requests, "request"), human.Thousands(u.Input), human.Thousands(u.Output))
	if u.Estimated {
		text += " (estimated)"
	}
	if u.Cost != nil {
		text += fmt.Sprintf(", %.4g USD", *u.Cost)
	}
	return text
}

var errNoModels = errors.New("no models are set: obelus.lua names them, see obelus help models")
