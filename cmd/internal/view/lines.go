package view

import (
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// Lines returns the graph as lines of JSON: one for each call, then one for each edge.
func (d Graph) Lines() (lines []any) {
	var ran []journal.Record
	for _, r := range d.Ran {
		ran = append(ran, r)
	}
	g := history.GraphOf(d.Plan, ran, d.Tick)
	for _, node := range g.Nodes {
		lines = append(lines, node)
	}
	for _, wire := range g.Wires {
		lines = append(lines, wire)
	}
	return lines
}

func texts(paths []store.Path) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path.String()
	}
	return all
}
