// Package engine runs plans over a log.
//
// A call names a tool and says where its result goes; its parameters may refer to values that other
// calls write. From that alone [plan.Compile] knows which call waits for which. A [Runner] runs all
// calls that are ready at once, and commits each outcome together with the messages that it writes,
// so that a run that was cut off at any instant goes on from there ([Runner.Resume]). A call runs
// once the log has its start, and the values that it read. Where a call has no visible effect the
// log may have its outcome alone, and a chain of such calls takes one commit ([plan.Speculative]).
//
// The way of one call, and the file to read for each step:
//
//	plan.Compile           checks the call and finds the calls that it waits for
//	sched.State.Next       finds that it can run                              internal/sched
//	sched.State.Evaluate   reads its references and decides about it          internal/sched
//	tick.start             records that it runs                               schedule.go
//	tickRun.commit         appends the step: messages, records and starts     commit.go
//	task.do                runs it in a worker, once the log has its start    task.go, worker.go
//	plan.Activity.Run      does the work: package host makes activities of Lua
//	tick.complete          makes messages of the result, records the outcome  result.go
//	sched.State.Apply      releases the calls that wait for it                internal/sched
//	tickRun.commit         appends both, with the starts of the next calls    commit.go
//
// Three types carry that. A sched.State decides, and is a value. A tick makes the content of steps:
// it takes results, and gives messages, records and starts. A tickRun acts: it waits, appends and
// launches. One rule holds for the order of the last: computing never waits for the disk; being
// seen does. A call without visible effects may run before the log has its start, alone within a
// step (speculate.go) or beside the append of a step (pipeline.go); everything else waits for the
// append.
//
// Activities do the work: any [plan.Activity], registered in a [plan.Registry] beside the
// [plan.Tool]s whose JSON Schemas describe their calls. Values of a Go program, as results, inputs
// or parameters, may be anything that encoding/json writes; it receives the values of package store
// ([store.FromGo], [plan.Invocation]).
//
// A run is a loop of ticks. A [plan.Planner] is asked for calls, and asked again once they have
// settled, until it gives an output; a request with a static list of calls needs none. A call with
// _delegate runs a [plan.Delegate] in a child context. A call that no activity runs is latent: a
// [plan.Model] answers it.
//
// Under a [plan.Policy] calls are held for a person before they run: [journal.Context.Holds] lists
// them, [Runner.Decide] records a decision, and the run of the context, or its next resumption,
// goes on from there. A run holds its context's lease, so that no two processes run one context at
// once ([BusyError]).
//
// The protocol is in PROTOCOL.md, the reasons behind the design in decisions, and the cases in
// testdata/conformance show each clause of the protocol.
package engine
