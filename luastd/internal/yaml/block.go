package yaml

import (
	"unicode/utf8"
)

// block reads a node of block style in a collection that is indented by n. It begins behind
// what marks the entry. compact says that a collection may begin on the same line; flush,
// that the dashes of a list may stand below the mark, indented by n.
func (p *parser) block(n int, compact, flush bool) parsedNode {
	before := p.size
	var outer, inner nodeProperties // on earlier lines, and on the line of the value
	tab := p.blanks()
	start := p.at // of the properties and the value on this line
	for {
		if p.atEnd() {
			p.skipLines()
			outer, inner = p.join(outer, inner), nodeProperties{}
			p.at += max(p.indent, 0)
			if p.indent <= n && !(flush && p.indent == n && p.indicator('-')) {
				p.at = p.lineStart
				return p.absent(start, outer, before)
			}
			compact = true
			tab = p.blanks()
			start = p.at
		}
		if !p.property(&inner, false) {
			break
		}
	}
	column := start - p.lineStart
	opens := func() { // a collection
		switch {
		case !compact:
			p.fail(p.at, "a list or a name with its value begins on a line of its own here: "+
				"put text that only looks like it into quotes")
		case tab:
			p.failTab(start)
		}
	}
	if list := p.indicator('-'); list || p.indicator('?') {
		if opens(); inner != (nodeProperties{}) {
			p.fail(inner.at, "an anchor or a tag of a list or mapping stands on the line before it")
		}
		node := parsedNode{at: p.at}
		if list {
			node.value = p.blockList(column)
		} else {
			node.value = p.blockMapping(column, nil)
		}
		return p.complete(node, outer, before)
	}
	if c := p.peek(0); c == '|' || c == '>' {
		node := parsedNode{at: p.at, scalar: true}
		node.text = p.blockScalar(n)
		return p.complete(node, p.join(outer, inner), before)
	}
	node := parsedNode{at: p.at, scalar: true, plain: true} // an empty name
	if !p.indicator(':') {
		node = p.atom(n, false)
	}
	if p.blanks(); !p.indicator(':') {
		p.endLine()
		return p.complete(node, p.join(outer, inner), before)
	}
	opens()
	p.checkKey(start)
	key := p.complete(node, inner, before)
	return p.complete(parsedNode{at: start, value: p.blockMapping(column, &key)}, outer, before)
}

// atom reads an alias, a scalar that is no block, or a collection in brackets.
func (p *parser) atom(n int, flow bool) parsedNode {
	node := parsedNode{at: p.at, scalar: true, closed: true}
	switch p.peek(0) {
	case '*':
		return p.alias()
	case '"', '\'':
		node.text = p.quoted(n)
	case '[':
		node.scalar, node.value = false, p.flowList(n)
	case '{':
		node.scalar, node.value = false, p.flowMapping(n)
	default:
		node.plain, node.closed, node.text = true, false, p.plain(n, flow)
	}
	return node
}

// checkKey holds a name from start on to the line of its colon, which stands here.
func (p *parser) checkKey(start int) {
	if start < p.lineStart {
		p.fail(p.at, "a colon follows text of several lines, which is no name: "+
			"put text with a colon into quotes, or look at the indentation")
	}
	if p.at-start > maxKey && utf8.RuneCountInString(p.text[start:p.at]) > maxKey {
		p.fail(p.at, "a name is longer than %d characters: write it behind ?", maxKey)
	}
}

// another reports whether another entry follows in a block collection.
func (p *parser) another(column int) bool {
	p.skipLines()
	if p.indent > column {
		p.fail(p.at+p.indent, "this line is indented by more than the entries above it")
	}
	if p.indent < column {
		return false
	}
	p.at += p.indent
	if p.peek(0) == '\t' {
		p.failTab(p.at + 1)
	}
	return true
}

// blockList reads the entries whose dashes stand in a column; the first one stands here.
func (p *parser) blockList(column int) []any {
	p.open(p.at)
	list := []any{}
	for {
		p.at++
		list = append(list, p.block(column, true, false).value)
		if !p.another(column) {
			break
		}
		if !p.indicator('-') { // of the mapping that holds it, whose names may stand in this column
			p.at = p.lineStart
			break
		}
	}
	p.depth--
	return list
}

// blockMapping reads the entries whose names stand in a column. The first name has been read
// up to its colon if it is given, and is marked by ? here otherwise.
func (p *parser) blockMapping(column int, key *parsedNode) map[string]any {
	p.open(p.at)
	m := mappingBuilder{object: map[string]any{}}
	for {
		explicit := key == nil && p.indicator('?')
		if key == nil {
			key = p.blockKey(column, explicit)
		}
		var value parsedNode
		if !explicit || p.explicitValue(column) {
			p.at++
			value = p.block(column, explicit, true)
		} else {
			value = p.absent(p.at, nodeProperties{}, p.size)
		}
		p.put(&m, *key, value)
		if !p.another(column) {
			break
		}
		key = nil
	}
	p.depth--
	return p.merge(&m)
}

// blockKey reads a name; without ? up to its colon.
func (p *parser) blockKey(column int, explicit bool) *parsedNode {
	before, start := p.size, p.at
	if explicit {
		p.at++
		key := p.block(column, true, true)
		return &key
	}
	var properties nodeProperties
	for p.property(&properties, false) {
	}
	key := parsedNode{at: start, scalar: true, plain: true}
	if !p.indicator(':') {
		if p.indicator('-') {
			p.fail(p.at, "an entry of a list stands among names of a mapping")
		}
		key = p.atom(column, false)
		if p.blanks(); !p.indicator(':') {
			p.fail(start, "a name needs a colon and a blank behind it: this line has none, "+
				"or is not indented as the text that it belongs to")
		}
	}
	p.checkKey(start)
	key = p.complete(key, properties, before)
	return &key
}

// explicitValue reports whether : follows for a name behind ?, and goes there.
func (p *parser) explicitValue(column int) bool {
	if p.skipLines(); p.indent != column {
		return false
	}
	p.at += p.indent
	if !p.indicator(':') {
		p.at = p.lineStart
		return false
	}
	return true
}
