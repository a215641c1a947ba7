package host

import (
	"cmp"
	"maps"
	"reflect"
	"time"

	"obelus/host/hook"
	"obelus/host/internal/setting"
	"obelus/host/schedule"
)

// Schedule is a plan that a server runs again and again, under serve.schedules in obelus.lua.
type Schedule struct {
	Name string `kind:"schedule"`
	Plan string `json:"plan" kind:"plan file" required:"a plan: plan = \"plans/report.lua\"" jsonschema:"its file, below plans/"`
	Cron string `json:"cron" required:"times: cron = \"0 3 * * *\"" jsonschema:"when: minute, hour, day of the month, month and day of the week, as in \"0 3 * * *\" or \"*/15 8-17 * * mon-fri\", or @hourly, @daily, @weekly, @monthly, @yearly. Where the day of the month or of the week has a *, a day must be in both: \"0 9 */2 * mon\" is Mondays that are odd days; else in either: \"0 9 1 * mon\" is Mondays and the first of the month"`
	Zone string `json:"zone" jsonschema:"whose clock counts, such as \"Europe/Berlin\" (default \"UTC\")"`
	// Input is nil for none.
	Input map[string]any `json:"input" kind:"input" jsonschema:"of each run, a table; due is added, the time at which the run is due"`
	schedule.Policy

	When *schedule.Schedule // of Cron and Zone
}

// complete sets When, and the defaults of the policy.
func (s *Schedule) complete() (err error) {
	s.Overlap = cmp.Or(s.Overlap, schedule.Skip)
	s.Catchup = max(cmp.Or(s.Catchup, schedule.DefaultCatchup), 0)
	if s.When, err = schedule.Parse(s.Cron, s.Zone); err == nil {
		return nil
	}
	if _, wrong := schedule.Parse("@daily", s.Zone); wrong != nil {
		return setting.At(err, "zone")
	}
	return setting.At(err, "cron")
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

// Reactions are plans that a server starts when another run ends or halts, under serve.on in
// obelus.lua. Each is a file, or empty.
type Reactions struct {
	Done   string `json:"done" kind:"plan file" jsonschema:"when a run is done"`
	Failed string `json:"failed" kind:"plan file" jsonschema:"when a run has failed"`
	Held   string `json:"held" kind:"plan file" jsonschema:"when a run waits for a person to decide about calls or to release a plan"`
}

// Hook is an address to which other programs send requests, under serve.hooks in obelus.lua. It
// has either a Plan or To.
type Hook struct {
	Name    string       `kind:"hook"`
	Plan    string       `json:"plan" kind:"plan file" jsonschema:"the file of the plan that a request starts, below plans/"`
	To      *hook.Target `json:"to" kind:"target" jsonschema:"instead of a plan: the context of a run that waits, to which the request is appended as input: \"order-{body.order}\""`
	Verify  string       `json:"verify" kind:"verification" required:"verify = \"hmac-sha256\", with the secret, or verify = \"none\", with which anyone may use it" jsonschema:"how a sender shows who it is, see below; \"none\": anyone may send one"`
	Secret  string       `json:"secret" kind:"secret" jsonschema:"the environment variable that has the secret: \"GITHUB_SECRET\". No script may read it"`
	Headers []string     `json:"headers" kind:"headers" jsonschema:"those that are part of the input (default: none)"`
	Raw     bool         `json:"raw" jsonschema:"true adds the text of the body to the input, for plans that verify it by themselves (default false)"`
	Once    string       `json:"once" kind:"header" jsonschema:"the header with the id of a delivery: \"X-GitHub-Delivery\". It counts with verify = \"none\", replay = true, or where the signature covers it"`
	Replay  bool         `json:"replay" jsonschema:"true lets a body in again under another id, which no signature covers (default false)"`

	// Scheme is that of Verify, with what the settings say otherwise.
	hook.Scheme
}

// HasID reports whether a header names a delivery. Where a signature does not cover it, a copy of a
// request with another id is signed too: unless Replay allows that, the body itself is the id.
func (h *Hook) HasID() bool {
	return h.Once != "" && (h.Replay || h.Verify == hook.None || h.Scheme.SignsID())
}

// complete returns an error for fields that do not go together, and makes the scheme of the one
// that Verify names and of what is said beside it.
func (h *Hook) complete() error {
	known, signed := hook.SchemeOf(h.Verify)
	switch {
	case signed && h.Secret == "":
		return setting.Errorf(`needs the name of the environment variable that has the secret: secret = "GITHUB_SECRET"`)
	case !signed && (h.Secret != "" || !reflect.ValueOf(h.Scheme).IsZero()):
		return setting.Errorf(`has a secret or a header that nothing is verified by: verify = "hmac-sha256" does that`)
	case h.Plan == "" && h.To == nil:
		return setting.Errorf(`needs a plan that a request starts, plan = "plans/push.lua", or a context that it is appended to, to = "order-{body.order}"`)
	case h.Plan != "" && h.To != nil:
		return setting.Errorf(`has both plan and to: a request starts a plan, or is appended to a run that waits`)
	case !signed:
		return nil
	}
	h.Scheme = h.Scheme.Or(known)
	h.Scheme.ID = cmp.Or(h.Once, known.ID)
	h.Once = h.Scheme.ID
	if err := h.Scheme.Check(); err != nil {
		return setting.Errorf("%s", err)
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
