package host

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/lazyregexp"
	"obelus/host/hook"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
	"obelus/host/schedule"
)

// Schedule is a plan that a server runs again and again, under serve.schedules in obelus.lua.
type Schedule struct {
	Name  string
	Plan  string // its file
	Cron  string // the expression of When
	Zone  string // the zone of When; empty for UTC
	When  *schedule.Schedule
	Input map[string]any // of each run, beside the due time; nil for none
	schedule.Policy
}

// InputAt returns the input of the run that is due at a time: the schedule's input with due added.
func (s Schedule) InputAt(due time.Time) map[string]any {
	input := maps.Clone(s.Input)
	if input == nil {
		input = map[string]any{}
	}
	input["due"] = due.UTC().Format(time.RFC3339)
	return input
}

// readSchedules reads the schedules by their names.
func readSchedules(s *Serving, v any) error {
	return readNamed(v, "serve.schedules", "schedules", func(name, place string, v any) error {
		if err := schedule.CheckName(name); err != nil {
			return &settingError{nil, place + ": " + err.Error()}
		}
		given, err := readSchedule(name, place, v)
		s.Schedules = append(s.Schedules, given)
		return err
	})
}

func readSchedule(name, place string, v any) (s Schedule, err error) {
	s = Schedule{Name: name, Policy: schedule.Policy{Overlap: schedule.Skip, Catchup: schedule.DefaultCatchup}}
	fields := []string{"catchup", "cron", "input", "overlap", "plan", "zone"}
	err = readTable(v, place, fields, func(field string) string { return "setting " + place + "." + field }, func(i int, v any) (err error) {
		switch fields[i] {
		case "catchup":
			s.Catchup, err = setting.Duration(v)
		case "cron":
			s.Cron, err = setting.Text(v)
		case "input":
			s.Input, err = readScheduleInput(v)
		case "overlap":
			s.Overlap, err = readOverlap(v)
		case "plan":
			s.Plan, err = readPlanName(v)
		default:
			s.Zone, err = setting.Text(v)
		}
		return err
	})
	switch {
	case err != nil:
		return s, err
	case s.Plan == "":
		return s, &settingError{nil, place + ` needs a plan: plan = "plans/report.lua"`}
	case s.Cron == "":
		return s, &settingError{nil, place + ` needs times: cron = "0 3 * * *"`}
	}
	if s.When, err = schedule.Parse(s.Cron, s.Zone); err != nil {
		field := "cron"
		if _, wrong := schedule.Parse("@daily", s.Zone); wrong != nil {
			field = "zone"
		}
		return s, &settingError{[]string{field}, place + "." + field + ": " + err.Error()}
	}
	return s, nil
}

// Reactions are plans that a server starts when another run ends or halts, under serve.on in
// obelus.lua. Each is a file, or empty.
type Reactions struct {
	Done   string // of a run that is done
	Failed string // of a run that has failed
	Held   string // of a run that waits for a person to decide
}

// readReactions reads the plans by their occasions.
func readReactions(s *Serving, v any) error {
	occasions := []string{"done", "failed", "held"}
	plans := []*string{&s.On.Done, &s.On.Failed, &s.On.Held}
	return readTable(v, "serve.on", occasions, func(name string) string { return "setting serve.on." + name }, func(i int, v any) (err error) {
		*plans[i], err = readPlanName(v)
		return err
	})
}

// Hook is an address to which other programs send requests, under serve.hooks in obelus.lua.
type Hook struct {
	Name    string
	Plan    string       // the file of the plan that a request starts; empty with To
	To      *hook.Target // the context to which a request is appended as input; nil with Plan
	Verify  string       // one of [hook.Verifications]
	Scheme  hook.Scheme  // of Verify, with what the settings say otherwise
	Secret  string       // the environment variable with the secret
	Once    string       // the header with the id of a delivery; empty for none
	Headers []string     // that are part of the input
	Raw     bool         // the text of the body is part of the input
	Replay  bool         // Once counts though the signature does not cover it
}

// HasID reports whether a header names a delivery. Where a signature does not cover it, a copy of a
// request with another id is signed too: unless Replay allows that, the body itself is the id.
func (h *Hook) HasID() bool {
	return h.Once != "" && (h.Replay || h.Verify == hook.None || h.Scheme.SignsID())
}

