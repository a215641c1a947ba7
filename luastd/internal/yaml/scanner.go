package yaml

import (
	"fmt"
	"strings"
)

// scanner reads the lines, marks and scalars of a text. Its methods panic with a syntaxError.
type scanner struct {
	text      string // with \n for all line ends; it ends with one
	at        int    // offset of the next byte
	lineStart int    // offset of the line that at is on
	indent    int    // spaces that begin that line; -1 for the end of the text, --- and ...
}

// peek returns the byte that is so far ahead; 0 behind the end.
func (p *scanner) peek(ahead int) byte {
	if p.at+ahead < len(p.text) {
		return p.text[p.at+ahead]
	}
	return 0
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isSpace reports whether c is a blank, a line end or the end of the text.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == 0 }

// isFlowIndicator reports whether c is an indicator of collections in brackets.
func isFlowIndicator(c byte) bool { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}' }

// blanks skips spaces and tabs and reports whether there is a tab.
func (p *scanner) blanks() (tab bool) {
	for ; isBlank(p.peek(0)); p.at++ {
		tab = tab || p.text[p.at] == '\t'
	}
	return tab
}

// startLine notes that a line begins here.
func (p *scanner) startLine() {
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
func (p *scanner) atEnd() bool {
	switch p.peek(0) {
	case 0, '\n':
		return true
	case '#':
		return p.at == p.lineStart || isBlank(p.text[p.at-1])
	}
	return false
}

// endLine holds that a value is followed by the end of its line.
func (p *scanner) endLine() {
	if p.blanks(); p.atEnd() {
		return
	}
	if p.peek(0) == '#' {
		p.fail(p.at, "a blank has to stand before # for a comment")
	}
	p.fail(p.at, "more text follows a value on its line")
}

// comment skips a comment, if there is one, up to the end of its line.
func (p *scanner) comment() {
	if p.peek(0) == '#' {
		start := p.at
		p.at += strings.IndexByte(p.text[p.at:], '\n')
		p.checkPrintable(start, p.at)
	}
}

// skipLines goes on to the start of the next line that has more than a comment. It begins
// where a line starts or has nothing more.
func (p *scanner) skipLines() {
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
func (p *scanner) failTab(before int) {
	at := strings.LastIndexByte(p.text[:before], '\t')
	p.fail(at, "a tab stands where the indentation counts: use spaces")
}

// checkPrintable refuses what YAML has within quotes only.
func (p *scanner) checkPrintable(start, end int) {
	for i, r := range p.text[start:end] {
		if r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			p.fail(start+i, "the character %U can stand within quotes only", r)
		}
	}
}

// indicator reports whether c stands here and has its meaning as the mark of an entry, which
// a blank follows.
func (p *scanner) indicator(c byte) bool { return p.peek(0) == c && isSpace(p.peek(1)) }

// syntaxError is a reason to refuse the text, and the offset in it.
type syntaxError struct {
	at   int
	text string
}

func (p *scanner) fail(at int, format string, args ...any) {
	panic(syntaxError{at, fmt.Sprintf(format, args...)})
}

// marker reports whether a line begins here that is a mark of documents.
func (p *scanner) marker(mark string) bool {
	return p.at == p.lineStart && strings.HasPrefix(p.text[p.at:], mark) &&
		isSpace(p.peek(len(mark)))
}
