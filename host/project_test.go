package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/luastd"
	"obelus/scripts"
	"obelus/store"
	"obelus/store/memory"
)

// schedules is a project with schedules, which begin in line 3.
func schedules(text string) map[string]string {
	return map[string]string{"obelus.lua": "return { serve = {\n schedules = {\n" + text + " } } }"}
}

// hooks is a project with a hook, which begins in line 2.
func hooks(text string) map[string]string {
	return map[string]string{"obelus.lua": "return { serve = { hooks = {\n" + text + " } } }"}
}

// tokens returns a project with tokens of a server.
func tokens(text string) map[string]string {
	return map[string]string{"obelus.lua": "return { serve = { tokens = {\n" + text + " } } }"}
}

func TestOpen_Errors(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"unknown setting", map[string]string{"obelus.lua": "return {\n  db = 'x',\n  paralel = 3,\n}"}, `obelus.lua:3: unknown setting "paralel" (did you mean "parallel"?)`},
		{"wrong type", map[string]string{"obelus.lua": "return {\n  parallel = 'x',\n  timeout = 'soon',\n  ticks = 0,\n  isolate = 1 }"},
			"obelus.lua:2: parallel must be a whole number above 0, not \"x\"\n" +
				"obelus.lua:3: timeout must be a duration: a number of seconds or text like \"5s\", not \"soon\"\n" +
				"obelus.lua:4: ticks must be a whole number above 0, not 0\n" +
				"obelus.lua:5: isolate must be \"process\" or false, not 1"},
		{"permission", map[string]string{"obelus.lua": "return {\n allow = {\n  reed = true } }"}, `obelus.lua:3: unknown permission allow.reed (did you mean "read"?)`},
		{"permission list", map[string]string{"obelus.lua": "return {\n allow = {\n  read = 3 } }"}, `obelus.lua:3: allow.read must be true or a list of strings, not 3`},
		{"permission pattern", map[string]string{"obelus.lua": "return { allow = { env = { 'HOME', 'AWS_*' } } }"}, `obelus.lua:1: allow.env: "AWS_*" is no variable's name: name each of them`},
		{"permission folder", map[string]string{"obelus.lua": "return { allow = { read = { '' } } }"}, `obelus.lua:1: allow.read: an empty name is no folder's: . is the project's`},
		{"permission address", map[string]string{"obelus.lua": "return {\n allow = {\n  net = { 'a b' } } }"}, `obelus.lua:3: allow.net: "a b" is not a host or host:port`},
		{"allow", map[string]string{"obelus.lua": "return { allow = 'all' }"}, `obelus.lua:1: allow must be true or a table like { read = {"data"} }, not "all"`},
		{"no policy", map[string]string{"obelus.lua": "return { approve = { 'never', 'pay' } }"}, `obelus.lua:1: approve: never stands alone: it would hold nothing, and there are others beside it`},
		{"synchronous", map[string]string{"obelus.lua": "return { synchronous = 'off' }"}, `obelus.lua:1: synchronous must be "full" or "normal", not "off"`},
		{"no time", map[string]string{"obelus.lua": "return {\n timeout = 0,\n serve = {\n  timeout = '0s' } }"},
			"obelus.lua:2: timeout must be a duration above 0, not 0\nobelus.lua:4: serve.timeout must be a duration above 0, not \"0s\""},
		{"schedule without a plan", schedules("  nightly = { cron = '@daily' } "), `obelus.lua:3: serve.schedules.nightly needs a plan: plan = "plans/report.lua"`},
		{"schedule without times", schedules("  nightly = { plan = 'plans/a.lua' } "), `obelus.lua:3: serve.schedules.nightly needs times: cron = "0 3 * * *"`},
		{"schedule of another name", schedules("  ['a.b'] = { cron = '@daily' } "), `obelus.lua:3: serve.schedules.a.b: "a.b" is no name for it: it has up to 47 letters, digits, _ and -, and begins with a letter`},
		{"schedule that is none", schedules("  nightly = '@daily'"), `obelus.lua:3: serve.schedules.nightly must be a table, not "@daily"`},
		{"schedules that are none", map[string]string{"obelus.lua": "return { serve = {\n schedules = 'x' } }"}, `obelus.lua:2: serve.schedules must be a table of schedules by name, not "x"`},
		{"unknown setting of a schedule", schedules("  nightly = {\n   corn = '@daily' } "), `obelus.lua:4: unknown setting serve.schedules.nightly.corn (did you mean "cron"?)`},
		{"cron", schedules("  nightly = { plan = 'plans/a.lua',\n   cron = '0 25 * * *' } "),
			`obelus.lua:4: serve.schedules.nightly.cron: "0 25 * * *": the hour is 0 to 23, and not "25": one value, *, a range like 1-5, a step like */2, or a list of them like 1,3`},
		{"zone", schedules("  nightly = { plan = 'plans/a.lua', cron = '@daily',\n   zone = 'Berlin' } "), `obelus.lua:4: serve.schedules.nightly.zone: there is no time zone "Berlin": it is a name like "Europe/Berlin", or "UTC"`},
		{"overlap", schedules("  nightly = {\n   overlap = 'quue' } "), `obelus.lua:4: serve.schedules.nightly.overlap must be "skip", "queue" or "all", not "quue" (did you mean "queue"?)`},
		{"catchup", schedules("  nightly = {\n   catchup = 'soon' } "), `obelus.lua:4: serve.schedules.nightly.catchup must be a duration: a number of seconds or text like "5s", not "soon"`},
		{"plan of a schedule", schedules("  nightly = {\n   plan = 'report.lua' } "), `obelus.lua:4: serve.schedules.nightly.plan must be a file below plans/, such as "plans/report.lua", not "report.lua"`},
		{"due as input of a schedule", schedules("  nightly = {\n   input = { due = 1 } } "), `obelus.lua:4: serve.schedules.nightly.input must not have due: the server sets it to the time at which the run is due`},
		{"hook without verify", hooks("push = { plan = 'plans/a.lua' }"), `obelus.lua:2: serve.hooks.push needs verify = "hmac-sha256", with the secret, or verify = "none", with which anyone may use it`},
		{"hook that is verified otherwise", hooks("push = {\n verify = 'hmac-sha255' }"), `obelus.lua:3: serve.hooks.push.verify must be "gitlab", "hmac-sha1", "hmac-sha256", "pagerduty", "shopify", "slack", "standard", "stripe", "telegram", "token", "zoom" or "none", not "hmac-sha255" (did you mean "hmac-sha256"?)`},
		{"hook in no encoding", hooks("push = {\n encoding = 'bas64' }"), `obelus.lua:3: serve.hooks.push.encoding must be "hex" or "base64", not "bas64" (did you mean "base64"?)`},
		{"hook that signs no body", hooks("push = { plan = 'plans/a.lua', secret = 'S', verify = 'slack', signed = '{time}' }"), `obelus.lua:2: serve.hooks.push signs "{time}", without {body}: anyone could send another body with it`},
		{"hook that signs nothing known", hooks("push = { plan = 'plans/a.lua', secret = 'S', verify = 'slack', signed = '{timestamp}.{body}' }"), `obelus.lua:2: serve.hooks.push signs {timestamp}, which is none of {body}, {time} and {id}`},
		{"hook that signs a time from nowhere", hooks("push = { plan = 'plans/a.lua', secret = 'S', verify = 'hmac-sha256', signed = '{time}.{body}' }"), `obelus.lua:2: serve.hooks.push signs a {time}, and does not say where it is: time = "X-Timestamp", or time = "t=" for t=… in the header of the signature`},
		{"hook with a time that is not signed", hooks("push = { plan = 'plans/a.lua', secret = 'S', verify = 'hmac-sha256', time = 'X-Time' }"), `obelus.lua:2: serve.hooks.push has a time that is not signed: signed must have {time}`},
		{"hook that signs an id from nowhere", hooks("push = { plan = 'plans/a.lua', secret = 'S', verify = 'hmac-sha256', signed = '{id}.{body}' }"), `obelus.lua:2: serve.hooks.push signs an {id}, and does not say where it is: once = "X-Delivery"`},
		{"hook with a token that signs", hooks("push = { plan = 'plans/a.lua', secret = 'S', verify = 'token', time = 't=' }"), `obelus.lua:2: serve.hooks.push has a token in its header, which signs nothing: signed and time go with a signature`},
		{"hook that verifies nothing in some way", hooks("push = { plan = 'plans/a.lua', verify = 'none', prefix = 'v1=' }"), `obelus.lua:2: serve.hooks.push has a secret or a header that nothing is verified by: verify = "hmac-sha256" does that`},
		{"hook with its tolerance", hooks("push = {\n tolerance = 0 }"), `obelus.lua:3: serve.hooks.push.tolerance must be a duration above 0, not 0`},
		{"hook without a secret", hooks("push = { plan = 'plans/a.lua', verify = 'hmac-sha256' }"), `obelus.lua:2: serve.hooks.push needs the name of the environment variable that has the secret: secret = "GITHUB_SECRET"`},
		{"hook with its secret", hooks("push = {\n secret = 'c0ffee' }"), `obelus.lua:3: serve.hooks.push.secret must be the name of the environment variable that has the secret, such as "GITHUB_SECRET": a secret does not belong into this file`},
		{"hook with a secret for nothing", hooks("push = { plan = 'plans/a.lua', verify = 'none', secret = 'S' }"), `obelus.lua:2: serve.hooks.push has a secret or a header that nothing is verified by: verify = "hmac-sha256" does that`},
		{"hook without a plan", hooks("push = { verify = 'none' }"), `obelus.lua:2: serve.hooks.push needs a plan that a request starts, plan = "plans/push.lua", or a context that it is appended to, to = "order-{body.order}"`},
		{"hook with a plan and a context", hooks("push = { verify = 'none', plan = 'plans/a.lua', to = 'x' }"), `obelus.lua:2: serve.hooks.push has both plan and to: a request starts a plan, or is appended to a run that waits`},
		{"hook to no context", hooks("push = {\n to = 'a b-{body.x}' }"), `obelus.lua:3: serve.hooks.push.to is wrong: "a b-{body.x}" can't name a context: it has letters, digits, . _ and -, and values such as {body.order}`},
		{"hook to no value", hooks("push = {\n to = 'a-{order}' }"), `obelus.lua:3: serve.hooks.push.to is wrong: "{order}" in "a-{order}" must be a value of the request, such as {body.order} or {query.order}`},
		{"hook with a header that has a secret", hooks("push = {\n headers = { 'X-Event', 'X-Gitlab-Token' } }"), `obelus.lua:3: serve.hooks.push.headers must not have X-Gitlab-Token: it may be a secret, and what enters the log stays there`},
		{"hook of another name", hooks("['a/b'] = { verify = 'none' }"), `obelus.lua:2: serve.hooks.a/b: "a/b" is no name for it: it has up to 26 letters, digits, _ and -, and begins with a letter`},
		{"unknown setting of a hook", hooks("push = {\n verfy = 'none' }"), `obelus.lua:3: unknown setting serve.hooks.push.verfy (did you mean "verify"?)`},
		{"secret of a hook that scripts may read", map[string]string{"obelus.lua": "return { allow = {\n env = { 'S' } }, serve = { hooks = { push = { plan = 'plans/a.lua', verify = 'hmac-sha256', secret = 'S' } } } }"},
			`obelus.lua:2: allow.env: the variable S has the secret of hook "push", which no script may read`},
		{"token without a variable", tokens("ci = { may = 'read' }"), `obelus.lua:2: serve.tokens.ci needs the name of the environment variable that has it: env = "CI_TOKEN"`},
		{"token without a role", tokens("ci = { env = 'CI' }"), `obelus.lua:2: serve.tokens.ci needs a role: may = "read", "run" or "decide"`},
		{"token with no role", tokens("ci = {\n may = 'none' }"), `obelus.lua:3: serve.tokens.ci.may must be "read", "run" or "decide", not "none"`},
		{"token with another role", tokens("ci = {\n may = 'reed' }"), `obelus.lua:3: serve.tokens.ci.may must be "read", "run" or "decide", not "reed" (did you mean "read"?)`},
		{"token in the file", tokens("ci = {\n env = 'c0ffee' }"), `obelus.lua:3: serve.tokens.ci.env must be the name of the environment variable that has the token, such as "CI_TOKEN": a token does not belong into this file`},
		{"token of the server", tokens("ci = {\n env = 'OBELUS_TOKEN' }"), `obelus.lua:3: serve.tokens.ci.env must not be OBELUS_TOKEN, the token that has all roles: name another variable`},
		{"token by the name of none", tokens("token = { env = 'CI', may = 'read' }"), `obelus.lua:2: serve.tokens.token: decisions without a named token are recorded as by "token": choose another name`},
		{"token with a wrong name", tokens("['a b'] = { env = 'CI', may = 'read' }"), `obelus.lua:2: serve.tokens.a b: "a b" is no name for it: it has up to 64 letters, digits, _, - and ., and begins with a letter`},
		{"tokens in one variable", tokens("a = { env = 'CI', may = 'read' }, b = {\n env = 'CI', may = 'run' }"), `obelus.lua:3: serve.tokens.b.env: CI is the variable of the token a too: give each its own`},
		{"token that scripts may read", map[string]string{"obelus.lua": "return { allow = {\n env = { 'CI' } }, serve = { tokens = { ci = { env = 'CI', may = 'read' } } } }"},
			`obelus.lua:2: allow.env: the variable CI has the token "ci" of the server, which no script may read`},
		{"unknown occasion", map[string]string{"obelus.lua": "return { serve = { on = {\n faild = 'plans/a.lua' } } }"}, `obelus.lua:2: unknown setting serve.on.faild (did you mean "failed"?)`},
		{"occasion for no plan", map[string]string{"obelus.lua": "return { serve = { on = {\n failed = 'mail' } } }"}, `obelus.lua:2: serve.on.failed must be a file below plans/, such as "plans/report.lua", not "mail"`},
		{"limit", map[string]string{"obelus.lua": "return {\n limits = {\n  strings = 3 } }"}, `obelus.lua:3: unknown setting limits.strings (did you mean "string"?)`},
		{"no settings", map[string]string{"obelus.lua": "\nreturn 1"}, `obelus.lua:2: obelus.lua must return a table of settings by name, not a number`},
		{"settings raise", map[string]string{"obelus.lua": "\nlocal x = y.z"}, `obelus.lua:2: attempt to index y (a nil value), key "z"`},
		{"twice in a file", map[string]string{"activities/a.lua": "Activity.register('x', function() end)\n\nActivity.register('x', function() end)"},
			`activities/a.lua:3: activity "x" is registered twice: first at activities/a.lua:1`},
		{"not in a script", map[string]string{"obelus.lua": "\nTool.register('x', {})\nreturn {}"},
			`obelus.lua:2: Tool.register belongs in a script below activities/: obelus.lua is for settings`},
		{"twice in two", map[string]string{"activities/a.lua": "\nTool.register('x', {})", "activities/b/c.lua": "\n\nTool.register('x', {})"},
			`activities/b/c.lua:3: tool "x" is registered twice: first at activities/a.lua:2`},
		{"syntax", map[string]string{"activities/a.lua": "local x =", "activities/b.lua": "x = = 1", "lib/c.lua": "end"},
			"activities/a.lua:1: the file ends too early\nactivities/b.lua:1: syntax error at \"=\""},
		{"syntax of a module", map[string]string{"activities/a.lua": "\nrequire('c')", "lib/c.lua": "end"}, `lib/c.lua:1: syntax error at "end"`},
		{"syntax of a module of two", map[string]string{"activities/a.lua": "\nrequire('b')", "activities/b.lua": "require('c')", "activities/d.lua": "require('a')", "lib/c.lua": "end"},
			`lib/c.lua:1: syntax error at "end"`},
		{"syntax of an activity that is required", map[string]string{"activities/a.lua": "\nrequire('b')", "activities/b.lua": "end"}, `activities/b.lua:1: syntax error at "end"`},
		{"raises", map[string]string{"activities/a.lua": "\nerror('not configured')"}, `activities/a.lua:2: not configured`},
		{"raises a table", map[string]string{"activities/a.lua": "\nerror({code = 'x'})"}, `activities/a.lua:2: x`},
		{"options behind", map[string]string{"activities/a.lua": "Activity.register('x', function() end, {idempotent = false})"}, `activities/a.lua:1: a table stands behind the last argument: write Activity.register(name, options, function)`},
		{"schema and more", map[string]string{"activities/a.lua": "Tool.register('x', {}, function() end)"}, `activities/a.lua:1: a function stands behind the last argument: write Tool.register(name, schema)`},
		{"option", map[string]string{"activities/a.lua": "\nActivity.register('x', {timeuot = 3}, function() end)"}, `activities/a.lua:2: activity "x": unknown option "timeuot" (did you mean "timeout"?)`},
		{"option type", map[string]string{"activities/a.lua": "Activity.register('x', {retries = -1}, function() end)"}, `activities/a.lua:1: activity "x": retries must be a whole number, not negative, not -1`},
		{"option duration", map[string]string{"activities/a.lua": "Activity.register('x', {timeout = 0}, function() end)"}, `activities/a.lua:1: activity "x": timeout must be a duration above 0, not 0`},
		{"no function", map[string]string{"activities/a.lua": "Activity.register('x', {})"}, `activities/a.lua:1: bad argument #3 to Activity.register: function expected, got nil`},
		{"no name", map[string]string{"activities/a.lua": "Tool.register('', {})"}, `activities/a.lua:1: bad argument #1 to Tool.register: a name must not be empty`},
		{"not a schema", map[string]string{"activities/a.lua": "\nTool.register('x', {f = print})"}, `activities/a.lua:2: tool "x": schema.f: a function is not a JSON value`},
		{"module in settings", map[string]string{"obelus.lua": "return require 'conf'", "lib/conf.lua": "return {}"}, `obelus.lua:1: there is no module "conf" here: obelus.lua can't require the project's own, only those that are built in`},
		{"missing module", map[string]string{"activities/a.lua": "\nrequire 'strr'"}, `activities/a.lua:2: there is no module "strr": no lib/strr.lua, lib/strr/init.lua, activities/strr.lua, activities/strr/init.lua, and none is built in (did you mean "str"?)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Open(Config{FS: project(test.files)})
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("got %T %v", err, err)
			}
			if err.Error() != test.want {
				t.Errorf("got\n%s\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestOpen_BadToolSchema(t *testing.T) {
	_, err := Open(Config{FS: project(map[string]string{"activities/a.lua": "\nTool.register('x', {type = 3})"})})
	if err == nil || !strings.HasPrefix(err.Error(), `activities/a.lua:2: tool "x": `) {
		t.Errorf("got %v", err)
	}
}

func TestSettings(t *testing.T) {
	g := open(t, map[string]string{"obelus.lua": `return {
		db = "log.db", parallel = 3, timeout = "1m", drain = 2, ticks = 7, isolate = false, synchronous = "NORMAL",
		limits = { string = 1000 }, allow = { read = {"data"}, write = true, env = {}, net = {"api.example.com:443"} },
		approve = { "refund", "scopes" },
	}`})
	want := Settings{
		DB: "log.db", Parallel: 3, Timeout: time.Minute, Drain: 2 * time.Second, Ticks: 7, Synchronous: "normal",
		Limits: Limits{String: 1000}, Approve: plan.Policy{Tools: []string{"refund"}, Scopes: true},
		Allow: luastd.Grants{Read: luastd.Grant{List: []string{"data"}}, Write: luastd.Grant{All: true}, Env: luastd.Grant{List: []string{}}, Net: luastd.Grant{List: []string{"api.example.com:443"}}},
	}
	if diff := cmp.Diff(want, g.Settings()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Settings{Allow: luastd.Grants{Net: luastd.Grant{All: true}, Read: luastd.Grant{All: true}, Write: luastd.Grant{All: true}, Env: luastd.Grant{All: true}}},
		open(t, map[string]string{"obelus.lua": `return { allow = true }`}).Settings()); diff != "" {
		t.Error(diff)
	}
}

// TestRequire_BrokenModule holds that a broken file in lib/ is no error until it is required.
func TestRequire_BrokenModule(t *testing.T) {
	open(t, map[string]string{"obelus.lua": "", "lib/c.lua": "goto nowhere", "activities/a.lua": "require('d')", "lib/d.lua": "return 1"})
}

// TestSettings_SeveralErrors holds that every setting that is wrong is reported, with its line.
func TestSettings_SeveralErrors(t *testing.T) {
	_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return {\n  approve = 1,\n  \n  parallel = {},\n}"})})
	want := "obelus.lua:2: approve must be \"never\", \"always\", \"planned\", \"scopes\" or a list of tools, not 1\nobelus.lua:4: parallel must be a whole number above 0, not a table"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestOpen_EmptyProject(t *testing.T) {
	for _, config := range []Config{{}, {FS: project(nil)}} {
		h, err := Open(config)
		if err != nil || len(h.Generation().Registry().Names()) != 0 {
			t.Errorf("got %v", err)
		}
	}
}

func TestRegistered(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua":               `return { timeout = 9 }`,
		"activities/a.lua":         `Activity.register("plain", function() end)`,
		"activities/deep/b.lua":    `Activity.register("full", { timeout = "5s", retries = 3, backoff = 0.5, idempotent = false, concurrency = 2 }, function() end); Delegate.register("helper", {}); Activity.register("eager", { retries = 1, backoff = 0 }, function() end)`,
		"activities/.hidden.lua":   `error("hidden")`,
		"activities/.git/x.lua":    `error("hidden")`,
		"activities/c.lua~":        `error("backup")`,
		"activities/.c.lua.swp":    `error("swap")`,
		"activities/only_tool.lua": `Tool.register("tool", { properties = { list = { items = { required = {} } } }, required = {}, _scopes = {const = {}} })`,
	})
	plain, full := g.Registry().Activities["plain"], g.Registry().Activities["full"]
	if plain.Timeout != 9*time.Second || plain.Script != "activities/a.lua" || len(plain.SHA256) != 64 || plain.NotIdempotent {
		t.Errorf("got %+v", plain)
	}
	if full.Timeout != 5*time.Second || full.Retries != 3 || full.Backoff != 500*time.Millisecond || !full.NotIdempotent || full.Concurrency != 2 || full.Script != "activities/deep/b.lua" {
		t.Errorf("got %+v", full)
	}
	if eager := g.Registry().Activities["eager"]; eager.Backoff != 1 { // 0 would be the default
		t.Errorf("a backoff of 0 is %s", eager.Backoff)
	}
	tool, _ := g.Registry().Tool("tool")
	if got, want := string(store.EncodeJSON(tool.Schema)), `{"_scopes":{"const":[]},"properties":{"list":{"items":{"required":[]}}},"required":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"helper"}, slices.Sorted(maps.Keys(g.Registry().Delegates))); diff != "" {
		t.Error(diff)
	}
	var files []string
	for _, f := range g.Files() {
		files = append(files, f.Path)
	}
	if diff := cmp.Diff([]string{"activities/a.lua", "activities/deep/b.lua", "activities/only_tool.lua", "obelus.lua"}, files); diff != "" {
		t.Error(diff)
	}
}