// readHooks reads the hooks by their names.
func readHooks(s *Serving, v any) error {
	return readNamed(v, "serve.hooks", "hooks", func(name, place string, v any) error {
		if err := hook.CheckName(name); err != nil {
			return &settingError{nil, place + ": " + err.Error()}
		}
		given, err := readHook(name, place, v)
		s.Hooks = append(s.Hooks, given)
		return err
	})
}

func readHook(name, place string, v any) (h Hook, err error) {
	h = Hook{Name: name}
	var given hook.Scheme
	var encodings [2]string
	fields := []string{"encoding", "header", "headers", "key", "once", "plan", "prefix", "raw", "replay", "secret", "signed", "time", "to", "tolerance", "verify"}
	err = readTable(v, place, fields, func(field string) string { return "setting " + place + "." + field }, func(i int, v any) (err error) {
		switch fields[i] {
		case "encoding":
			encodings[0], err = readChoice(v, "hex", "base64")
		case "header":
			given.Header, err = readHeaderName(v)
		case "headers":
			h.Headers, err = readInputHeaders(v)
		case "key":
			encodings[1], err = readChoice(v, "text", "base64")
		case "once":
			h.Once, err = readHeaderName(v)
		case "plan":
			h.Plan, err = readPlanName(v)
		case "prefix":
			given.Prefix, err = setting.Text(v)
		case "raw":
			h.Raw, err = readBool(v)
		case "replay":
			h.Replay, err = readBool(v)
		case "secret":
			h.Secret, err = readSecretName(v)
		case "signed":
			given.Signed, err = setting.Text(v)
		case "time":
			if text, _ := v.(string); len(text) > 1 && strings.HasSuffix(text, "=") {
				given.Time = text
				return nil
			}
			given.Time, err = readHeaderName(v)
		case "to":
			h.To, err = readTarget(v)
		case "tolerance":
			given.Tolerance, err = setting.PositiveDuration(v)
		default:
			h.Verify, err = readChoice(v, hook.Verifications()...)
		}
		return err
	})
	if err != nil {
		return h, err
	}
	if wrong := h.check(given, encodings); wrong != "" {
		return h, &settingError{nil, place + " " + wrong}
	}
	if err := h.setScheme(given, encodings); err != nil {
		return h, &settingError{nil, place + " " + err.Error()}
	}
	return h, nil
}

// setScheme makes the scheme of a hook of the one that verify names and of what is said beside it.
func (h *Hook) setScheme(given hook.Scheme, encodings [2]string) error {
	s, ok := hook.SchemeOf(h.Verify)
	if !ok {
		return nil
	}
	s.Header, s.Prefix, s.Signed = cmp.Or(given.Header, s.Header), cmp.Or(given.Prefix, s.Prefix), cmp.Or(given.Signed, s.Signed)
	s.Time, s.Tolerance = cmp.Or(given.Time, s.Time), cmp.Or(given.Tolerance, hook.DefaultTolerance)
	s.ID = cmp.Or(h.Once, s.ID)
	if encodings[0] != "" {
		s.Base64 = encodings[0] == "base64"
	}
	if encodings[1] != "" {
		s.KeyBase64 = encodings[1] == "base64"
	}
	h.Scheme, h.Once = s, s.ID
	return s.Check()
}

// check returns an error for fields that do not go together, or "".
func (h *Hook) check(given hook.Scheme, encodings [2]string) string {
	_, signed := hook.SchemeOf(h.Verify)
	saysHow := given.Header != "" || given.Prefix != "" || given.Signed != "" || given.Time != "" || given.Tolerance != 0 || encodings != [2]string{}
	switch {
	case h.Verify == "":
		return `needs verify = "hmac-sha256", with the secret, or verify = "none", with which anyone may use it`
	case signed && h.Secret == "":
		return `needs the name of the environment variable that has the secret: secret = "GITHUB_SECRET"`
	case !signed && (h.Secret != "" || saysHow):
		return `has a secret or a header that nothing is verified by: verify = "hmac-sha256" does that`
	case h.Plan == "" && h.To == nil:
		return `needs a plan that a request starts, plan = "plans/push.lua", or a context that it is appended to, to = "order-{body.order}"`
	case h.Plan != "" && h.To != nil:
		return `has both plan and to: a request starts a plan, or is appended to a run that waits`
	}
	return ""
}

