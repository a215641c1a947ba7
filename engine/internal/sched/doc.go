// Package sched decides what the calls of one tick do next. A [State] is a value: it starts no
// goroutine, and knows no clock, no log and no scripts. Whoever runs the tick tells it by
// [State.Apply] what has happened, asks by [State.Next] which call's turn has come, by
// [State.Evaluate] what that call does, and by [State.Verdict] how the tick ends.
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
// Changes within a step can be undone: [State.Begin] begins a step, and [State.Revert] restores
// what it has changed.
package sched
