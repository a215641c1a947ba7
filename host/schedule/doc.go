// Package schedule tells when schedules are due, and decides which of their runs are to start. It
// starts nothing itself, keeps nothing and reads no clock: package supervise does.
//
//	nightly, err := schedule.Parse("0 3 * * *", "Europe/Berlin")
//	due := nightly.Next(time.Now())
//	context := schedule.RunName("nightly", due) // nightly-20261126T020000Z
//
// # Clock changes
//
// An expression counts in the local time of its zone. A time of day that the clock leaves out is
// due when the clock has gone forward: 02:30 is due at 03:00. A time of day that comes twice is due
// once, the first time. An expression for every hour, with * as its hour, is due in both of the
// hours that have one name, since it counts hours and not times of day.
//
// # Runs that were missed
//
// A run is named by the time at which it is due, so the names in the log tell what has run.
// [Schedule.Decide] looks at the due times since then. If no server was running at some of them,
// the newest still runs unless it is older than [Policy].Catchup; all others are skipped. The
// [Overlap] decides about runs that are due while the run before goes on.
package schedule
