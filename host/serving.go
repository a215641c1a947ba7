package host

import (
	"maps"
	"slices"
	"time"

	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
)

// Serving has the settings of a server, under "serve" in obelus.lua. A zero means that the file
// does not say; the server has the defaults.
type Serving struct {
	Addr     string        // address that it listens on
	Answers  int           // bytes of large answers that are being sent, for all clients together
	Bodies   int           // bytes of request bodies and the values decoded from them, together
	Body     int           // bytes of one request
	Queue    int           // runs that wait to start
	NoResume bool          // runs left by a crash are not resumed
	Runs     int           // concurrent runs
	Timeout  time.Duration // of one run
}

var servingFields = []struct {
	name string
	read func(s *Serving, v any) error
}{
	{"addr", func(s *Serving, v any) (err error) { s.Addr, err = setting.Text(v); return err }},
	{"answers", func(s *Serving, v any) (err error) { s.Answers, err = setting.Size(v); return err }},
	{"bodies", func(s *Serving, v any) (err error) { s.Bodies, err = setting.Size(v); return err }},
	{"body", func(s *Serving, v any) (err error) { s.Body, err = setting.Size(v); return err }},
	{"queue", func(s *Serving, v any) (err error) { s.Queue, err = setting.Positive(v); return err }},
	{"resume", func(s *Serving, v any) error {
		resume, ok := v.(bool)
		if !ok {
			return setting.WrongType("true or false", v)
		}
		s.NoResume = !resume
		return nil
	}},
	{"runs", func(s *Serving, v any) (err error) { s.Runs, err = setting.Positive(v); return err }},
	{"timeout", func(s *Serving, v any) (err error) { s.Timeout, err = setting.PositiveDuration(v); return err }},
}

func readServe(s *Settings, v any) error {
	var names []string
	for _, f := range servingFields {
		names = append(names, f.name)
	}
	return readTable(v, "serve", names, func(name string) string { return "setting serve." + name }, func(i int, v any) error {
		return servingFields[i].read(&s.Serve, v)
	})
}

// readTable reads a setting that is a table of named ones, in their order; unknown returns how an
// error calls an unknown name.
func readTable(v any, table string, names []string, unknown func(name string) string, read func(i int, v any) error) error {
	given, ok := v.(map[string]any)
	if !ok {
		return setting.WrongType("a table", v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.Index(names, name)
		if i < 0 {
			return &settingError{[]string{name}, "unknown " + unknown(name) + luaerr.DidYouMean(name, names)}
		}
		if err := read(i, given[name]); err != nil {
			return &settingError{[]string{name}, table + "." + name + " " + err.Error()}
		}
	}
	return nil
}

// pending names the settings that a host which runs with s can't take over from next.
func (s Settings) pending(next Settings) []string {
	var names []string
	for _, f := range []struct {
		name    string
		changed bool
	}{
		{"db", s.DB != next.DB},
		{"expressions", s.Expressions != next.Expressions},
		{"serve", s.Serve != next.Serve},
		{"synchronous", s.Synchronous != next.Synchronous},
	} {
		if f.changed {
			names = append(names, f.name)
		}
	}
	return names
}
