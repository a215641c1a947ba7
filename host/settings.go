package host

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host/internal/budget"
	"obelus/host/internal/limits"
	"obelus/host/internal/logkeeper"
	"obelus/host/internal/luac"
	"obelus/host/internal/luaerr"
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

func readLimits(s *Settings, v any) error {
	var names []string
	for _, f := range limits.Fields {
		names = append(names, f.Name)
	}
	return readTable(v, "limits", names, func(name string) string { return "limit " + strconv.Quote(name) }, func(i int, v any) error {
		read := setting.Size
		switch names[i] {
		case "depth":
			read = setting.Depth
		case "instructions":
			read = setting.Positive
		}
		n, err := read(v)
		if err == nil {
			*limits.Fields[i].Of(&s.Limits) = n
		}
		return err
	})
}

func readKeep(s *Settings, v any) error {
	var names []string
	for _, status := range keep.Statuses() {
		names = append(names, string(status))
	}
	return readTable(v, "keep", names, func(name string) string { return "status keep." + name }, func(i int, v any) error {
		d, err := setting.PositiveDuration(v)
		if err == nil {
			if s.Keep == nil {
				s.Keep = keep.Times{}
			}
			s.Keep[keep.Statuses()[i]] = d
		}
		return err
	})
}

// Settings is the table that obelus.lua returns. A zero means that the file does not say; the user
// of a setting has its default, and a flag of the command wins.
type Settings struct {
	DB          string        // path of the log, below the project; empty for .obelus/log.db
	Parallel    int           // concurrent calls; 0 for 8
	Timeout     time.Duration // of an activity without its own; 0 for 30s
	Drain       time.Duration // for calls that outlive a run; 0 for 5s, negative for none
	Ticks       int           // of one run; 0 for 100
	Limits      Limits        // of scripts
	Synchronous string        // of SQLite: "full" or "normal"; empty for full
	Allow       luastd.Grants // without Root
	Asked       bool          // an activity gets only the permissions that it asks for, other scripts none
	Approve     plan.Policy   // calls that are held for a person
	// Long-running expressions that are evaluated at once in the process, as of Open; 0 for one a
	// processor.
	Expressions int
	Isolate     bool    // activities run in processes of their own
	Serve       Serving // for a server only

	// Keep says for how long a server keeps contexts, by the status of their run; those that it does
	// not name are kept for ever.
	Keep keep.Times

	Model  string         // name of the default one of Models; empty for none
	Models []model.Config // those of the setting models, sorted by name; then one that Model alone describes
	Budget plan.Budget    // of one run with its delegates, for models

	Log      store.LogLevel // the least level that is shown; 0 for info
	KeepLogs int64          // bytes that are kept of the lines of a call; 0 for 256 KB, negative for none

	IgnoreFormats bool // format in a schema is only a note
}

// Runner returns an engine over a log that runs as these settings say.
func (s Settings) Runner(log store.Log, registry *plan.Registry) *engine.Runner {
	most := limits.WithDefaults(s.Limits).Process
	r := &engine.Runner{
		Log: log, Registry: registry, Parallel: s.Parallel, Result: s.Limits.Result, Ticks: s.Ticks, Drain: s.Drain, Approve: s.Approve, Budget: s.Budget,
		Acquire: func(ctx context.Context) (func(), bool) { return budget.Admit(ctx, most) },
	}
	if s.KeepLogs >= 0 {
		r.Logs = logkeeper.New(log, cmp.Or(s.KeepLogs, logkeeper.DefaultKeep))
	}
	return r
}

