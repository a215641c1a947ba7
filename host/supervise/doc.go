// Package supervise carries out the runs of a process over a log: it starts them when it is their
// turn, resumes the runs that a crash left, goes on with waiting ones when their input comes, and
// takes over the runs of processes that have died. Package host/web offers it over HTTP.
package supervise
