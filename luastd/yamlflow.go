package luastd

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// flowSkip goes on to what comes next between brackets, the first of which stands at open.
func (p *yamlParser) flowSkip(n, open int) {
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
func (p *yamlParser) flowList(n int) []any {
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
func (p *yamlParser) flowMore(n, open int, end byte) bool {
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
func (p *yamlParser) flowEntry(n, open int) any {
	start := p.at
	key, explicit := p.flowKey(n, open)
	if !explicit {
		if p.blanks(); !p.flowColon(key) {
			return key.value
		}
		p.checkKey(start)
	}
	p.open(start)
	m := yamlMapping{object: map[string]any{}}
	p.put(&m, key, p.flowValue(key, n, open))
	p.depth--
	return p.merge(&m)
}

// flowMapping reads a mapping in { }.
func (p *yamlParser) flowMapping(n int) map[string]any {
	start := p.at
	p.open(start)
	m := yamlMapping{object: map[string]any{}}
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
func (p *yamlParser) flowKey(n, open int) (key yamlNode, explicit bool) {
	if explicit = p.indicator('?'); explicit {
		p.at++
		p.flowSkip(n, open)
	}
	return p.flowNode(n, open, explicit), explicit
}

// flowValue reads a colon and a value, each of which may be absent.
func (p *yamlParser) flowValue(key yamlNode, n, open int) yamlNode {
	p.flowSkip(n, open)
	if !p.flowColon(key) {
		return p.absent(p.at, yamlProperties{}, p.size)
	}
	p.at++
	p.flowSkip(n, open)
	return p.flowNode(n, open, true)
}

// flowColon reports whether a colon stands here that ends a name. Nothing need follow it
// behind quotes and brackets.
func (p *yamlParser) flowColon(key yamlNode) bool {
	return p.peek(0) == ':' && (key.closed || isYAMLSpace(p.peek(1)) || isYAMLFlow(p.peek(1)))
}

// flowNode reads a node between brackets. optional says that it may be absent.
func (p *yamlParser) flowNode(n, open int, optional bool) yamlNode {
	before, start := p.size, p.at
	var properties yamlProperties
	for p.property(&properties, true) {
		p.flowSkip(n, open)
		optional = true
	}
	c := p.peek(0)
	if optional && (c == ',' || c == ']' || c == '}') || p.flowColon(yamlNode{}) {
		return p.absent(start, properties, before)
	}
	return p.complete(p.atom(n, true), properties, before)
}

// quoted reads text in quotes.
func (p *yamlParser) quoted(n int) string {
	open, quote := p.at, p.text[p.at]
	var text []byte
	kept := 0 // bytes of text that the end of the line does not trim
	for p.at++; ; {
		i := strings.IndexAny(p.text[p.at:], "\n\\"+string(quote))
		if i < 0 {
			p.fail(open, "%c is not closed", quote)
		}
		text = append(text, p.text[p.at:p.at+i]...)
		p.at += i
		switch c := p.text[p.at]; {
		case c == quote && quote == '\'' && p.peek(1) == quote:
			text = append(text, c)
			p.at += 2
		case c == quote:
			p.at++
			return string(text)
		case c == '\n':
			text = append(text[:kept], strings.TrimRight(string(text[kept:]), " \t")...)
			if blank := p.fold(n, open); blank > 0 {
				text = append(text, strings.Repeat("\n", blank)...)
			} else {
				text = append(text, ' ')
			}
			kept = len(text)
		case quote == '\'':
			text = append(text, c)
			p.at++
		case p.peek(1) == '\n':
			p.at++
			text = append(text, strings.Repeat("\n", p.fold(n, open))...)
			kept = len(text)
		default:
			text = p.escape(text)
			kept = len(text)
		}
	}
}

// fold goes on from the end of a line of text in quotes to what the text goes on with, and
// returns how many blank lines there are between them.
func (p *yamlParser) fold(n, open int) (blank int) {
	for blank = -1; p.peek(0) == '\n'; blank++ {
		p.at++
		p.startLine()
		p.blanks()
	}
	switch {
	case p.indent < 0:
		p.fail(open, "%c is not closed", p.text[open])
	case p.indent <= n:
		p.fail(p.at, "this line of text in quotes has to be indented by more than what holds it")
	}
	return blank
}

// yamlEscapes are the characters behind \ and what they mean; those of x, u and U have digits.
var yamlEscapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f",
	'r': "\r", 'e': "\x1b", ' ': " ", '"': "\"", '/': "/", '\\': "\\", 'N': "\u0085", '_': "\u00a0",
	'L': "\u2028", 'P': "\u2029",
}

// escape reads \ and what follows it, and appends what it means.
func (p *yamlParser) escape(text []byte) []byte {
	c := p.peek(1)
	if meaning, ok := yamlEscapes[c]; ok {
		p.at += 2
		return append(text, meaning...)
	}
	at := p.at
	r := p.escaped()
	if utf16.IsSurrogate(r) { // JSON writes characters as two halves
		half := r
		if r = utf8.RuneError; p.peek(0) == '\\' && p.peek(1) == 'u' {
			r = utf16.DecodeRune(half, p.escaped())
		}
		if r == utf8.RuneError {
			p.fail(at, "%s is half a character: the other half is not there", p.text[at:at+6])
		}
	}
	if !utf8.ValidRune(r) {
		p.fail(at, "%s is no character", p.text[at:p.at])
	}
	return utf8.AppendRune(text, r)
}

// escaped reads an escape with digits.
func (p *yamlParser) escaped() rune {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[p.peek(1)]
	if digits == 0 {
		r, _ := utf8.DecodeRuneInString(p.text[p.at+1:])
		p.fail(p.at, "\\%c means nothing in double quotes: write \\\\ for a backslash, "+
			"or use single quotes", r)
	}
	end := min(p.at+2+digits, len(p.text))
	code, err := strconv.ParseUint(p.text[p.at+2:end], 16, 32)
	if err != nil || code > utf8.MaxRune {
		p.fail(p.at, "\\%c is not followed by the %d hexadecimal digits of a character",
			p.peek(1), digits)
	}
	p.at = end
	return rune(code)
}

// plain reads text without quotes, up to a comment, a colon that ends a name or, between
// brackets, what ends an entry.
func (p *yamlParser) plain(n int, flow bool) string {
	switch c := p.peek(0); {
	case strings.IndexByte("-?:", c) >= 0:
		if next := p.peek(1); isYAMLSpace(next) || flow && isYAMLFlow(next) {
			p.fail(p.at, "%c stands alone where a value is expected: put it into quotes to make it text", c)
		}
	case c == 0 || strings.IndexByte(",[]{}#&*!|>'\"%@`", c) >= 0:
		p.fail(p.at, "text without quotes can't begin with %c", c)
	}
	var b strings.Builder
	for {
		start := p.at
		p.plainLine(flow)
		p.checkPrintable(start, p.at)
		b.WriteString(p.text[start:p.at])
		end, line, indent := p.at, p.lineStart, p.indent
		blank := -1
		for p.blanks(); p.peek(0) == '\n'; blank++ {
			p.at++
			p.startLine()
			p.blanks()
		}
		next := p.at
		if blank >= 0 && p.indent > n && p.peek(0) != '#' {
			p.plainLine(flow)
		}
		if p.at == next { // the text does not go on
			p.at, p.lineStart, p.indent = end, line, indent
			return b.String()
		}
		if p.at = next; blank == 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.Repeat("\n", blank))
	}
}

// plainLine skips text without quotes to its end on this line.
func (p *yamlParser) plainLine(flow bool) {
	i := p.at
	for ; p.text[i] != '\n'; i++ {
		c, next := p.text[i], p.text[i+1]
		if c == ':' && (isYAMLSpace(next) || flow && isYAMLFlow(next)) ||
			c == '#' && i > p.at && isYAMLBlank(p.text[i-1]) || flow && isYAMLFlow(c) {
			break
		}
	}
	p.at += len(strings.TrimRight(p.text[p.at:i], " \t"))
}
