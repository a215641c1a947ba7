// Package bounds holds limits of plans that tests lower.
package bounds

// MaxEdges bounds the graph, a million edges of which take some 250 MB and a second to be
// checked: of n calls that read what n others write there are n times n.
var MaxEdges = 1_000_000

// ManyWriters is how many writers of one path are wired one by one. A thousand
// calls that each read and write the same path would be half a million edges;
// beyond this number only those are kept from which the others follow.
var ManyWriters = 64
