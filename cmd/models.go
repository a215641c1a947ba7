package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/engine/numeral"
	"obelus/engine/plan"
	"obelus/host/model"
)

func modelsCommand(a *app) *cobra.Command {
	check := false
	c := &cobra.Command{
		Use:   "models",
		Short: "list the models of the project, and try them",
		Long: `List the models that obelus.lua names, the default one first; how it names them is
in obelus help models. --check asks each of them for a small answer under a schema,
which costs a few tokens, and prints how the provider was held to it, how long it
took and what it used.

Exit status: 0, or 1 if a model did not answer.`,
		Example: `  obelus models
  obelus models --check --model ollama/qwen3:8b`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listModels(c.Context(), a, check) },
	}
	c.Flags().BoolVar(&check, "check", false, "ask each model a question")
	a.models.Register(c)
	return c
}

func listModels(ctx context.Context, a *app, check bool) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	settings := a.host.Generation().Settings()
	if len(settings.Models) == 0 {
		return exit.Usage(errNoModels.Error())
	}
	header := []string{"MODEL", "PROVIDER", "ASKS FOR", "URL", "KEY", "WINDOW"}
	if check {
		header = append(header, "ANSWER", "MODE", "TIME", "TOKENS")
	}
	models := settings.Models
	if i := slices.IndexFunc(models, func(c model.Config) bool { return c.Name == settings.Model }); i > 0 {
		models = slices.Concat(models[i:i+1], models[:i], models[i+1:])
	}
	var rows [][]string
	var failed error
	for _, c := range models {
		full := c.WithDefaults()
		row := []string{full.Name, cmp.Or(full.Provider, "-"), full.Model, full.URL, keyState(full), windowText(full)}
		if full.Name == settings.Model {
			row[0] += " (default)"
		}
		object := map[string]any{"name": full.Name, "provider": full.Provider, "model": full.Model, "url": full.URL, "default": full.Name == settings.Model, "window": full.Window}
		if check {
			tried := tryModel(ctx, a, full.Name)
			if ctx.Err() != nil {
				return exit.Interrupted
			}
			if tried.err != nil {
				failed = exit.Failed
				name := fmt.Sprintf("model %q: ", full.Name)
				a.term.Error(errors.New(name + strings.TrimPrefix(tried.err.Error(), name)))
			}
			if server := serverWindow(ctx, a, full.Name); server > 0 {
				object["server_window"] = server
				if full.Window > server {
					a.term.Noticef("model %q: window = %d, and its server takes %d and cuts the rest in silence: give the model a larger window there (PARAMETER num_ctx %d in its Modelfile)", full.Name, full.Window, server, full.Window)
				}
				if full.Window == 0 {
					row[5] = numeral.Thousands(int64(server))
				}
			}
			row = append(row, tried.cells()...)
			tried.addTo(object)
		}
		if a.json {
			if err := a.term.NDJSON(object); err != nil {
				return err
			}
		}
		rows = append(rows, row)
	}
	if !a.json {
		if err := a.term.Table(header, rows); err != nil {
			return err
		}
	}
	return failed
}

// keyState returns the name of the variable with a model's key, and notes if it is not set.
func keyState(c model.Config) string {
	if c.Key == "" {
		return "-"
	}
	if value, ok := os.LookupEnv(c.Key); !ok || value == "" {
		return c.Key + " (not set)"
	}
	return c.Key
}

// windowText returns the number of tokens that a model takes at once, as a text.
func windowText(c model.Config) string {
	if c.Window == 0 {
		return "-"
	}
	return numeral.Thousands(int64(c.Window))
}

// serverWindow returns the window that the server of a model says; 0 where it says none.
func serverWindow(ctx context.Context, a *app, name string) int {
	if m, ok := a.host.Generation().Registry().Models[name].(*model.Model); ok {
		return m.ServerWindow(ctx)
	}
	return 0
}

// triedModel is the outcome of a question to a model.
type triedModel struct {
	took time.Duration
	used *plan.Usage
	err  error
}

// tryModel asks a model for {"ok": true}.
func tryModel(ctx context.Context, a *app, name string) (tried triedModel) {
	asked, ok := a.host.Generation().Registry().Models[name].(*model.Model)
	if !ok {
		tried.err = errors.New("it is none of the settings")
		return tried
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"const": true}}, "required": []any{"ok"}}
	meter := plan.NewMeter(nil, nil)
	ctx, cancel := context.WithTimeout(ctx, asked.Timeout())
	defer cancel()
	began := time.Now()
	_, tried.err = asked.Ask(ctx, model.AskInput{Prompt: `Answer with {"ok": true}.`, Schema: schema}, meter)
	tried.took, tried.used = time.Since(began), meter.Used()
	return tried
}

func (t triedModel) cells() []string {
	cells := []string{"ok", "-", human.Duration(t.took), "-"}
	if t.err != nil {
		cells[0] = "failed"
	}
	if t.used != nil {
		cells[1], cells[3] = cmp.Or(t.used.Mode, "-"), fmt.Sprintf("%s + %s", numeral.Thousands(t.used.Input), numeral.Thousands(t.used.Output))
	}
	return cells
}

// addTo adds the outcome to a JSON object.
func (t triedModel) addTo(object map[string]any) {
	object["ok"], object["ms"] = t.err == nil, t.took.Milliseconds()
	if t.err != nil {
		object["error"] = t.err.Error()
	}
	if t.used != nil {
		object["mode"], object["input"], object["output"], object["requests"] = t.used.Mode, t.used.Input, t.used.Output, t.used.Requests
	}
}

var errNoModels = errors.New("no models are set: obelus.lua names them, see obelus help models")
