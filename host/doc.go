// Package host runs activities written in Lua, for programs that embed Obelus.
//
// A project is a folder: obelus.lua with its settings, activities below activities/, modules below
// lib/, plans below plans/. [Open] loads it into a [Generation], an immutable set of compiled
// scripts:
//
//	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir, Stderr: os.Stderr})
//	request, registry, err := h.Plan("plans/refund.lua")
//
// The registry holds a [plan.Activity] for each activity that a script registers, and the engine
// runs the request's calls with it. Programs add activities in Go with Config.Activities
// ([engine.Typed] makes one of a function on Go types), and give objects to scripts with
// Config.Objects; examples/embed does both. Package host/supervise carries out the runs of a
// process, as a worker does, and package host/web offers that over HTTP. Package host/luatest runs
// a project's Lua tests, and package host/repl is a prompt.
//
// # What scripts can use
//
// Scripts are Lua 5.1 with the globals Tool, Activity, Delegate, Output, Message and json.
// Everything else is required: modules of the project, and the modules of package luastd, which
// read files, environment and network only as far as [luastd.Grants] allow. In Lua's own libraries
// functions that would do so are absent or have no effect; the rest is there, so that libraries
// written in Lua work unchanged from lib/: io writes to the output of print and reads
// nothing, os knows the time and no variable of the environment, debug changes nothing,
// package.loaded has the modules of this run. load and loadstring take text, bounded as files are,
// and run it in the script's own environment or a table of its own. Coroutines work, and can yield
// from anywhere, within pcall and metamethods too; they end with the call. Absent are dofile,
// loadfile, module, newproxy and collectgarbage.
//
// A function of a project file must not assign a global that the file's top level does not: nearly
// always a local was forgotten. It is an error when the file is loaded. The top level itself may
// assign globals, which other files of the same run see; _G.name = … is always allowed, and so is
// every assignment in lib/ and in code that load makes. A global without a value reads as nil.
//
// Every call has its own environment, on an LState from a pool, and begins with a copy of what the
// top level of its script made there; a top level that could come out otherwise another time, since
// it looks at the clock or calls a module, runs again instead. Assignments of a call, to any
// variable, global or library table, are gone when it ends. Arguments are copies. A call ends with
// its context or its timeout, even in the middle of a loop.
//
// # Limits
//
// [Limits] bounds instructions, memory, results, strings and sources; each has a default, a setting
// under "limits" in obelus.lua, and an error that names it. The memory is measured for the whole
// process: within one process it can't be attributed to a script. With isolate = "process"
// activities run in workers, processes of the same program (see [Worker]). A script that takes too
// much memory ends its worker, at the cost of its own call, so that the limit is certain there. A
// worker ignores signals to end, and ends with the process that started it. There are as many
// workers as concurrent calls; if no more can be started, a call waits for a busy one.
//
// Go collects a small heap very often under load: a program that mainly runs Obelus calls
// [KeepHeap] once, as the command does.
//
// An activity with reuse = true keeps the LState of a call for later calls, without loading the
// script again: its locals and globals may still have the values of an earlier call.
//
// Consecutive calls that only compute are committed together ([plan.Speculative]). This excludes
// activities with reuse = true, programs that give Config.Objects or a Config.Clock, and isolate =
// "process": the host can't tell whether those calls have effects.
//
// # Reloading
//
// Host.Watch loads the scripts again whenever their files change, and Host.Reload when it is
// called. If every file loads, the new Generation replaces the old one, whole and at once;
// otherwise the old one stays. A call ends with the generation that it began with. Each attempt,
// successful or not, is reported as a Reload.
//
// # Values
//
// JSON arrays and objects become tables, null becomes nil and inside arrays json.null. Large values
// are copied level by level, when a script looks at them; if only a few fields of a level are read,
// only these. In the other direction a table with the keys 1…n is an array; an empty one is an
// object, unless it was an array, was made by json.array, or the schema at that place names the
// type array ([schema.Schema.Lists]). Numbers are float64, so an integer beyond ±2^53 reaches a
// script as a string of digits, and null fields of objects are absent. Still, a value that a script
// has not changed keeps its form: integers of any size, 1.50 as 1.50, and null fields as long as
// their table has at least as many other fields as before. A copied string of digits becomes the
// integer again where the schema wants one. [plan.Result] describes the values that the program's
// own activities may return: scripts read them as they read values of the log.
//
// tostring and .. write integers up to 2^53 in full, where Lua 5.1 changes to an exponent at 1e14:
// an order number must survive. A string made by a script is bounded (16 MiB), an array has at most
// about a million elements.
//
// Calls may be nested some 2,000 deep, in a coroutine half as deep; a tail call counts, so long
// repetition is for loops. math.randomseed is in effect for the rest of the call.
//
// # Errors
//
// A value that a script returns after nil, or raises by error or assert, is a [plan.Failure]: an
// outcome, which a plan may handle. A timeout is one too, with the code "timeout". Every other
// error of a script is a [ScriptError], with the place in the Lua source and the Lua stack.
package host
