// Package sched is the scheduler of a tick's calls. A [State] is a value: it starts no goroutine,
// and knows no clock, no log and no scripts. The runner applies events to it ([State.Apply]), asks
// for the next call that can run ([State.Next]) and for a decision about it ([State.Evaluate]),
// and, once no call is left, for the end of the tick ([State.Verdict]).
//
// A call goes from phase to phase; any other event in a phase is refused:
//
//	blocked  -- released --> queued
//	queued   -- parked   --> parked
//	queued   -- started  --> running
//	queued   -- held     --> held
//	queued   -- lacks    --> waiting
//	queued   -- settled  --> settled
//	queued   -- returned --> queued
//	parked   -- released --> queued
//	parked   -- returned --> parked
//	waiting  -- arrived  --> blocked
//	held     -- decided  --> blocked
//	running  -- lacks    --> waiting
//	running  -- paused   --> paused
//	running  -- returned --> queued
//	running  -- settled  --> settled
//	running  -- stopped  --> stopped
//	paused   -- due      --> queued
//	paused   -- returned --> queued
//
// Changes within a step can be undone: [State.Begin] begins a step, and [State.Revert] restores the
// calls as they were before it.
package sched
