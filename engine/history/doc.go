// Package history answers questions about the values of a context and their origins: [Explain]
// follows a value back to the calls and messages that made it, [Diff] compares two points of one
// context or of two, [Get] evaluates an expression as of a seq, [Summarize] describes a context in
// a line.
package history
