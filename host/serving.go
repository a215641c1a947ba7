package host

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
	"obelus/host/model"
	"obelus/host/trace"
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
	OTLP     trace.Config  // the collector that runs are sent to as they end
	Runs     int           // concurrent runs
	Timeout  time.Duration // of one run

	Hooks     []Hook // sorted by name
	On        Reactions
	Schedules []Schedule // sorted by name
	Tokens    []Token    // sorted by name
}

// fixed returns the settings that a running server can't take over.
func (s Serving) fixed() Serving {
	s.Hooks, s.On, s.Schedules, s.Tokens = nil, Reactions{}, nil, nil
	return s
}

var servingFields = []struct {
	name string
	read func(s *Serving, v any) error
}{
	{"addr", func(s *Serving, v any) (err error) { s.Addr, err = setting.Text(v); return err }},
	{"answers", func(s *Serving, v any) (err error) { s.Answers, err = setting.Size(v); return err }},
	{"bodies", func(s *Serving, v any) (err error) { s.Bodies, err = setting.Size(v); return err }},
	{"body", func(s *Serving, v any) (err error) { s.Body, err = setting.Size(v); return err }},
	{"hooks", readHooks},
	{"on", readReactions},
	{"otlp", func(s *Serving, v any) (err error) { s.OTLP, err = readOTLP(v); return err }},
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
	{"schedules", readSchedules},
	{"timeout", func(s *Serving, v any) (err error) { s.Timeout, err = setting.PositiveDuration(v); return err }},
	{"tokens", readTokens},
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

// readOTLP reads where traces go: an address, or a table.
func readOTLP(v any) (c trace.Config, err error) {
	if text, ok := v.(string); ok {
		c.URL = text
	} else if _, ok := v.(map[string]any); !ok {
		return c, setting.WrongType("the address of a collector, or a table", v)
	} else {
		names := []string{"content", "headers", "url"}
		err = readTable(v, "serve.otlp", names, func(name string) string { return "setting serve.otlp." + name }, func(i int, v any) (err error) {
			switch names[i] {
			case "content":
				c.Content, err = readBool(v)
			case "headers":
				var headers []model.Header
				headers, err = readHeaderTable(v)
				for _, h := range headers {
					c.Headers = append(c.Headers, trace.Header(h))
				}
			default:
				c.URL, err = setting.Text(v)
			}
			return err
		})
	}
	if err == nil {
		if wrong := c.Check(); wrong != nil {
			err = fmt.Errorf("%q %w", c.URL, wrong)
		}
	}
	return c, err
}

// TraceOptions returns how traces of runs are made, with or without their content.
func (s Settings) TraceOptions(content bool) trace.Options {
	models := map[string]trace.ModelInfo{}
	for _, c := range s.Models {
		models[c.Name] = trace.ModelInfo{Provider: c.Provider, Model: c.Model}
	}
	return trace.Options{Models: models, Content: content}
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
			if inner, ok := err.(*settingError); ok && strings.Contains(inner.message, table+"."+name) { // of a table in it
				return &settingError{append([]string{name}, inner.keys...), inner.message}
			}
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
		{"serve", !reflect.DeepEqual(s.Serve.fixed(), next.Serve.fixed())},
		{"synchronous", s.Synchronous != next.Synchronous},
	} {
		if f.changed {
			names = append(names, f.name)
		}
	}
	return names
}
