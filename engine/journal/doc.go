// Package journal defines the record of a run, and reads it: the events of plans and runs, a
// [Record] for each call, decisions, forks.
//
// The journal is the truth about a run. [Context.LastRun] and [Context.Records] return its state as
// recorded; [Context.CurrentRun] and [Context.CurrentRecords] take into account whether a process
// still holds the context, so that a run whose process died reads as interrupted. All of them ask
// [History], which reads the entries about calls, and which a program that follows a context keeps.
package journal
