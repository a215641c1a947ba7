package luastd

import (
	"strings"
	"unicode/utf8"
)

// peek returns the byte that is so far ahead; 0 behind the end.
func (p *yamlParser) peek(ahead int) byte {
	if p.at+ahead < len(p.text) {
		return p.text[p.at+ahead]
	}
	return 0
}

func isYAMLBlank(c byte) bool { return c == ' ' || c == '\t' }

// isYAMLSpace reports whether c is a blank, a line end or the end of the text.
func isYAMLSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == 0 }

// isYAMLFlow reports whether c is an indicator of collections in brackets.
func isYAMLFlow(c byte) bool { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}' }

// blanks skips spaces and tabs and reports whether there is a tab.
func (p *yamlParser) blanks() (tab bool) {
	for ; isYAMLBlank(p.peek(0)); p.at++ {
		tab = tab || p.text[p.at] == '\t'
	}
	return tab
}

// startLine notes that a line begins here.
func (p *yamlParser) startLine() {
	p.lineStart, p.indent = p.at, 0
	if p.at == len(p.text) || p.marker("---") || p.marker("...") {
		p.indent = -1
		return
	}
	for p.peek(p.indent) == ' ' {
		p.indent++
	}
}

// atEnd reports whether the line has nothing more here but a comment.
func (p *yamlParser) atEnd() bool {
	switch p.peek(0) {
	case 0, '\n':
		return true
	case '#':
		return p.at == p.lineStart || isYAMLBlank(p.text[p.at-1])
	}
	return false
}

// endLine holds that a value is followed by the end of its line.
func (p *yamlParser) endLine() {
	if p.blanks(); p.atEnd() {
		return
	}
	if p.peek(0) == '#' {
		p.fail(p.at, "a blank has to stand before # for a comment")
	}
	p.fail(p.at, "more text follows a value on its line")
}

// comment skips a comment, if there is one, up to the end of its line.
func (p *yamlParser) comment() {
	if p.peek(0) == '#' {
		start := p.at
		p.at += strings.IndexByte(p.text[p.at:], '\n')
		p.checkPrintable(start, p.at)
	}
}

// skipLines goes on to the start of the next line that has more than a comment. It begins
// where a line starts or has nothing more.
func (p *yamlParser) skipLines() {
	for {
		p.blanks()
		if !p.atEnd() {
			break
		}
		if p.comment(); p.peek(0) == 0 {
			break
		}
		p.at++
		p.startLine()
	}
	p.at = p.lineStart
}

// failTab refuses the last tab before an offset.
func (p *yamlParser) failTab(before int) {
	at := strings.LastIndexByte(p.text[:before], '\t')
	p.fail(at, "a tab stands where the indentation counts: use spaces")
}

// checkPrintable refuses what YAML has within quotes only.
func (p *yamlParser) checkPrintable(start, end int) {
	for i, r := range p.text[start:end] {
		if r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			p.fail(start+i, "the character %U can stand within quotes only", r)
		}
	}
}

// indicator reports whether c stands here and has its meaning as the mark of an entry, which
// a blank follows.
func (p *yamlParser) indicator(c byte) bool { return p.peek(0) == c && isYAMLSpace(p.peek(1)) }

