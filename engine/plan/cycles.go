package plan

import (
	"fmt"
	"slices"
	"strings"
)

// cycles finds the first few circles in which calls wait for each other, none of which
// stands in two of them.
func (g *graph) cycles() (all [][]Edge) {
	for apart := map[int]bool{}; len(all) < maxTold; {
		cycle := g.cycle(apart)
		if cycle == nil {
			break
		}
		all = append(all, cycle)
		for _, e := range cycle {
			apart[e.To] = true
		}
	}
	return all
}

// cycle finds calls that wait for each other in a circle, as the edges from
// each to the next; nil if there are none. Calls set apart do not count.
func (g *graph) cycle(apart map[int]bool) []Edge {
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
			if next[at] == len(g.Into[at]) {
				state[at] = closed
				path = path[:len(path)-1]
				continue
			}
			e := g.Into[at][next[at]]
			next[at]++
			switch state[e.From] {
			case unseen:
				state[e.From] = open
				path = append(path, e.From)
			case open:
				return g.circle(path[slices.Index(path, e.From):], next)
			}
		}
	}
	return nil
}

func (g *graph) circle(calls []int, next []int) []Edge {
	edges := make([]Edge, len(calls))
	for i, at := range calls {
		edges[i] = g.Into[at][next[at]-1]
	}
	return edges
}

func (g *graph) describeCycle(cycle []Edge) string {
	parts := make([]string, len(cycle))
	for i, e := range cycle {
		why := fmt.Sprintf("reads %s, which %s writes", e.path, g.Label(e.From))
		switch e.Kind {
		case IfEdge:
			why = fmt.Sprintf("has %s in its _if, which %s writes", e.path, g.Label(e.From))
		case afterEdge:
			why = fmt.Sprintf("comes after %s by its _after, which %s writes", e.path, g.Label(e.From))
		case scopeEdge:
			why = fmt.Sprintf("has %s in its scopes, which %s writes", e.path, g.Label(e.From))
		case ThoughtEdge:
			why = fmt.Sprintf("is shown the thought of %s", g.Label(e.From))
		case ReadEdge:
			why = fmt.Sprintf("writes over %s, which %s reads first", e.path, g.Label(e.From))
		}
		parts[i] = g.Label(e.To) + " " + why
	}
	return "these calls wait for each other in a circle: " + strings.Join(parts, "; ")
}
