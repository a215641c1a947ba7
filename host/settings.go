package host

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host/internal/budget"
	"obelus/host/internal/limits"
	"obelus/host/internal/logkeeper"
	"obelus/host/internal/luac"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/host/keep"
	"obelus/host/model"
	"obelus/luastd"
	"obelus/store"
)

// SettingsFile marks a project and returns its settings.
const SettingsFile = limits.SettingsFile

// Limits bounds the means of scripts. Its fields give the defaults.
type Limits = limits.Limits

// Settings is the table that obelus.lua returns. The tags of its fields have their names there, and
// describe them for help and editors. A zero means that the file does not say; the user of a
// setting has its default, and a flag of the command wins. Sizes are in bytes.
type Settings struct {
	// Allow has no Root.
	Allow   luastd.Grants `json:"allow" kind:"allow" jsonschema:"what scripts may do to the world, see ALLOW (default: nothing)"`
	Approve plan.Policy   `json:"approve" kind:"approve" jsonschema:"which calls are held for a person: \"never\", \"always\", \"planned\" (those of a plan that a model made, but for its own answers), \"scopes\" (those that request scopes) or names of tools, which hold what an activity of that name runs for another tool too (default \"never\")"`
	Budget  plan.Budget   `json:"budget" kind:"budget" jsonschema:"what one run, with its delegates, may have models do: { requests = 60, tokens = 400000, cost = 0.50 }, in US dollars (default 200 requests)"`
	DB      string        `json:"db" jsonschema:"the log, a file below the project (default \".obelus/log.db\")"`
	// Drain is negative for none.
	Drain time.Duration `json:"drain" kind:"duration" zero:"-1" jsonschema:"how long running calls may go on once a run is told to stop (default \"5s\")"`
	// Expressions counts as of Open.
	Expressions   int  `json:"expressions" jsonschema:"how many that take long are evaluated at once, in all runs together (default: one for each processor)"`
	IgnoreFormats bool `json:"formats" kind:"not" jsonschema:"false makes format in schemas a note for people. Else a text must be the date, email, uri, uuid … that it says; idn-email, idn-hostname, uri-template and unknown ones are always a note (default true)"`
	// Asked is set for "asked".
	Asked   bool           `json:"grants" kind:"grants" jsonschema:"\"asked\" gives an activity what it asks for alone, and nothing to one that does not ask, to functions of plans and as files load (default \"allowed\": what does not ask has all that allow grants)"`
	Isolate bool           `json:"isolate" kind:"isolate" jsonschema:"\"process\" runs activities in processes of their own, see LIMITS (default \"none\")"`
	Keep    keep.Times     `json:"keep" jsonschema:"how long a server keeps contexts after the last append to them, by the status of their run: { done = \"30d\", failed = \"90d\", cancelled = \"30d\", none = \"52w\" }; others stay (default: all stay)"`
	Limits  Limits         `json:"limits" jsonschema:"what a script may use, see LIMITS"`
	Log     store.LogLevel `json:"log" kind:"level" jsonschema:"the least level of what run and serve show of their log, and of what scripts print (\"info\") and log: \"debug\", \"info\", \"warn\" or \"error\" (default \"info\")"`
	Logs    struct {
		// Keep is a number of bytes; 0 for 256 KB, negative for none.
		Keep int64 `json:"keep" kind:"logs" zero:"-1" jsonschema:"bytes of each call, such as \"256KB\"; 0 for nothing"`
	} `json:"logs" jsonschema:"how much is kept of what scripts print and log, for each call, the newest lines first: { keep = \"64KB\" }; 0 keeps nothing. See obelus logs (default \"256KB\")"`
	// Model is the name of one of Models; empty for none.
	Model string `json:"model" kind:"model" jsonschema:"the default model: a name of models, \"openai/gpt-5-mini\", or a table like one of models (default: none)"`
	// Models are sorted by name; behind them stands one that Model alone describes.
	Models      []model.Config `json:"models" jsonschema:"the models by name, see obelus help models"`
	Parallel    int            `json:"parallel" jsonschema:"how many calls of a run go on at once (default 8)"`
	Serve       Serving        `json:"serve" jsonschema:"of obelus serve, see SERVE"`
	Synchronous string         `json:"synchronous" kind:"synchronous" jsonschema:"\"full\": what was acknowledged survives a power cut. \"normal\" does not wait for the disk, and a power cut can take the last commits (default \"full\")"`
	Ticks       int            `json:"ticks" jsonschema:"how often a plan's function is asked in one run, and how often those of a run and its delegates are asked again in all (default 100)"`
	Timeout     time.Duration  `json:"timeout" jsonschema:"of one attempt of an activity (default \"30s\")"`
}

// Runner returns an engine over a log that runs as these settings say.
func (s Settings) Runner(log store.Log, registry *plan.Registry) *engine.Runner {
	most := limits.WithDefaults(s.Limits).Process
	r := &engine.Runner{
		Log: log, Registry: registry, Parallel: s.Parallel, Result: s.Limits.Result, Ticks: s.Ticks, Drain: s.Drain, Approve: s.Approve, Budget: s.Budget,
		Acquire: func(ctx context.Context) (func(), bool) { return budget.Admit(ctx, most) },
	}
	if s.Logs.Keep >= 0 {
		r.Logs = logkeeper.New(log, cmp.Or(s.Logs.Keep, logkeeper.DefaultKeep))
	}
	return r
}

// settingForm is the form of the settings.
var settingForm = setting.Form{Noun: "setting", Kinds: kinds, Check: checkTable, Classes: map[reflect.Type]string{
	reflect.TypeFor[Hook](): "obelus.Hook", reflect.TypeFor[model.Config](): "obelus.Model", reflect.TypeFor[Schedule](): "obelus.Schedule",
}}

// checkTable checks a table of the settings whose fields depend on each other.
func checkTable(table, of any) error {
	switch of := of.(type) {
	case *Hook:
		return of.complete()
	case *Schedule:
		return of.complete()
	case *Serving:
		return of.check()
	case *model.Config:
		return checkModel(of, table)
	}
	return nil
}

// readSettings reads a table of settings and returns every error.
func readSettings(given map[string]any) (s Settings, errs setting.Errors) {
	errs = settingForm.Decode(given, &s)
	table, ok := given["model"].(map[string]any)
	if !ok {
		return s, errs
	}
	c := model.Config{Name: defaultModel}
	if wrong := settingForm.Decode(table, &c, "model"); wrong != nil {
		return s, append(errs, wrong...)
	}
	s.Models = append(s.Models, c)
	return s, errs
}

// keyLine returns the line to which keys lead in a table of the file, as far as they do, else the
// line on which the file returns, else 1.
func keyLine(sc *sandbox.Script, keys []string) int {
	chunk, err := luac.ParseChunk(sc.File, sc.Source)
	if err != nil {
		return 1
	}
	if line := luac.FieldLine(chunk, keys...); line > 0 {
		return line
	}
	if len(chunk) > 0 {
		return max(chunk[len(chunk)-1].Line(), 1)
	}
	return 1
}
