package luastd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a template: how deep its blocks nest, and its bytes.
const (
	maxBlocks   = 50
	maxTemplate = 1 << 20
)

type nodeKind int

const (
	textNode nodeKind = iota
	valueNode
	ifNode
	eachNode
)

// templateNode is text, a value, or a block.
type templateNode struct {
	kind        nodeKind
	line        int
	text        string
	path        []string // of the value, or of the value of a block
	filters     []string
	body, other []templateNode
}

func (n *templateNode) name() string { return strings.Join(n.path, ".") }

func (n *templateNode) unknown() error {
	return fmt.Errorf("line %d: unknown name %s", n.line, n.name())
}

// templateParser reads a template from its beginning.
type templateParser struct {
	text string
	at   int
	line int
}

func parseTemplate(text string) ([]templateNode, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("the template is longer than %d bytes", maxTemplate)
	}
	p := &templateParser{text: text, line: 1}
	nodes, _, err := p.block(nil, 0)
	return nodes, err
}

// block reads up to the tag that ends it, which it gives: "else", "/each" or
// "/if", or "" at the end of the text. opened is the block's own tag.
func (p *templateParser) block(opened *templateNode, depth int) (nodes []templateNode, end string, err error) {
	if depth > maxBlocks {
		return nil, "", fmt.Errorf("line %d: blocks are nested deeper than %d", p.line, maxBlocks)
	}
	for {
		text, tag, line, err := p.next()
		if err != nil {
			return nil, "", err
		}
		if text != "" {
			nodes = append(nodes, templateNode{kind: textNode, text: text})
		}
		switch {
		case tag == "" && opened != nil:
			return nil, "", fmt.Errorf("line %d: this block does not end", opened.line)
		case tag == "":
			return nodes, "", nil
		case tag[0] == '!':
		case tag == "else" || tag[0] == '/':
			if opened == nil || tag[0] == '/' && tag != closing(opened) {
				return nil, "", fmt.Errorf("line %d: {{%s}} ends no block that is open here", line, tag)
			}
			return nodes, tag, nil
		default:
			n, err := p.tag(tag, line, depth)
			if err != nil {
				return nil, "", err
			}
			nodes = append(nodes, n)
		}
	}
}

func closing(n *templateNode) string {
	if n.kind == eachNode {
		return "/each"
	}
	return "/if"
}

// tag makes a value of its tag, or a block of its first.
func (p *templateParser) tag(tag string, line, depth int) (templateNode, error) {
	n := templateNode{kind: valueNode, line: line}
	if text, err := strconv.Unquote(tag); err == nil && tag[0] == '"' {
		return templateNode{kind: textNode, text: text}, nil
	}
	if tag[0] == '#' {
		word, rest, _ := strings.Cut(tag, " ")
		switch word {
		case "#each":
			n.kind = eachNode
		case "#if":
			n.kind = ifNode
		default:
			return n, fmt.Errorf("line %d: unknown block {{%s}} (one of #each, #if)", line, word)
		}
		tag = strings.TrimSpace(rest)
	}
	if err := n.expression(tag); err != nil || n.kind == valueNode {
		return n, err
	}
	body, end, err := p.block(&n, depth+1)
	n.body = body
	if err == nil && end == "else" {
		if n.other, end, err = p.block(&n, depth+1); err == nil && end == "else" {
			err = fmt.Errorf("line %d: a second {{else}} in the block that begins at line %d", p.line, line)
		}
	}
	return n, err
}

// expression reads a path and its filters.
func (n *templateNode) expression(text string) error {
	parts := strings.Split(text, "|")
	path := strings.TrimSpace(parts[0])
	n.path = strings.Split(path, ".")
	if slices.Contains(n.path, "") || strings.ContainsAny(path, " \t\r\n{}\"'()#&") {
		hint := ""
		if path == "." {
			hint = ": {{this}} is the element of #each"
		}
		return fmt.Errorf("line %d: %q is not a name%s", n.line, path, hint)
	}
	for _, filter := range parts[1:] {
		filter = strings.TrimSpace(filter)
		if n.kind != valueNode {
			return fmt.Errorf("line %d: a block takes no filter", n.line)
		}
		if filter != "html" && filter != "json" {
			return fmt.Errorf("line %d: unknown filter %q (one of html, json)", n.line, filter)
		}
		n.filters = append(n.filters, filter)
	}
	return nil
}

// next reads the text up to the next tag, and the tag without its braces,
// which is "" at the end.
func (p *templateParser) next() (text, tag string, line int, err error) {
	from := p.at
	open := strings.Index(p.text[from:], "{{")
	if open < 0 {
		p.at = len(p.text)
		return p.text[from:], "", p.line, nil
	}
	open += from
	text = p.text[from:open]
	p.line += strings.Count(text, "\n")
	line = p.line
	length := tagLength(p.text[open+2:])
	if length < 0 {
		return "", "", 0, fmt.Errorf("line %d: {{ without }}", line)
	}
	tag = strings.TrimSpace(p.text[open+2 : open+2+length])
	p.at = open + length + 4
	p.line += strings.Count(p.text[open:p.at], "\n")
	if tag == "" {
		return "", "", 0, fmt.Errorf("line %d: a tag with nothing in it", line)
	}
	if tag == "else" || strings.ContainsRune("#/!", rune(tag[0])) {
		text = p.alone(text, open)
	}
	return text, tag, line, nil
}

// tagLength is where the tag's }} is, which may also stand in its text; -1
// without one.
func tagLength(text string) int {
	trimmed := strings.TrimLeft(text, " \t")
	if quoted, err := strconv.QuotedPrefix(trimmed); err == nil && trimmed[0] == '"' {
		from := len(text) - len(trimmed) + len(quoted)
		if end := strings.Index(text[from:], "}}"); end >= 0 {
			return from + end
		}
		return -1
	}
	return strings.Index(text, "}}")
}

// alone takes away the line of a tag that nothing else stands on. It looks no
// further than white space goes, so that a long line costs no more than a short
// one.
func (p *templateParser) alone(before string, open int) string {
	start := len(strings.TrimRight(p.text[:open], " \t"))
	if start > 0 && p.text[start-1] != '\n' {
		return before
	}
	rest := strings.TrimLeft(p.text[p.at:], " \t")
	after := strings.TrimPrefix(rest, "\r")
	switch {
	case strings.HasPrefix(after, "\n"):
		p.at = len(p.text) - len(after) + 1
		p.line++
	case rest == "":
		p.at = len(p.text)
	default:
		return before
	}
	return before[:max(len(before)-(open-start), 0)]
}
