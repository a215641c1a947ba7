package host

import (
	"strconv"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/luac"
	"obelus/host/internal/luacall"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/luastd"
)

// registrations has the registrations of one run of a script's top level.
type registrations struct {
	tools      map[string]registeredTool
	activities map[string]registeredActivity
	delegates  map[string]registeredDelegate

	// again reports that the registrations of the script are known, and that it runs for what it
	// makes.
	again bool
	made  []made
}

type place struct {
	what string // `activity "greet"`
	file string
	line int
}

type registeredTool struct {
	place
	schema any
}

type registeredActivity struct {
	place
	script  *sandbox.Script
	options activityOptions

	returnsNothing bool
}

type registeredDelegate struct {
	place
	script *sandbox.Script
}

func newRegistrations() *registrations {
	return &registrations{tools: map[string]registeredTool{}, activities: map[string]registeredActivity{}, delegates: map[string]registeredDelegate{}}
}

// registering checks that a register function may be called here, and reads the name.
func registering(s *session, L *lua.LState, what string) string {
	if s.Run.Depth == 0 {
		L.RaiseError("%s.register belongs at the top level of a script, not into a function that runs later", what)
	}
	name := L.CheckString(1)
	if name == "" {
		L.ArgError(1, "a name must not be empty")
	}
	if s.Run.Script.File == SettingsFile {
		L.RaiseError("%s.register belongs in a script below activities/: %s is for settings", what, SettingsFile)
	}
	if s.Run.Test { // modules that it requires may register the project's
		if file, _ := s.Place(L, 1); file == s.Run.Script.File {
			L.RaiseError("%s.register belongs in a script below activities/: what a test stands in for goes to test.plan(file, { tools = … })", what)
		}
	}
	return name
}

// lastArgument raises for an argument after the last one of a register function: it has a meaning
// that would be lost.
func lastArgument(s *session, L *lua.LState, n int, form string) {
	if L.GetTop() > n && L.Get(n+1) != lua.LNil {
		L.RaiseError("a %s stands behind the last argument: write %s", L.Get(n+1).Type(), form)
	}
}

// registrationPlace returns the place of a registration.
func registrationPlace(s *session, L *lua.LState, what, name string) place {
	file, line := s.Place(L, 1)
	return place{titleOf(what, name), file, line}
}

// titleOf names a registration in messages: activity "greet".
func titleOf(what, name string) string { return what + " " + strconv.Quote(name) }

func raiseRegisteredTwice(s *session, L *lua.LState, now, before place) {
	L.RaiseError("%s is registered twice: first at %s:%d", now.what, before.file, before.line)
}

var toolFuncs = []sandbox.Entry[*session]{
	{Name: "register", Fn: toolRegister},
}

// Tool.register(name, schema)
func toolRegister(s *session, L *lua.LState) int {
	name := registering(s, L, "Tool")
	schema := L.CheckTable(2)
	lastArgument(s, L, 2, "Tool.register(name, schema)")
	found := s.found
	if found == nil || found.again {
		return 0
	}
	at := registrationPlace(s, L, "tool", name)
	if before, ok := found.tools[name]; ok {
		raiseRegisteredTwice(s, L, at, before.place)
	}
	v, err := s.FromLua(schema, "schema")
	if err != nil {
		L.RaiseError("tool %s: %s", strconv.Quote(name), err.Error())
	}
	found.tools[name] = registeredTool{at, luacall.Listed(v, luacall.ToolSchema)}
	return 0
}

var activityFuncs = []sandbox.Entry[*session]{
	{Name: "register", Fn: activityRegister},
}

// activityOptions is the options table of Activity.register.
type activityOptions struct {
	// Allow is nil if the activity does not ask for permissions.
	Allow         *luastd.Grants `json:"allow" kind:"allow" jsonschema:"the permissions that it asks for: { net = { \"api.example.com\" } }. Its calls get what both this and the setting allow grant, see PERMISSIONS (default: all that the setting allow grants)"`
	Timeout       time.Duration  `json:"timeout" jsonschema:"of one attempt: seconds or \"5s\" (default: the setting timeout)"`
	Retries       int            `json:"retries" kind:"count" jsonschema:"how often it is tried again after a failure (default 0)"`
	Backoff       time.Duration  `json:"backoff" kind:"duration" zero:"1" jsonschema:"the pause before the first of them, doubled each time, and by chance half to one and a half times as long (default 1s); others run meanwhile, and obelus calls tells why it is tried again (but of a call without _outputPath, which keeps its place). Under obelus serve a pause of 10 s or more rests in the log: the call is waiting, a run with nothing else to do takes no memory, and it goes on by itself when the call is due"`
	NotIdempotent bool           `json:"idempotent" kind:"not" jsonschema:"false if it must never run twice unasked: where the process dies as it runs, a person decides, and after a timeout it is not tried again (default true)"`
	Concurrency   int            `json:"concurrency" kind:"count" jsonschema:"how many of its calls run at once (default: any number)"`
	Reuse         bool           `json:"reuse" jsonschema:"true lets it find what an earlier call left in globals, or not (default false: every call begins afresh)"`
}

// optionForm is the form of the options of an activity.
var optionForm = setting.Form{Noun: "option", Kinds: kinds}

// Activity.register(name, [options,] fn)
func activityRegister(s *session, L *lua.LState) int {
	name := registering(s, L, "Activity")
	fnAt := 2
	if _, ok := L.Get(2).(*lua.LTable); ok {
		fnAt = 3
	}
	fn := L.CheckFunction(fnAt)
	lastArgument(s, L, fnAt, "Activity.register(name, options, function)")
	found := s.found
	if found == nil {
		return 0
	}
	if found.again {
		found.made = append(found.made, made{titleOf("activity", name), fn})
		return 0
	}
	at := registrationPlace(s, L, "activity", name)
	if before, ok := found.activities[name]; ok {
		raiseRegisteredTwice(s, L, at, before.place)
	}
	var options activityOptions
	if fnAt == 3 {
		options = readActivityOptions(s, L, name, L.CheckTable(2))
	}
	found.activities[name] = registeredActivity{at, s.Run.Script, options, luac.ReturnsNothing(fn)}
	return 0
}

func readActivityOptions(s *session, L *lua.LState, name string, t *lua.LTable) (o activityOptions) {
	v, err := s.FromLua(t, "options")
	if errs := optionForm.Decode(v, &o); err == nil && errs != nil {
		err = errs
	}
	if err != nil {
		L.RaiseError("activity %s: %s", strconv.Quote(name), err.Error())
	}
	return o
}

var delegateFuncs = []sandbox.Entry[*session]{
	{Name: "register", Fn: delegateRegister},
}

// Delegate.register(name, plan), where plan is a value that a plan's file may return. It is read
// once all tools are known, since their schemas decide about empty tables.
func delegateRegister(s *session, L *lua.LState) int {
	name := registering(s, L, "Delegate")
	L.CheckTypes(2, lua.LTTable, lua.LTFunction)
	lastArgument(s, L, 2, "Delegate.register(name, plan)")
	if name == plan.Anonymous {
		L.RaiseError("delegate %s: a call that names it is handed to its tool alone: give the delegate another name", strconv.Quote(name))
	}
	found := s.found
	if found == nil {
		return 0
	}
	if found.again {
		found.made = append(found.made, made{titleOf("delegate", name), L.Get(2)})
		return 0
	}
	at := registrationPlace(s, L, "delegate", name)
	if before, ok := found.delegates[name]; ok {
		raiseRegisteredTwice(s, L, at, before.place)
	}
	found.delegates[name] = registeredDelegate{at, s.Run.Script}
	return 0
}
