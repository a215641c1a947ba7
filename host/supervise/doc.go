// Package supervise carries out the runs of a process over a log: it starts them when it is their
// turn, resumes the runs that a crash left, goes on with waiting ones when their input comes, and
// takes over the runs of processes that have died. Package host/web offers it over HTTP.
//
// # States
//
// A [Run] has one [State] at a time:
//
//	Queued → Starting → Running → Ending → Ended       the way of most runs
//	                              Ending → Waiting     it has halted, until its input comes
//	                              Ending → Stuck       it is tried again by itself
//	                              Ending → Refused     it has an error
//
//	Starting | Running | Stopping → Cancelling         a person cancels it
//	Starting | Running → Stopping                      Shutdown was called
//	Starting | Cancelling | Stopping → Ending
//	Ending → Stopped                                   the next supervisor goes on with it
//
//	Queued → Cancelling → Ended                        it never had its turn
//	Queued → Stopped | Refused
//
// Ended, Waiting, Stuck, Stopped and Refused are final: whatever goes on later is another Run, which
// is Queued first.
package supervise
