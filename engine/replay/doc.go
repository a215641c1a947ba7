// Package replay runs the newest run of a context again, from its record, and compares the result
// with the log: activities are answered from the journal, foreign messages are injected at their
// positions, and nothing outside is touched.
package replay
