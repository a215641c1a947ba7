// Package host runs activities written in Lua, for programs that embed Obelus.
//
// A project is a folder: obelus.lua with its settings, activities below
// activities/, modules below lib/, plans below plans/. [Open] loads it into a
// [Generation], an immutable set of compiled scripts:
//
//	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir, Stderr: os.Stderr})
//	request, registry, err := h.Plan("plans/refund.lua")
//
// The registry holds an [plan.Activity] for each activity that a script registers, and the engine
// runs the request's calls with it. Programs bring activities of their own in Go with
// Config.Activities ([engine.Typed] makes one of a function on Go types), and hand objects to
// scripts with Config.Objects; examples/embed does both. Package host/web serves a host.
//
// # What scripts can do
//
// Scripts are Lua 5.1 with the globals Tool, Activity, Delegate, Output, Message
// and json; all else comes by require: modules of the project, and those of
// package luastd, which do what [luastd.Grants] allow. What reaches outside is
// left out or blunt, so that libraries in Lua alone work unchanged from lib/: io
// writes to where print does and reads nothing, os knows the time and no variable
// of the environment, debug looks and touches nothing, package.loaded is what
// this run has loaded. load and loadstring take text, bounded as files are, and
// run it in the script's own environment or a table of its own. Coroutines work,
// and yield from wherever they are, within pcall and metamethods too; they end
// with the call. Absent are dofile, loadfile, module, newproxy and
// collectgarbage.
//
// A function of a project file must not assign a global that the file's top
// level does not: nearly always a local was forgotten. It is an error when the
// file is loaded. The top level itself may assign globals, which other files of
// the same run see; _G.name = … is always allowed, as is everything in lib/ and
// in code that load makes. A global that nobody assigned reads as nil.
//
// The top level of a script runs again for every call, in an environment of
// its own, on an LState from a pool; what a call sets, in whatever global or
// library table, is gone when it ends. Arguments are copies. A call ends when
// its context or its timeout does, whatever the script is at.
//
// # Limits
//
// [Limits] bounds instructions, memory, results, strings and sources; each has a
// default, a setting under "limits" in obelus.lua, and an error that names it.
// Memory is that of the whole process: whose it is can't be told within one. With
// isolate = "process" activities run in workers, processes of the same program
// (see [Worker]), of which a script that takes too much brings down one, at the
// cost of its own call. What can't be certain otherwise is certain there. A worker
// heeds no signal that asks it to end, and ends with the process that started it.
// There are as many as calls that run at once; where no more can be started, a call
// waits for one that is busy.
//
// Go collects a small heap very often where much runs: a program that is Obelus most
// of all calls [KeepHeap] once, as the command does.
//
// An activity with reuse = true keeps its states warm: what its script's locals
// and globals hold may be there again at a later call.
//
// Calls that only compute, one after the other, are recorded together
// ([plan.Speculative]). Those of activities with reuse = true are not, nor are any
// where the program gives Config.Objects or a Config.Clock, or with isolate = "process":
// what they reach the host does not see.
//
// # Loading anew
//
// Host.Watch loads the scripts anew whenever their files change, and Host.Reload
// when it is called: aside, and if every file loads the new Generation takes the
// place of the old one, whole and at once. Calls that run end with the generation
// that they began with. Each attempt, good or bad, is told as a Reload.
//
// # Tests
//
// [OpenTests] loads a project for its Lua tests, which are written in busted's
// vocabulary. Each runs in a state of its own; by require "test" it runs an
// activity or a plan, stands in for activities, sets the clock and answers
// requests.
//
// # Values
//
// JSON arrays and objects become tables, null becomes nil and inside arrays
// json.null. Large values are copied level by level, when a script looks at
// them; of a level of which only a few fields are read, only these. On the way
// back a table with the keys 1…n is an array; an empty one is an object, unless
// it came from an array, was made by json.array, or the schema at that place
// names the type array ([schema.Schema.Lists]). Numbers are float64, so an integer beyond ±2^53 reaches a script
// as a string of digits, and null fields of objects are absent. What a script
// has not changed comes back as it was all the same: integers of any size, 1.50
// as 1.50, and null fields as long as their table has at least as many others as before. A
// string of digits that it copies elsewhere becomes the integer again where the
// schema wants one. What the embedding program's own activities may give back is
// told at [plan.Result]: scripts read it as they read what the log holds.
//
// tostring and .. write integers up to 2^53 in full, where Lua 5.1 changes to
// an exponent at 1e14: an order number must survive. A string made by a script
// is bounded (16 MiB), an array has at most about a million elements.
//
// Calls may be nested some 2,000 deep, in a coroutine half of that, a tail call being
// one more: what goes on for long is a loop. math.randomseed goes for the rest of the call.
//
// # Errors
//
// What a script returns after nil, or raises by error or assert, is an
// [plan.Failure]: an outcome, which a plan may count on. A timeout is one
// too, with the code "timeout". Everything else that goes wrong in a script is
// a [ScriptError], with the place in the Lua source and the Lua stack.
package host
