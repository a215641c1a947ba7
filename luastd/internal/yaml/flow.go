package yaml

// flowSkip skips blanks, line ends and comments between brackets, whose first one is at open.
func (p *parser) flowSkip(n, open int) {
	line := p.lineStart
	for {
		if p.blanks(); p.atEnd() && p.peek(0) != 0 {
			p.comment()
			p.at++
			p.startLine()
			continue
		}
		switch closing := p.peek(0) == ']' || p.peek(0) == '}'; {
		case p.lineStart == line || p.indent > n || closing && p.indent == n:
			return
		case p.indent < 0:
			p.fail(open, "%c is not closed", p.text[open])
		}
		p.fail(p.at, "this line between brackets has to be indented by more than what holds them")
	}
}

// flowList reads a list in [ ].
func (p *parser) flowList(n int) []any {
	start := p.at
	p.open(start)
	list := []any{}
	for p.at++; ; {
		if p.flowSkip(n, start); p.peek(0) == ']' {
			break
		}
		list = append(list, p.flowEntry(n, start))
		if !p.flowMore(n, start, ']') {
			break
		}
	}
	p.at++
	p.depth--
	return list
}

// flowMore reads a comma behind an entry and reports whether there was one.
func (p *parser) flowMore(n, open int, end byte) bool {
	p.flowSkip(n, open)
	switch p.peek(0) {
	case ',':
		p.at++
		return true
	case end:
		return false
	}
	p.fail(p.at, "a comma or %c is missing", end)
	return false
}

// flowEntry reads a value of a list in brackets; a name and its value are a mapping there.
func (p *parser) flowEntry(n, open int) any {
	start := p.at
	key, explicit := p.flowKey(n, open)
	if !explicit {
		if p.blanks(); !p.flowColon(key) {
			return key.value
		}
		p.checkKey(start)
	}
	p.open(start)
	m := mappingBuilder{object: map[string]any{}}
	p.put(&m, key, p.flowValue(key, n, open))
	p.depth--
	return p.merge(&m)
}

// flowMapping reads a mapping in { }.
func (p *parser) flowMapping(n int) map[string]any {
	start := p.at
	p.open(start)
	m := mappingBuilder{object: map[string]any{}}
	for p.at++; ; {
		if p.flowSkip(n, start); p.peek(0) == '}' {
			break
		}
		key, _ := p.flowKey(n, start)
		p.put(&m, key, p.flowValue(key, n, start))
		if !p.flowMore(n, start, '}') {
			break
		}
	}
	p.at++
	p.depth--
	return p.merge(&m)
}

// flowKey reads a name, before which ? may stand.
func (p *parser) flowKey(n, open int) (key parsedNode, explicit bool) {
	if explicit = p.indicator('?'); explicit {
		p.at++
		p.flowSkip(n, open)
	}
	return p.flowNode(n, open, explicit), explicit
}

// flowValue reads a colon and a value. Both may be absent.
func (p *parser) flowValue(key parsedNode, n, open int) parsedNode {
	p.flowSkip(n, open)
	if !p.flowColon(key) {
		return p.absent(p.at, nodeProperties{}, p.size)
	}
	p.at++
	p.flowSkip(n, open)
	return p.flowNode(n, open, true)
}

// flowColon reports whether a colon stands here that ends a name. Nothing need follow it
// behind quotes and brackets.
func (p *parser) flowColon(key parsedNode) bool {
	return p.peek(0) == ':' && (key.closed || isSpace(p.peek(1)) || isFlowIndicator(p.peek(1)))
}

// flowNode reads a node between brackets. optional says that it may be absent.
func (p *parser) flowNode(n, open int, optional bool) parsedNode {
	before, start := p.size, p.at
	var properties nodeProperties
	for p.property(&properties, true) {
		p.flowSkip(n, open)
		optional = true
	}
	c := p.peek(0)
	if optional && (c == ',' || c == ']' || c == '}') || p.flowColon(parsedNode{}) {
		return p.absent(start, properties, before)
	}
	return p.complete(p.atom(n, true), properties, before)
}