// settingFuncs reads each setting, in sorted order.
var settingFuncs = []struct {
	name string
	read func(s *Settings, v any) error
}{
	{"allow", readAllow},
	{"approve", readApprove},
	{"budget", readBudget},
	{"db", func(s *Settings, v any) (err error) { s.DB, err = setting.Text(v); return err }},
	{"drain", readDrain},
	{"expressions", func(s *Settings, v any) (err error) { s.Expressions, err = setting.Positive(v); return err }},
	{"formats", readFormats},
	{"grants", readGrantsSetting},
	{"isolate", readIsolate},
	{"keep", readKeep},
	{"limits", readLimits},
	{"log", readLog},
	{"logs", readLogs},
	{"model", readModel},
	{"models", readModels},
	{"parallel", func(s *Settings, v any) (err error) { s.Parallel, err = setting.Positive(v); return err }},
	{"serve", readServe},
	{"synchronous", readSynchronous},
	{"ticks", func(s *Settings, v any) (err error) { s.Ticks, err = setting.Positive(v); return err }},
	{"timeout", func(s *Settings, v any) (err error) { s.Timeout, err = setting.PositiveDuration(v); return err }},
}

// settingError is the error of a setting. The keys lead to it in the file.
type settingError struct {
	keys    []string
	message string
}

func (e *settingError) Error() string { return e.message }

// readSettings reads all settings and returns every error.
func readSettings(v any) (s Settings, errs []*settingError) {
	given, ok := v.(map[string]any)
	if !ok && v != nil { // an empty file marks a project too
		return s, []*settingError{{nil, "obelus.lua must return a table of settings by name, not " + setting.TypeName(v)}}
	}
	var names []string
	for _, f := range settingFuncs {
		names = append(names, f.name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.Index(names, name)
		if i < 0 {
			errs = append(errs, &settingError{[]string{name}, "unknown setting " + strconv.Quote(name) + luaerr.DidYouMean(name, names)})
			continue
		}
		if err := settingFuncs[i].read(&s, given[name]); err != nil {
			inner, ok := err.(*settingError)
			if !ok {
				inner = &settingError{nil, name + " " + err.Error()}
			}
			errs = append(errs, &settingError{slices.Concat([]string{name}, inner.keys), inner.message})
		}
	}
	return s, errs
}

func readApprove(s *Settings, v any) (err error) {
	words, err := setting.Texts(v)
	if text, ok := v.(string); ok {
		words, err = []string{text}, nil
	}
	if err == nil && len(words) > 0 {
		if s.Approve, err = plan.ParsePolicy(strings.Join(words, ",")); err != nil {
			return &settingError{nil, "approve: " + err.Error()}
		}
	}
	if err != nil {
		return setting.WrongType(`"never", "always", "planned", "scopes" or a list of tools`, v)
	}
	return nil
}

func readFormats(s *Settings, v any) error {
	formats, ok := v.(bool)
	if !ok {
		return setting.WrongType("true or false", v)
	}
	s.IgnoreFormats = !formats
	return nil
}

func readIsolate(s *Settings, v any) error {
	switch v {
	case false, "none":
	case "process":
		s.Isolate = true
	default:
		return setting.WrongType(`"process" or false`, v)
	}
	return nil
}

func readLog(s *Settings, v any) error {
	name, _ := v.(string)
	var ok bool
	if s.Log, ok = store.ParseLogLevel(name); !ok {
		return setting.WrongType(`"debug", "info", "warn" or "error"`, v)
	}
	return nil
}

func readLogs(s *Settings, v any) error {
	return readTable(v, "logs", []string{"keep"}, func(name string) string { return "setting logs." + name }, func(_ int, v any) error {
		if v == "0" || v == json.Number("0") {
			s.KeepLogs = -1
			return nil
		}
		n, err := setting.Size(v)
		if s.KeepLogs = int64(n); err != nil {
			return setting.WrongType(`a size, such as "256KB", or 0 to keep nothing`, v)
		}
		return nil
	})
}

func readDrain(s *Settings, v any) (err error) {
	if s.Drain, err = setting.Duration(v); err == nil && s.Drain == 0 {
		s.Drain = -1 // explicitly none
	}
	return err
}

func readSynchronous(s *Settings, v any) error {
	text, _ := v.(string)
	if s.Synchronous = strings.ToLower(text); s.Synchronous != "full" && s.Synchronous != "normal" {
		return setting.WrongType(`"full" or "normal"`, v)
	}
	return nil
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
