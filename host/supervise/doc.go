// Package supervise carries out the runs of a process over a log: it starts them when it is their
// turn, resumes the runs that a crash left, goes on with waiting ones when their input comes, and
// takes over the runs of processes that have died. A program that uses it is a worker without a web
// server; package host/web translates HTTP for it.
//
//	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir})
//	log, err := sqlite.Open(filepath.Join(dir, ".obelus/log.db"), sqlite.Options{})
//	worker := supervise.New(supervise.Config{Host: h, Log: log})
//	<-ctx.Done() // as of signal.NotifyContext
//	err = worker.Shutdown(context.Background())
//	err = log.Close()
//
// That is a whole worker: it goes on with the runs that other processes have left, and with waiting
// ones once their input or a decision is in the log. Shutdown lets running calls end, within the
// time of the project's setting drain; [host.Host.Watch] loads changed scripts meanwhile. A worker
// that takes requests, as from a queue of messages, starts a run for each:
//
//	request, registry, err := h.Plan("plans/refund.lua")
//	run, err := worker.Start(ctx, supervise.Start{
//		Start:    engine.Start{Context: "order-17", Request: request, Input: store.Some(input)},
//		Registry: registry,
//	})
//	outcome, err := run.Wait(ctx)
//
// # Turns
//
// As many runs as [Config].Runs are at work at once. The others wait for their turn, first come,
// first served, whatever their contexts are; [Supervisor.Start] and [Supervisor.Resume] return once
// a run has its turn, or refuse it if too many wait already. A run that goes on by itself waits in
// the same line, and is never refused. One context has one run at work: a request for another one
// is refused with an [*engine.BusyError], in this process as in others.
//
// # Going on
//
// A run whose [Run.Recorded] is closed is in the log, and goes on whatever becomes of the process.
// A run that waits goes on by itself once its input is there: [Supervisor.Append],
// [Supervisor.Decide] and [Supervisor.Release] wake it at once. Of what other processes append the
// supervisor hears by [store.Reader].Await, within milliseconds or a second. Each second
// ([Config].Poll) it looks besides at what is due in the log, so that it also goes on with waiting
// runs whose time has come, that of the next attempt of a call after a long pause ([Config].Rest)
// too, and with orphans, runs that no process holds:
//
//   - those that a process left when it was shut down or died before New;
//   - those of a process that dies later, within a minute from then;
//   - those that are stuck ([Supervisor.Stuck]), ever more seldom: since the log can't be written,
//     or since the scripts refuse them, which are also tried with every new generation of scripts.
//
// It never reads the contexts that are at rest, so that a log of a million of them costs nothing.
//
// Contexts whose time is over, by the setting keep, are removed once an hour.
//
// A run that was cancelled goes on only if it is resumed.
//
// # Schedules
//
// The supervisor starts the runs of the project's schedules (serve.schedules in obelus.lua) when
// they are due. The context of such a run is named by its due time, and the run begins it or does
// not start ([engine.Start].Once), so that any number of supervisors of a log start it once. The
// names in the log tell which due times are dealt with. A run that does not start is recorded as
// skipped, in the context of its schedule: see package ledger.
//
// # Ends of runs
//
// The supervisor starts the plans of the project's setting serve.on when root runs are done, have
// failed, or wait for a person: its own runs, and those of other processes that end while it
// follows the log. When it begins it looks for ends of the last hour too, since a run may end while
// its supervisor is shut down.
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
//	Queued → Cancelling → Ended                        it was cancelled before its turn
//	Queued → Stopped | Refused                         it does not get its turn
//
// Ended, Waiting, Stuck, Stopped and Refused are final: what goes on later is another Run, which is
// Queued first.
package supervise
