package host

import (
	"maps"
	"slices"
	"strconv"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/luac"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/luastd"
)

// registrations has the registrations of one run of a script's top level.
type registrations struct {
	tools      map[string]registeredTool
	activities map[string]registeredActivity
	delegates  map[string]registeredDelegate

	// again reports that the registrations of the script are known, and that it runs for one of
	// them: the function of an activity, the plan of a delegate, or the value of a plan's file.
	// Only the first two are kept here.
	again    bool
	activity string
	fn       *lua.LFunction
	delegate string
	value    lua.LValue
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
	return place{what + " " + strconv.Quote(name), file, line}
}

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
	allow         *luastd.Grants // what it asks for; nil if it does not ask
	timeout       time.Duration
	retries       int
	backoff       time.Duration
	notIdempotent bool
	concurrency   int
	reuse         bool
}

var activityOptionNames = []string{"allow", "backoff", "concurrency", "idempotent", "retries", "reuse", "timeout"}

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
		if found.activity == name {
			found.fn = fn
		}
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
	if err != nil {
		L.RaiseError("activity %s: %s", strconv.Quote(name), err.Error())
	}
	given, _ := v.(map[string]any)
	for _, option := range slices.Sorted(maps.Keys(given)) {
		var err error
		switch v := given[option]; option {
		case "allow":
			var asked luastd.Grants
			if asked, err = readPermissions(v, "allow"); err != nil {
				L.RaiseError("activity %s: %s", strconv.Quote(name), err.Error())
			}
			o.allow = &asked
		case "backoff":
			if o.backoff, err = setting.Duration(v); o.backoff == 0 {
				o.backoff = 1 // explicitly at once
			}
		case "concurrency":
			o.concurrency, err = setting.Count(v)
		case "idempotent":
			idempotent, ok := v.(bool)
			if o.notIdempotent = !idempotent; !ok {
				err = setting.WrongType("true or false", v)
			}
		case "retries":
			o.retries, err = setting.Count(v)
		case "reuse":
			reuse, ok := v.(bool)
			if o.reuse = reuse; !ok {
				err = setting.WrongType("true or false", v)
			}
		case "timeout":
			o.timeout, err = setting.PositiveDuration(v)
		default:
			L.RaiseError("activity %s: unknown option %s%s", strconv.Quote(name), strconv.Quote(option), luaerr.DidYouMean(option, activityOptionNames))
		}
		if err != nil {
			L.RaiseError("activity %s: option %s %s", strconv.Quote(name), option, err.Error())
		}
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
		if found.delegate == name {
			found.value = L.Get(2)
		}
		return 0
	}
	at := registrationPlace(s, L, "delegate", name)
	if before, ok := found.delegates[name]; ok {
		raiseRegisteredTwice(s, L, at, before.place)
	}
	found.delegates[name] = registeredDelegate{at, s.Run.Script}
	return 0
}
