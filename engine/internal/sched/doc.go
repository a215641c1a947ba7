// Package sched is the scheduler of a tick's calls. A [State] is a value: it starts no goroutine,
// and knows no clock, no log and no scripts. The runner applies events to it ([State.Apply]), asks
// for the next call that can run ([State.Next]) and for a decision about it ([State.Evaluate]),
// and, once no call is left, how the run goes on ([State.RunStatus], [DecideEnd]).
//
// Events lead a call from phase to phase. An event that a phase does not list is a mistake of the
// runner, and [State.Apply] panics:
//
//	blocked -- Released      --> queued
//	queued  -- AtLimit       --> parked
//	queued  -- Started       --> running
//	queued  -- HeldBack      --> held
//	queued  -- Confirmed     --> blocked
//	queued  -- Missing       --> waiting
//	queued  -- AttemptFailed --> paused
//	queued  -- Finished      --> settled
//	queued  -- Returned      --> queued
//	parked  -- Released      --> queued
//	parked  -- Returned      --> parked
//	waiting -- Arrived       --> blocked
//	held    -- Decided       --> blocked
//	running -- Missing       --> waiting
//	running -- AttemptFailed --> paused
//	running -- Returned      --> queued
//	running -- Finished      --> settled
//	running -- Cut           --> stopped
//	paused  -- Due           --> queued
//	paused  -- Returned      --> queued
//
// Changes within a step can be undone: [State.Begin] begins a step, and [State.Revert] restores the
// calls as they were before it.
package sched
