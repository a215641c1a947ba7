// Package replay runs the newest run of a context again, from its record, and compares what
// comes out with what the log has: activities are answered from the journal, foreign messages
// come when they came, and nothing outside is touched.
package replay
