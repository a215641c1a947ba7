// Package trace makes traces of runs, from the journal, and sends them to a collector by OTLP over
// HTTP, as JSON. It uses no SDK.
//
// [Of] returns the newest run of a context with its delegates as one trace:
//
//	invoke_workflow plans/refund.lua      the run
//	├─ chat gpt-5-mini                    a plan that a model made
//	├─ execute_tool judge                 a call
//	│  └─ chat gpt-5-mini                 its request to a model
//	└─ execute_tool handle                a call that a delegate does
//	   └─ invoke_agent refunds            the delegate's run, with calls of its own
//
// Names and attributes follow the OpenTelemetry semantic conventions for generative AI in the
// version [Conventions]. Ids are hashes of the names of contexts, ticks and calls: a run that is
// sent twice has the same ids.
//
// A [Sender] sends traces. An [Exporter] sends runs in the background as they end.
package trace
