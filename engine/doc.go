// Package engine compiles calls to a plan and runs it over a log.
//
// A call names a tool and says where its result goes; its parameters may refer
// to what other calls write. From that alone [Compile] knows what must wait
// for what. A [Runner] runs all calls that are ready at once, and commits each
// outcome together with the messages that it writes, so that a run that was
// cut off at any instant goes on where it stood ([Runner.Resume]). A call runs once
// the log has that it has begun, and what it read. Where nobody can tell its outcome may
// be all that the log has of it, and a chain of such calls takes one commit
// ([Forerunner]).
//
// Activities do the work: any [Activity], registered in a [Registry] beside
// the [Tool]s whose JSON Schemas say what their calls look like. Package host
// makes them of Lua.
//
// What a Go program gives, as a result, an input or a parameter, may be anything
// that encoding/json writes; what it gets are the values of package store
// ([store.FromGo], [Invocation]).
//
// A run is a loop of ticks. A [Planner] is asked for calls, and asked again once
// they have settled, until it gives an output; a request with a static list of
// calls needs none. A call with _delegate runs a [Delegate] in a child context.
// A call that no activity runs is latent: a [Model] answers it.
//
// Under a [Policy] calls are held for a person before they run: [Holds] lists
// them, [Runner.Decide] records what was decided, and whoever runs or resumes
// the context goes on from there. A run holds its context's lease, so that no
// two processes run one context at once ([BusyError]).
//
// What everything means is shown by the cases in testdata/conformance, one for
// each clause of the protocol.
package engine