// readChoice reads one of some texts.
func readChoice(v any, all ...string) (string, error) {
	text, _ := v.(string)
	if !slices.Contains(all, text) {
		quoted := make([]string, len(all))
		for i, one := range all {
			quoted[i] = strconv.Quote(one)
		}
		last := len(quoted) - 1
		return "", fmt.Errorf("%w%s", setting.WrongType(strings.Join(quoted[:last], ", ")+" or "+quoted[last], v), luaerr.DidYouMean(text, all))
	}
	return text, nil
}

var (
	headerName   = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	variableName = lazyregexp.New(`^[A-Z_][A-Z0-9_]*$`)
)

func readHeaderName(v any) (string, error) {
	name, err := setting.Text(v)
	if err == nil && !headerName().MatchString(name) {
		err = setting.WrongType("the name of a header", v)
	}
	return name, err
}

// readInputHeaders reads the headers that are part of the input. What enters the log stays there,
// so those with secrets are refused.
func readInputHeaders(v any) ([]string, error) {
	names, err := setting.Texts(v)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !headerName().MatchString(name) {
			return nil, fmt.Errorf("must be names of headers, not %q", name)
		}
		if secretName().MatchString(name) || strings.EqualFold(name, "cookie") {
			return nil, fmt.Errorf("must not have %s: it may be a secret, and what enters the log stays there", name)
		}
	}
	return names, nil
}

// readSecretName reads the name of a variable. Its error does not repeat the text, which may be the
// secret itself.
func readSecretName(v any) (string, error) {
	name, ok := v.(string)
	if !ok {
		return "", setting.WrongType("the name of the environment variable that has the secret", v)
	}
	if !variableName().MatchString(name) {
		return "", fmt.Errorf(`must be the name of the environment variable that has the secret, such as "GITHUB_SECRET": a secret does not belong into this file`)
	}
	return name, nil
}

func readTarget(v any) (*hook.Target, error) {
	text, err := setting.Text(v)
	if err != nil {
		return nil, err
	}
	target, err := hook.ParseTarget(text)
	if err != nil {
		return nil, fmt.Errorf("is wrong: %w", err)
	}
	return target, nil
}

// readScheduleInput reads the input of a schedule, in which due is the server's.
func readScheduleInput(v any) (map[string]any, error) {
	input, ok := v.(map[string]any)
	if !ok {
		return nil, setting.WrongType("a table of values by name", v)
	}
	if _, ok := input["due"]; ok {
		return nil, fmt.Errorf("must not have due: the server sets it to the time at which the run is due")
	}
	return input, nil
}

func readOverlap(v any) (schedule.Overlap, error) {
	text, err := readChoice(v, schedule.Overlaps()...)
	return schedule.Overlap(text), err
}

// readPlanName reads the file of a plan that a server starts.
func readPlanName(v any) (string, error) {
	name, err := setting.Text(v)
	ext := path.Ext(name)
	if err == nil && (!strings.HasPrefix(name, "plans/") || path.Clean(name) != name || ext != ".lua" && ext != ".json") {
		err = setting.WrongType(`a file below plans/, such as "plans/report.lua"`, v)
	}
	return name, err
}

// readNamed reads a table of tables by names that the project chooses. what names them in errors.
func readNamed(v any, place, what string, read func(name, place string, v any) error) error {
	given, ok := v.(map[string]any)
	if !ok {
		return setting.WrongType("a table of "+what+" by name", v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := place + "." + name
		err := read(name, at, given[name])
		inner, ok := err.(*settingError)
		if err != nil && !ok {
			inner = &settingError{nil, at + " " + err.Error()}
		}
		if err != nil {
			return &settingError{append([]string{name}, inner.keys...), inner.message}
		}
	}
	return nil
}

// SettingLine returns the line of obelus.lua to which the names of nested settings lead, as far as
// they do, and 1 without such a file.
func (g *Generation) SettingLine(names ...string) int {
	sc := g.project.Scripts[SettingsFile]
	if sc == nil {
		return 1
	}
	return keyLine(sc, names)
}
