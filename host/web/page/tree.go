package page

import (
	"sort"
	"strconv"

	"obelus/engine/numeral"
	"obelus/store"
)

// A tree of values shows mostItems of an object's or array's items at each level, and mostLeaves in
// all; the rest is behind a link.
const (
	mostItems  = 100
	mostLeaves = 1000
	mostText   = 2000 // characters of a text
)

// node is a value within a tree.
type node struct {
	Key    string // within what holds it
	Path   string // where it is, as a reference without its dagger; empty where nothing leads there
	Text   string // the value, for one that holds no others
	Type   string // string, number, boolean, null, object, array
	Items  []node
	Count  int  // of its items
	More   int  // items that are not shown
	Open   bool // it is shown opened
	Picked bool
}

// room bounds the trees of a view together.
type room struct{ leaves, characters int }

// newRoom returns the room of a view: 64 KB of text are plenty to look at.
func newRoom() *room { return &room{mostLeaves, 64 << 10} }

// treeOf returns a tree of a value at a path; "" for one without a path. What exceeds the room is
// counted alone.
func (left *room) treeOf(key, path string, v any, picked string) node {
	n := makeNode(key, path, v, picked, 0, left)
	n.Open = true
	return n
}

func makeNode(key, path string, v any, picked string, depth int, left *room) node {
	n := node{Key: key, Path: path, Type: store.TypeName(v), Picked: path != "" && path == picked}
	below := func(segment string) string {
		if path == "" {
			return ""
		}
		parsed, err := store.ParsePath(store.Dagger + path)
		if err != nil {
			return ""
		}
		return parsed.Child(segment).String()[len(store.Dagger):]
	}
	add := func(key string, v any) {
		if n.Count++; len(n.Items) >= mostItems || left.leaves <= 0 || left.characters <= 0 {
			n.More++
			return
		}
		n.Items = append(n.Items, makeNode(key, below(key), v, picked, depth+1, left))
	}
	left.leaves--
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			add(name, v[name])
		}
	case []any:
		for i, item := range v {
			add(strconv.Itoa(i), item)
		}
	case string:
		most := max(0, min(mostText, left.characters))
		if n.Text = encode(cutText(v, most)); len(v) > most {
			n.Text = encode(cutText(v, most)) + " (" + numeral.Size(int64(len(v))) + ")"
		}
	default:
		n.Text = cutText(encode(v), mostText)
	}
	left.characters -= len(n.Text) + len(key)
	n.Open = depth < 2 && n.Count <= 30 || n.holdsPicked()
	return n
}

// holdsPicked reports whether the value that is asked about is within a node.
func (n *node) holdsPicked() bool {
	for i := range n.Items {
		if n.Items[i].Picked || n.Items[i].holdsPicked() {
			return true
		}
	}
	return false
}

// HoldsItems reports whether a value is an object or an array.
func (n node) HoldsItems() bool { return n.Type == "object" || n.Type == "array" }
