package cmd

import (
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/host"
	"obelus/host/model"
)

// modelFlags are the flags of commands that ask models: which model, its budget, and the cassette
// that replaces it.
type modelFlags struct {
	model    string
	budget   string
	stream   bool
	cassette string
	record   bool

	tape *model.Cassette
}

// Register adds the flags of commands that ask models.
func (f *modelFlags) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "the default model: a `NAME` of the setting models, or one like openai/gpt-5-mini")
	c.Flags().StringVar(&f.budget, "budget", "", "what models may use in a run: `USD`, or tokens=N, requests=N, cost=USD with commas between them")
}

// RegisterRun adds the flags of commands that run one plan.
func (f *modelFlags) RegisterRun(c *cobra.Command) {
	f.Register(c)
	c.Flags().BoolVar(&f.stream, "stream", false, "show what models write while they write it, a call of a plan as soon as it is complete")
	c.Flags().StringVar(&f.cassette, "cassette", "", "take the answers of models from a `FILE`, in place of asking them")
	c.Flags().BoolVar(&f.record, "record", false, "with --cassette: ask for what is not in the file, and record it there")
}

// Apply has a project loaded as the flags say.
func (f *modelFlags) Apply(config *host.Config) error {
	config.UseModel = f.model
	limits, err := cli.ParseBudget(f.budget)
	if err != nil {
		return err
	}
	config.Budget = limits
	switch {
	case f.record && f.cassette == "":
		return exit.Usage("--record goes with --cassette: it names the file that answers are recorded in")
	case f.cassette == "":
		return nil
	}
	if _, err := os.Stat(f.cassette); err != nil && !f.record {
		return exit.Usagef("--cassette %s: there is no such file (--record makes it)", f.cassette)
	}
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

// Save writes the cassette, if answers were recorded.
func (f *modelFlags) Save() error {
	if f.tape == nil || !f.record {
		return nil
	}
	return f.tape.Save()
}

// Watch has the runner show what models write.
func (f *modelFlags) Watch(t *term.Terminal, json bool, r *engine.Runner) {
	if !f.stream {
		return
	}
	type place struct{ context, call string }
	var mu sync.Mutex
	writing := map[place]*view.Written{}
	r.Watch = func(context, call, text string) {
		if json {
			_ = t.NDJSON(map[string]any{"event": "model", "context": context, "call": call, "delta": text})
			return
		}
		writer := call
		if !strings.Contains(call, ".") { // the plan of a tick
			writer = "plan " + call
		}
		mu.Lock()
		defer mu.Unlock()
		at := place{context, call}
		if writing[at] == nil {
			writing[at] = &view.Written{}
		}
		for _, line := range writing[at].Add(text) {
			t.Infof("· %s %s", writer, line)
		}
	}
}
