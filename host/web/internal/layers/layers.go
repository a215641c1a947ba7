// Package layers places the nodes of a graph without circles in layers, from left to right: each
// node stands to the right of all that lead to it, and nodes of a layer are ordered so that few
// wires cross.
package layers

import (
	"cmp"
	"slices"
)

// Wire leads from a node to another one, by their indices.
type Wire struct{ From, To int }

// Place is where a node stands: its layer, and its row within that.
type Place struct{ Layer, Row int }

// sweeps is how often the layers are ordered by their neighbours, forwards and back.
const sweeps = 8

// Arrange places n nodes. It returns the same places for the same graph. A wire that would close a
// circle is ignored.
func Arrange(n int, wires []Wire) []Place {
	g := newGraph(n, wires)
	layers := g.layers()
	for i := range sweeps {
		if i%2 == 0 {
			for _, layer := range layers[min(1, len(layers)):] {
				g.order(layer, g.before)
			}
		} else {
			for _, layer := range slices.Backward(layers[:max(len(layers)-1, 0)]) {
				g.order(layer, g.after)
			}
		}
	}
	places := make([]Place, n)
	for l, layer := range layers {
		for row, node := range layer {
			places[node] = Place{Layer: l, Row: row}
		}
	}
	return places
}

// graph is a graph while its nodes are placed.
type graph struct {
	before, after [][]int // the neighbours of each node
	row           []float64
}

func newGraph(n int, wires []Wire) *graph {
	g := &graph{before: make([][]int, n), after: make([][]int, n), row: make([]float64, n)}
	for _, w := range wires {
		if w.From == w.To || w.From < 0 || w.To < 0 || w.From >= n || w.To >= n {
			continue
		}
		g.before[w.To], g.after[w.From] = append(g.before[w.To], w.From), append(g.after[w.From], w.To)
	}
	return g
}

// layers puts each node into the first layer behind all nodes before it.
func (g *graph) layers() (layers [][]int) {
	n := len(g.row)
	open := make([]int, n) // nodes before it that have no layer yet
	layer := make([]int, n)
	var ready []int
	for i := range n {
		if open[i] = len(g.before[i]); open[i] == 0 {
			ready = append(ready, i)
		}
	}
	placed := make([]bool, n)
	for done := 0; done < n; {
		if len(ready) == 0 { // a circle: its first node goes on as if nothing led to it
			ready = append(ready, slices.Index(placed, false))
		}
		i := ready[0]
		ready = ready[1:]
		if placed[i] {
			continue
		}
		placed[i] = true
		done++
		for layer[i] >= len(layers) {
			layers = append(layers, nil)
		}
		layers[layer[i]] = append(layers[layer[i]], i)
		for _, next := range g.after[i] {
			if placed[next] {
				continue
			}
			layer[next] = max(layer[next], layer[i]+1)
			if open[next]--; open[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	for _, nodes := range layers {
		slices.Sort(nodes)
		g.number(nodes)
	}
	return layers
}

func (g *graph) number(layer []int) {
	for row, node := range layer {
		g.row[node] = float64(row)
	}
}

// order sorts a layer by the mean row of each node's neighbours; a node without any keeps its
// place.
func (g *graph) order(layer []int, neighbours [][]int) {
	mean := make(map[int]float64, len(layer))
	for _, node := range layer {
		mean[node] = g.row[node]
		if len(neighbours[node]) == 0 {
			continue
		}
		total := 0.0
		for _, other := range neighbours[node] {
			total += g.row[other]
		}
		mean[node] = total / float64(len(neighbours[node]))
	}
	slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
	g.number(layer)
}
