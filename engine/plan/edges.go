package plan

import (
	"obelus/store"
)

// Wire is a dependency between two calls of a plan, for drawing it. Calls go
// by their positions, from 1.
type Wire struct {
	From, To int
	Path     store.Path // read by To, and perhaps written by From
	// It only orders the two: a scope, or a value that is read before it is written over.
	Order bool
}

// Wires lists the plan's dependencies: one for each reference and each call
// that it may come from.
func (p *Plan) Wires() []Wire {
	var wires []Wire
	for _, into := range p.Graph.Into {
		for _, e := range into {
			wires = append(wires, Wire{e.From + 1, e.To + 1, e.path, e.Kind != dataEdge})
		}
	}
	return wires
}

// Reads lists the paths that the call's parameters refer to, in the order of
// the parameters' names, each once.
func (c *Call) Reads() []store.Path { return c.Refs }

// Scopes lists the paths that the call's activity may see.
func (c *Call) Scopes() []store.Path { return c.ScopePaths }
