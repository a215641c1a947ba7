package engine

import (
	"fmt"
	"slices"
	"strings"
)

// cycles finds the first few circles in which calls wait for each other, none of which
// stands in two of them.
func (g *graph) cycles() (all [][]edge) {
	for apart := map[int]bool{}; len(all) < maxTold; {
		cycle := g.cycle(apart)
		if cycle == nil {
			break
		}
		all = append(all, cycle)
		for _, e := range cycle {
			apart[e.to] = true
		}
	}
	return all
}

// cycle finds calls that wait for each other in a circle, as the edges from
// each to the next; nil if there are none but for calls that are set apart.
func (g *graph) cycle(apart map[int]bool) []edge {
	const (
		unseen = iota
		open
		closed
	)
	state := make([]int, len(g.calls))
	for i := range apart {
		state[i] = closed
	}
	next := make([]int, len(g.calls)) // which edge of each open call is being followed
	for start := range g.calls {
		if state[start] != unseen {
			continue
		}
		path := []int{start}
		state[start] = open
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(g.into[at]) {
				state[at] = closed
				path = path[:len(path)-1]
				continue
			}
			e := g.into[at][next[at]]
			next[at]++
			switch state[e.from] {
			case unseen:
				state[e.from] = open
				path = append(path, e.from)
			case open:
				return g.circle(path[slices.Index(path, e.from):], next)
			}
		}
	}
	return nil
}

func (g *graph) circle(calls []int, next []int) []edge {
	edges := make([]edge, len(calls))
	for i, at := range calls {
		edges[i] = g.into[at][next[at]-1]
	}
	return edges
}

func (g *graph) describeCycle(cycle []edge) string {
	parts := make([]string, len(cycle))
	for i, e := range cycle {
		why := fmt.Sprintf("reads %s, which %s writes", e.path, g.label(e.from))
		switch e.kind {
		case scopeEdge:
			why = fmt.Sprintf("has %s in its scopes, which %s writes", e.path, g.label(e.from))
		case thoughtEdge:
			why = fmt.Sprintf("is shown the thought of %s", g.label(e.from))
		case readEdge:
			why = fmt.Sprintf("writes over %s, which %s reads first", e.path, g.label(e.from))
		}
		parts[i] = g.label(e.to) + " " + why
	}
	return "these calls wait for each other in a circle: " + strings.Join(parts, "; ")
}
