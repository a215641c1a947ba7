package store

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// WriteIndex finds the writes that touch a path, by instance.
type WriteIndex map[string]*writeNode

// AddMessage adds the write of a message, whose seq is above all that were added before.
func (x WriteIndex) AddMessage(m *Message) {
	if op, ok := m.Op(); ok {
		x.AddOp(op)
	}
}

// AddOp adds the paths that an operation touches: none, if it is the zero Op.
func (x WriteIndex) AddOp(op Op) {
	if op.Path.IsZero() {
		return
	}
	root := x[op.Instance]
	if root == nil {
		root = &writeNode{}
		x[op.Instance] = root
	}
	if op.Method != Merge { // as Touches has it, without the memory for a list
		root.add(op.Path, op.Seq)
		return
	}
	for _, path := range op.Touches() {
		root.add(path, op.Seq)
	}
}

// Touches reports whether an operation may touch a path, without the memory that a search takes.
func (x WriteIndex) Touches(instance string, path Path) bool {
	n := x[instance]
	for at := 0; n != nil && at < len(path.text); {
		end := segmentEnd(path.text, at)
		n, at = n.children[path.text[at:end]], end
		if n != nil && len(n.seqs) > 0 {
			return true
		}
	}
	return n != nil
}

// Kinds lists the kinds that have writes, in no order.
func (x WriteIndex) Kinds() []KindOf {
	var kinds []KindOf
	for instance, root := range x {
		for segment := range root.children {
			kinds = append(kinds, KindOf{instance, Path{segment}.Kind()})
		}
	}
	return kinds
}

// SortKinds sorts kinds as [Reader.Kinds] gives them, each once.
func SortKinds(kinds []KindOf) []KindOf {
	slices.SortFunc(kinds, func(a, b KindOf) int {
		return cmp.Or(strings.Compare(a.Instance, b.Instance), strings.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(kinds)
}

// writeNode is one path in the index of one instance's writes: a trie of the segments of canonical
// paths. Every node keeps its children in the order of the last write at or below them, newest
// first, so that a reader finds the newest write below a path without looking at the rest.
type writeNode struct {
	seqs     []int64 // writes at this very path, growing
	newest   int64   // the newest write at it or below it
	children map[string]*writeNode

	first, prev, next *writeNode // children in order; siblings
}

// add enters a write. Its seq is not below any that was added before.
func (n *writeNode) add(path Path, seq int64) {
	text := path.text
	n.newest = seq
	for at := 0; at < len(text); {
		end := segmentEnd(text, at)
		child := n.children[text[at:end]]
		if child == nil {
			if n.children == nil {
				n.children = map[string]*writeNode{}
			}
			child = &writeNode{}
			n.children[text[at:end]] = child
		}
		n.toFront(child)
		child.newest = seq
		n, at = child, end
	}
	n.seqs = append(n.seqs, seq)
}

func (n *writeNode) toFront(child *writeNode) {
	if n.first == child {
		return
	}
	if child.prev != nil {
		child.prev.next = child.next
	}
	if child.next != nil {
		child.next.prev = child.prev
	}
	child.prev, child.next = nil, n.first
	if n.first != nil {
		n.first.prev = child
	}
	n.first = child
}

// segmentEnd is where the segment of a canonical path that begins at a place
// ends; the first one is the kind.
func segmentEnd(text string, at int) int {
	if text[at] != '[' {
		return at + 1 + wordEnd(text[at+1:])
	}
	for at += 2; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 2
}

// WriteSearch yields the seqs of the writes at, above and below a path, newest
// first. It keeps a heap of places to look at, each with the newest seq that
// may be found there.
type WriteSearch struct {
	at   int64 // nothing newer counts
	last int64 // the write that was returned last; one write may stand at several places
	heap []writePlace
}

// writePlace is the rest of the writes at one path, or of all writes at and below one path and its
// later siblings.
type writePlace struct {
	seq  int64
	seqs []int64
	tree *writeNode
	root bool // without siblings
}

// Begin starts a search in an index, which may be nil, for the writes that touch a path.
func (s *WriteSearch) Begin(root *writeNode, path Path, at int64) {
	if s.at = at; root == nil {
		return
	}
	n, text := root, path.text
	for i := 0; i < len(text); {
		end := segmentEnd(text, i)
		if n = n.children[text[i:end]]; n == nil {
			return
		}
		if i = end; i < len(text) {
			s.pushSeqs(n.seqs)
		}
	}
	s.pushTree(n, true)
}

// Next returns the seq of the next older write, and false after the last.
func (s *WriteSearch) Next() (seq int64, ok bool) {
	for len(s.heap) > 0 {
		p := s.pop()
		switch {
		case p.tree != nil:
			s.pushSeqs(p.tree.seqs)
			s.pushTree(p.tree.first, false)
			if !p.root {
				s.pushTree(p.tree.next, false)
			}
		default:
			s.pushSeqs(p.seqs[:len(p.seqs)-1])
			if p.seq != s.last {
				s.last = p.seq
				return p.seq, true
			}
		}
	}
	return 0, false
}

func (s *WriteSearch) pushTree(n *writeNode, root bool) {
	if n != nil {
		s.push(writePlace{seq: min(n.newest, s.at), tree: n, root: root})
	}
}

func (s *WriteSearch) pushSeqs(seqs []int64) {
	n := len(seqs)
	if n > 0 && seqs[n-1] > s.at {
		n = sort.Search(n, func(i int) bool { return seqs[i] > s.at })
	}
	if n > 0 {
		s.push(writePlace{seq: seqs[n-1], seqs: seqs[:n]})
	}
}

func (s *WriteSearch) push(p writePlace) {
	s.heap = append(s.heap, p)
	h := s.heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].seq >= h[i].seq {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func (s *WriteSearch) pop() writePlace {
	h := s.heap
	top, n := h[0], len(h)-1
	h[0] = h[n]
	s.heap = h[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return top
		}
		if child+1 < n && h[child+1].seq > h[child].seq {
			child++
		}
		if h[i].seq >= h[child].seq {
			return top
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
