// Package bounds holds limits of plans that tests lower.
package bounds

// MaxEdges bounds the edges of a graph: a million take some 250 MB and a second to check. A plan of
// n calls that read the paths that n others write has n times n.
var MaxEdges = 1_000_000

// ManyWriters is how many writers of one path are wired one by one. A thousand
// calls that each read and write the same path would be half a million edges;
// beyond this number only those are kept from which the others follow.
var ManyWriters = 64

// MaxNested bounds how many delegates the delegates of a run start, at any depth. Those that its
// own plans start are not counted.
var MaxNested = 100_000