// block reads a node of block style in a collection that is indented by n. It begins behind
// what marks the entry. compact says that a collection may begin on the same line; flush,
// that the dashes of a list may stand below the mark, indented by n.
func (p *yamlParser) block(n int, compact, flush bool) yamlNode {
	before := p.size
	var outer, inner yamlProperties // on earlier lines, and on the line of the value
	tab := p.blanks()
	start := p.at // of the properties and the value on this line
	for {
		if p.atEnd() {
			p.skipLines()
			outer, inner = p.join(outer, inner), yamlProperties{}
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
		if opens(); inner != (yamlProperties{}) {
			p.fail(inner.at, "an anchor or a tag of a list or mapping stands on the line before it")
		}
		node := yamlNode{at: p.at}
		if list {
			node.value = p.blockList(column)
		} else {
			node.value = p.blockMapping(column, nil)
		}
		return p.complete(node, outer, before)
	}
	if c := p.peek(0); c == '|' || c == '>' {
		node := yamlNode{at: p.at, scalar: true}
		node.text = p.blockScalar(n)
		return p.complete(node, p.join(outer, inner), before)
	}
	node := yamlNode{at: p.at, scalar: true, plain: true} // an empty name
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
	return p.complete(yamlNode{at: start, value: p.blockMapping(column, &key)}, outer, before)
}

// atom reads an alias, a scalar that is no block, or a collection in brackets.
func (p *yamlParser) atom(n int, flow bool) yamlNode {
	node := yamlNode{at: p.at, scalar: true, closed: true}
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
func (p *yamlParser) checkKey(start int) {
	if start < p.lineStart {
		p.fail(p.at, "a colon follows text of several lines, which is no name: "+
			"put text with a colon into quotes, or look at the indentation")
	}
	if p.at-start > maxYAMLKey && utf8.RuneCountInString(p.text[start:p.at]) > maxYAMLKey {
		p.fail(p.at, "a name is longer than %d characters: write it behind ?", maxYAMLKey)
	}
}

// another reports whether another entry follows in a block collection.
func (p *yamlParser) another(column int) bool {
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
func (p *yamlParser) blockList(column int) []any {
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
func (p *yamlParser) blockMapping(column int, key *yamlNode) map[string]any {
	p.open(p.at)
	m := yamlMapping{object: map[string]any{}}
	for {
		explicit := key == nil && p.indicator('?')
		if key == nil {
			key = p.blockKey(column, explicit)
		}
		var value yamlNode
		if !explicit || p.explicitValue(column) {
			p.at++
			value = p.block(column, explicit, true)
		} else {
			value = p.absent(p.at, yamlProperties{}, p.size)
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
func (p *yamlParser) blockKey(column int, explicit bool) *yamlNode {
	before, start := p.size, p.at
	if explicit {
		p.at++
		key := p.block(column, true, true)
		return &key
	}
	var properties yamlProperties
	for p.property(&properties, false) {
	}
	key := yamlNode{at: start, scalar: true, plain: true}
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
func (p *yamlParser) explicitValue(column int) bool {
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

// blockScalar reads text behind | or >.
func (p *yamlParser) blockScalar(n int) string {
	folded := p.text[p.at] == '>'
	chomp, width := byte(0), 0
	for p.at++; ; p.at++ {
		c := p.peek(0)
		if (c == '+' || c == '-') && chomp == 0 {
			chomp = c
		} else if c >= '1' && c <= '9' && width == 0 {
			width = int(c - '0')
		} else {
			break
		}
	}
	p.endLine()
	p.comment()
	p.at++
	p.startLine()
	indent := max(n, 0) + width
	if width == 0 {
		indent = p.scalarIndent(n)
	}
	var lines []string
	for p.indent >= 0 {
		line := p.text[p.at : p.at+strings.IndexByte(p.text[p.at:], '\n')]
		blank := p.indent == len(line)
		if !blank && p.indent < indent {
			if strings.Trim(line, " \t") == "" {
				p.failTab(p.at + len(line))
			}
			break
		}
		p.checkPrintable(p.at, p.at+len(line))
		lines = append(lines, line[min(indent, len(line)):])
		p.at += len(line) + 1
		p.startLine()
	}
	return foldYAML(lines, folded, chomp)
}

// scalarIndent returns the indentation of the block of text that begins here: that of its first
// line that is not blank.
func (p *yamlParser) scalarIndent(n int) int {
	rest, widest, at := p.text[p.at:], 0, 0
	for {
		line, after, more := strings.Cut(rest, "\n")
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if more && spaces == len(line) {
			if spaces > widest {
				widest, at = spaces, len(p.text)-len(rest)
			}
			rest = after
			continue
		}
		if !more || spaces <= n {
			return max(n+1, widest)
		}
		if widest > spaces {
			p.fail(at+spaces, "a blank line at the start of a block of text has more spaces than "+
				"its first line: write the indentation behind | or >, as in |2")
		}
		return spaces
	}
}

// foldYAML joins the lines of a block of text.
func foldYAML(lines []string, folded bool, chomp byte) string {
	var b strings.Builder
	breaks, spaced := 0, false // blank lines before this one; the line before begins with a blank
	for _, line := range lines {
		if line == "" {
			breaks++
			continue
		}
		begins := isYAMLBlank(line[0])
		switch {
		case b.Len() == 0:
		case !folded || spaced || begins:
			breaks++
		case breaks == 0:
			b.WriteByte(' ')
		}
		b.WriteString(strings.Repeat("\n", breaks))
		b.WriteString(line)
		breaks, spaced = 0, begins
	}
	switch {
	case chomp == '-':
		return b.String()
	case b.Len() > 0:
		b.WriteByte('\n')
	}
	if chomp == '+' {
		b.WriteString(strings.Repeat("\n", breaks))
	}
	return b.String()
}
