package page

import (
	"sort"
	"strconv"

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

// treeOf returns a tree of a value at a path; "" for one without a path.
func treeOf(key, path string, v any, picked string) node {
	left := mostLeaves
	n := makeNode(key, path, v, picked, 0, &left)
	n.Open = true
	return n
}

func makeNode(key, path string, v any, picked string, depth int, left *int) node {
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
		if n.Count++; len(n.Items) >= mostItems || *left <= 0 {
			n.More++
			return
		}
		n.Items = append(n.Items, makeNode(key, below(key), v, picked, depth+1, left))
	}
	*left--
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
		n.Text = strconv.Quote(cutText(v, mostText))
		if len([]rune(v)) <= mostText {
			n.Text = string(store.EncodeJSON(v))
		}
	default:
		n.Text = string(store.EncodeJSON(v))
	}
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
