// Package replay checks the newest run of a context against what is recorded of it. It takes the
// journal in its order, and the messages with it: each call must have been ready when the record
// says that it ran or was skipped, and its condition, its arguments, its writes and the output of
// its tick must come out as recorded. Planners that are functions are asked again, as of when each
// tick began. No activity runs, and nothing is written.
package replay
