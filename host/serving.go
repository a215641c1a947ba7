package host

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"obelus/host/internal/setting"
	"obelus/host/trace"
)

// Serving has the settings of a server, under "serve" in obelus.lua. A zero means that the file
// does not say; the server has the defaults. Lists are sorted by name, and sizes are in bytes.
type Serving struct {
	Addr      string        `json:"addr" jsonschema:"where it listens (default \"127.0.0.1:7331\")"`
	Answers   int           `json:"answers" kind:"size" jsonschema:"what large answers take together that clients have not read yet, and small ones again; more wait or are refused, 429 (default \"64MB\")"`
	Bodies    int           `json:"bodies" kind:"size" jsonschema:"what requests and all that is made of them take together; more are refused, 429 (default \"512MB\")"`
	Body      int           `json:"body" kind:"size" jsonschema:"size of a request (default \"8MB\")"`
	Hooks     []Hook        `json:"hooks" jsonschema:"addresses for requests of other programs, see HOOKS (default: none)"`
	On        Reactions     `json:"on" jsonschema:"plans for the ends of runs, see ON (default: none)"`
	OTLP      trace.Config  `json:"otlp" jsonschema:"the collector that runs are sent to as traces when they end or halt: \"http://127.0.0.1:4318\", or { url = \"https://…\", content = true, headers = { [\"api-key\"] = { env = \"NAME\" } } }, where content adds arguments, results and the texts of errors (default: none)"`
	Queue     int           `json:"queue" jsonschema:"how many runs may wait for their turn (default 256)"`
	NoResume  bool          `json:"resume" kind:"not" jsonschema:"false leaves alone what a crash left (default true)"`
	Runs      int           `json:"runs" jsonschema:"how many runs go on at once (default 64)"`
	Schedules []Schedule    `json:"schedules" jsonschema:"plans that run again and again, see SCHEDULES (default: none)"`
	Timeout   time.Duration `json:"timeout" jsonschema:"after which a run is cancelled (default \"1h\")"`
	Tokens    []Token       `json:"tokens" jsonschema:"that requests bring, each with a role, see TOKENS (default: none)"`
}

// check returns an error for a collector that is none, and for tokens in one variable.
func (s *Serving) check() error {
	if c := s.OTLP; !reflect.DeepEqual(c, trace.Config{}) {
		if err := c.Check(); err != nil {
			return setting.At(setting.Errorf("%q %s", c.URL, err), "otlp")
		}
	}
	for i, t := range s.Tokens {
		before := s.Tokens[:i]
		if j := slices.IndexFunc(before, func(b Token) bool { return b.Env == t.Env }); j >= 0 {
			return setting.At(fmt.Errorf("%s is the variable of the token %s too: give each its own", t.Env, before[j].Name), "tokens", t.Name, "env")
		}
	}
	return nil
}

// fixed returns the settings that a running server can't take over.
func (s Serving) fixed() Serving {
	s.Hooks, s.On, s.Schedules, s.Tokens = nil, Reactions{}, nil, nil
	return s
}

// TraceOptions returns how traces of runs are made, with or without their content.
func (s Settings) TraceOptions(content bool) trace.Options {
	models := map[string]trace.ModelInfo{}
	for _, c := range s.Models {
		models[c.Name] = trace.ModelInfo{Provider: c.Provider, Model: c.Model}
	}
	return trace.Options{Models: models, Content: content}
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
