package layers_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"obelus/host/web/internal/layers"
)

// random returns wires of a plan: each call reads from some before it.
func random(n int, seed uint64) (wires []layers.Wire) {
	r := rand.New(rand.NewPCG(seed, 1))
	for to := 1; to < n; to++ {
		for range r.IntN(3) {
			wires = append(wires, layers.Wire{From: r.IntN(to), To: to})
		}
	}
	return wires
}

// TestArrange holds that no wire leads back or stays in its layer, that no two nodes share a place,
// that each layer's rows are without gaps, and that the same graph is placed the same.
func TestArrange(t *testing.T) {
	for seed := range uint64(200) {
		n := 1 + int(seed%60)
		wires := random(n, seed)
		places := layers.Arrange(n, wires)
		if !slices.Equal(places, layers.Arrange(n, wires)) {
			t.Fatalf("seed %d: it is placed otherwise the second time", seed)
		}
		taken, rows := map[layers.Place]bool{}, map[int]int{}
		for _, at := range places {
			if taken[at] {
				t.Fatalf("seed %d: two nodes are at %v", seed, at)
			}
			taken[at] = true
			rows[at.Layer]++
		}
		for at := range taken {
			if at.Row >= rows[at.Layer] {
				t.Errorf("seed %d: layer %d has %d nodes, and one in row %d", seed, at.Layer, rows[at.Layer], at.Row)
			}
		}
		for _, w := range wires {
			if places[w.From].Layer >= places[w.To].Layer {
				t.Errorf("seed %d: the wire %v leads from layer %d to %d", seed, w, places[w.From].Layer, places[w.To].Layer)
			}
		}
	}
}

// crossings counts pairs of wires between neighbouring layers that cross.
func crossings(places []layers.Place, wires []layers.Wire) (n int) {
	for i, a := range wires {
		for _, b := range wires[:i] {
			from, to := places[a.From].Row-places[b.From].Row, places[a.To].Row-places[b.To].Row
			if places[a.From].Layer == places[b.From].Layer && places[a.To].Layer == places[b.To].Layer && from*to < 0 {
				n++
			}
		}
	}
	return n
}

// TestArrange_Untangles holds that chains side by side do not cross, whatever the order of their
// nodes.
func TestArrange_Untangles(t *testing.T) {
	const chains, length = 8, 5
	number := rand.New(rand.NewPCG(7, 7)).Perm(chains * length)
	var wires []layers.Wire
	for c := range chains {
		for i := 1; i < length; i++ {
			wires = append(wires, layers.Wire{From: number[c*length+i-1], To: number[c*length+i]})
		}
	}
	if n := crossings(layers.Arrange(chains*length, wires), wires); n != 0 {
		t.Errorf("%d wires cross", n)
	}
}

// TestArrange_Bad holds that circles and wires of no node do no harm.
func TestArrange_Bad(t *testing.T) {
	for _, wires := range [][]layers.Wire{{{0, 0}}, {{0, 1}, {1, 0}}, {{-1, 7}, {2, 9}}, {{0, 1}, {1, 2}, {2, 0}, {2, 3}}} {
		if places := layers.Arrange(4, wires); len(places) != 4 {
			t.Errorf("%v: %v", wires, places)
		}
	}
	if places := layers.Arrange(0, nil); len(places) != 0 {
		t.Error(places)
	}
}

func BenchmarkArrange(b *testing.B) {
	b.ReportAllocs()
	wires := random(1000, 1)
	for b.Loop() {
		layers.Arrange(1000, wires)
	}
}
