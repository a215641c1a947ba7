package yaml

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// blockScalar reads text behind | or >.
func (p *scanner) blockScalar(n int) string {
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
	return foldLines(lines, folded, chomp)
}

// scalarIndent returns the indentation of the block of text that begins here: the indentation of
// its first line that is not blank.
func (p *scanner) scalarIndent(n int) int {
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

// foldLines joins the lines of a block of text.
func foldLines(lines []string, folded bool, chomp byte) string {
	var b strings.Builder
	breaks, spaced := 0, false // blank lines before this one; the line before begins with a blank
	for _, line := range lines {
		if line == "" {
			breaks++
			continue
		}
		begins := isBlank(line[0])
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

// quoted reads text in quotes.
func (p *scanner) quoted(n int) string {
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

// fold skips from the end of a line of text in quotes to its next characters, and returns the
// number of blank lines between.
func (p *scanner) fold(n, open int) (blank int) {
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

// escapeMeanings are the meanings of the characters behind \. Digits follow x, u and U.
var escapeMeanings = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f",
	'r': "\r", 'e': "\x1b", ' ': " ", '"': "\"", '/': "/", '\\': "\\", 'N': "\u0085", '_': "\u00a0",
	'L': "\u2028", 'P': "\u2029",
}

// escape reads an escape and appends its meaning.
func (p *scanner) escape(text []byte) []byte {
	c := p.peek(1)
	if meaning, ok := escapeMeanings[c]; ok {
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
func (p *scanner) escaped() rune {
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
func (p *scanner) plain(n int, flow bool) string {
	switch c := p.peek(0); {
	case strings.IndexByte("-?:", c) >= 0:
		if next := p.peek(1); isSpace(next) || flow && isFlowIndicator(next) {
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
func (p *scanner) plainLine(flow bool) {
	i := p.at
	for ; p.text[i] != '\n'; i++ {
		c, next := p.text[i], p.text[i+1]
		if c == ':' && (isSpace(next) || flow && isFlowIndicator(next)) ||
			c == '#' && i > p.at && isBlank(p.text[i-1]) || flow && isFlowIndicator(c) {
			break
		}
	}
	p.at += len(strings.TrimRight(p.text[p.at:i], " \t"))
}