// TestOpen_InitTemplate: a new project loads, its plan is read and its activity runs.
func TestOpen_InitTemplate(t *testing.T) {
	h, err := Open(Config{FS: scripts.Init()})
	if err != nil {
		t.Fatal(err)
	}
	request, _, err := h.Plan("plans/hello.lua")
	if err != nil || len(request.Calls) != 1 || !request.Output.Set {
		t.Fatalf("got %+v %v", request, err)
	}
	r, err := call(h.Generation(), "hello", plan.Invocation{Call: map[string]any{"name": "Ada"}})
	if err != nil || r.Value != "Hello, Ada!" {
		t.Errorf("got %v %v", r, err)
	}
}

// TestConfig_InvalidActivities holds that what a program registers wrongly
// fails the load, as what a script registers does.
func TestConfig_InvalidActivities(t *testing.T) {
	good := plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, nil })
	for _, c := range []struct {
		activities []plan.Registered
		want       string
	}{
		{[]plan.Registered{{Name: "a", Activity: good}, {Name: "b", Activity: good}}, "<nil>"},
		{[]plan.Registered{{Name: "a", Activity: good}, {Name: "b", Activity: good}, {Name: "a", Activity: good}}, `activity "a" is registered twice by the program that embeds obelus`},
		{[]plan.Registered{{Name: "a", Activity: good}, {Activity: good}}, "activity 2 of the program that embeds obelus has no name"},
		{[]plan.Registered{{Name: "a"}}, `activity "a" of the program that embeds obelus: it has nothing to run: give it a function`},
		{[]plan.Registered{{Name: "a", Activity: plan.ActivityFunc(nil)}}, `activity "a" of the program that embeds obelus: it has nothing to run: give it a function`},
		{[]plan.Registered{{Name: "a", Activity: plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, nil }), Backoff: -1}}, `activity "a" of the program that embeds obelus: its backoff must not be negative: -1ns`},
	} {
		if _, err := Open(Config{Activities: c.activities}); fmt.Sprint(err) != c.want {
			t.Errorf("it says %v, not %s", err, c.want)
		}
	}
	described := []plan.Registered{{Name: "a", Activity: engine.Typed(func(context.Context, struct{}) (int, error) { return 0, nil })}}
	_, err := Open(Config{Activities: described, Tools: map[string]any{"a": map[string]any{"required": []string{"x"}}}})
	if fmt.Sprint(err) != `tool "a" is registered twice by the program that embeds obelus: leave it out of the tools, since the activity of that name brings its own` {
		t.Error(err)
	}
	_, err = Open(Config{Activities: described, FS: project(map[string]string{"activities/a.lua": `Tool.register("a", {})`})})
	if fmt.Sprint(err) != `activities/a.lua:1: tool "a" is registered twice: the program that embeds obelus registers it too` {
		t.Error(err)
	}
	h, err := Open(Config{Activities: described, FS: project(map[string]string{"p.lua": `Tool.register("a", {}) return {}`})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Plan("p.lua"); fmt.Sprint(err) != `p.lua:1: tool "a" is registered twice: the program that embeds obelus registers it too` {
		t.Error(err)
	}
	h, err = Open(Config{Activities: []plan.Registered{{Name: "a", Activity: good}}, Tools: map[string]any{"a": map[string]any{}}, FS: project(map[string]string{
		"activities/a.lua": `Tool.register("a", { n = "number" })`})})
	if err != nil || !strings.Contains(string(store.EncodeJSON(h.Generation().Registry().Tools["a"].Schema)), "number") {
		t.Errorf("the tool of the scripts does not replace that of the program: %v", err)
	}
	h, err = Open(Config{Activities: []plan.Registered{{Name: "a", Activity: good}}, FS: project(map[string]string{"p.lua": `Activity.register("a", function() end) return {}`})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Plan("p.lua"); fmt.Sprint(err) != `p.lua:1: activity "a" is registered twice: the program that embeds obelus registers it too` {
		t.Error(err)
	}
}

// TestConfig_ActivityResults holds that a script gets values in Go as it
// gets those of the log, in a plan and in a test of an activity.
func TestConfig_ActivityResults(t *testing.T) {
	type bill struct {
		Total int            `json:"total"`
		Lines []string       `json:"lines"`
		Days  map[string]int `json:"days"`
	}
	h, err := Open(Config{
		Activities: []plan.Registered{{Name: "bill", Activity: plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: bill{42, []string{"a", "b"}, map[string]int{"mon": 3}}}, nil
		})}},
		Tools: map[string]any{"bill": map[string]any{"required": []string{"_outputPath"}}},
		FS: project(map[string]string{
			"activities/sum.lua": `Activity.register("sum", function(call) return call.bill.total + #call.bill.lines + call.bill.days.mon end)`,
			"plan.lua":           `return {calls = {{_tool = "bill", _outputPath = "†state.bill"}, {_tool = "sum", bill = "†state.bill", _outputPath = "†state.sum"}}, output = "†state.sum"}`,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	request, registry, err := h.Plan("plan.lua")
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := (&engine.Runner{Log: memory.New(), Registry: registry}).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || fmt.Sprint(outcome.Output) != "47" {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestSettings_GoActivities: what obelus.lua says goes for the activities of the embedding
// program too, and for runs that it begins.
func TestSettings_GoActivities(t *testing.T) {
	pay := plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: "paid"}, nil
	})
	h, err := Open(Config{
		FS: project(map[string]string{
			"obelus.lua":   `return { approve = "always", timeout = "100ms" }`,
			"plans/p.json": `[{"_tool": "pay", "_outputPath": "†a"}]`,
		}),
		Activities: []plan.Registered{{Name: "pay", Activity: pay}, {Name: "slow", Activity: pay, Timeout: time.Hour}},
	})
	if err != nil {
		t.Fatal(err)
	}
	request, registry, err := h.Plan("plans/p.json")
	if err != nil {
		t.Fatal(err)
	}
	if a := registry.Activities; a["pay"].Timeout != 100*time.Millisecond || a["slow"].Timeout != time.Hour {
		t.Errorf("timeouts of %s and %s", a["pay"].Timeout, a["slow"].Timeout)
	}
	runner := h.Generation().Settings().Runner(memory.New(), registry)
	for policy, want := range map[string]journal.RunStatus{"never": journal.RunDone, "": journal.RunWaiting, "always": journal.RunWaiting} {
		start := engine.Start{Context: "c" + policy, Request: request}
		if policy != "" {
			if start.Approve, err = plan.ParsePolicy(policy); err != nil {
				t.Fatal(err)
			}
		}
		if outcome, err := runner.Run(t.Context(), start); err != nil || outcome.Status != want {
			t.Errorf("approve %q: %+v, %v", policy, outcome, err)
		}
		if replayed, err := replay.Run(t.Context(), runner, start.Context, nil); err == nil && len(replayed.Differences) > 0 {
			t.Errorf("approve %q: replayed %+v", policy, replayed)
		}
	}
}

// TestModel: a model that the embedding program brings answers latent calls, of plans
// that register something of their own too.
func TestModel(t *testing.T) {
	h, err := Open(Config{
		FS: project(map[string]string{
			"plans/p.json": `{"tools": {"think": {"_output": {"type": "string"}}}, "calls": [{"_tool": "think", "_outputPath": "†a"}], "output": "†a"}`,
			"plans/q.lua":  `Tool.register("ponder", { _output = { type = "string" } }) return { calls = { { _tool = "ponder", _outputPath = "†a" } }, output = "†a" }`,
		}),
		Model: plan.ModelFunc(func(context.Context, plan.Question) (any, error) { return "thought", nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, plan := range []string{"plans/p.json", "plans/q.lua"} {
		request, registry, err := h.Plan(plan)
		if err != nil {
			t.Fatal(plan, err)
		}
		outcome, err := h.Generation().Settings().Runner(memory.New(), registry).Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Status != journal.RunDone || outcome.Output != "thought" {
			t.Errorf("%s: %+v, %v", plan, outcome, err)
		}
	}
}

func TestSettings_Schedules(t *testing.T) {
	g := open(t, schedules(`
		nightly = { plan = "plans/a.lua", cron = "0 3 * * *", zone = "Europe/Berlin", input = { to = "x", n = 3 }, overlap = "queue", catchup = "2h" },
		hourly = { plan = "plans/b.json", cron = "@hourly" }`))
	var got []string
	for _, s := range g.Settings().Serve.Schedules {
		got = append(got, fmt.Sprint(s.Name, " ", s.Plan, " ", s.Cron, " ", s.Zone, " ", s.Overlap, " ", s.Catchup, " ", s.Input, " ", s.When.Next(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)).Format(time.RFC3339)))
	}
	want := []string{
		"hourly plans/b.json @hourly  skip 1h0m0s map[] 2026-11-26T13:00:00Z",
		"nightly plans/a.lua 0 3 * * * Europe/Berlin queue 2h0m0s map[n:3 to:x] 2026-11-27T02:00:00Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
