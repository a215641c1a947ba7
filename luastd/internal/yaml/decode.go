// Package yaml reads and writes the part of YAML 1.2.2 that JSON has too, as the values of JSON:
// nil, bool, string, json.Number, []any and map[string]any. It knows no Lua.
//
// The parser is our own. Of the libraries at hand none reads all of the YAML test suite: the best
// ones read 244 and 251 of its 256 single documents and refuse 89 and 85 of the 94 wrong ones, and
// their faults can't be made good from outside without reading the text as they do.
package yaml

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"obelus/engine/lazyregexp"
	"obelus/luastd/internal/formats"
)

// Bounds of a document. The last two hold once its aliases are written out.
const (
	maxText     = 1 << 20 // bytes of the text
	maxKey      = 1024    // characters of a name on the line of its colon, as YAML has it
	maxValues   = 1 << 20
	maxExpanded = 64 << 20 // bytes
)

// parser reads a stream of documents by recursive descent, after the productions of
// YAML 1.2.2, and makes JSON values of them. It never goes back, except over blank lines, so
// that its time is linear. Its methods panic with a syntaxError.
//
// Indentations are numbers of spaces. A parameter n is the indentation of the collection to which
// a node belongs, -1 at the top: the node's further lines are indented by more than that.
type parser struct {
	scanner
	depth   int               // collections that are open
	handles map[string]string // prefixes of tags
	anchors map[string]anchorValue
	size    expandedSize // of the values so far, aliases written out
}

// anchorValue is the value that an anchor names, with the size that each alias to it adds.
type anchorValue struct {
	value any
	size  expandedSize
}

// expandedSize counts values, and bytes of their texts.
type expandedSize struct{ values, text int }

// Decode reads one document. It returns its value and the number of values in it. An error says at
// which line and column.
func Decode(text string) (v any, values int, err error) {
	if len(text) > maxText {
		return nil, 0, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	if encoding := formats.WideEncoding(text); encoding != "" {
		return nil, 0, errors.New("it is " + encoding + ": convert it to UTF-8")
	}
	if !utf8.ValidString(text) {
		return nil, 0, errors.New("it is not valid UTF-8")
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, formats.ByteOrderMark), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	p := &parser{scanner: scanner{text: text}}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			v, err = nil, fmt.Errorf("%s, at %s", failure.text, formats.Position(text, failure.at))
		}
	}()
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }
	if i := strings.IndexFunc(text, control); i >= 0 {
		p.fail(i, "the control character %U can't stand in YAML: "+
			"write it as an escape in double quotes", text[i])
	}
	v = p.stream()
	if formats.IsDeeper(v, formats.MaxDepth) {
		return nil, 0, fmt.Errorf("nested deeper than %d", formats.MaxDepth)
	}
	return v, p.size.values, nil
}

// stream reads all documents and returns the value of the one that has one.
func (p *parser) stream() (v any) {
	found, ended := false, true // ended: directives may follow
	for p.startLine(); ; {
		p.skipLines()
		if p.directives(ended) && !p.marker("---") {
			p.fail(p.at, "a line with --- has to follow the directives")
		}
		if p.at == len(p.text) {
			return v
		}
		start := p.at
		explicit := p.marker("---")
		if explicit {
			p.at += len("---")
		}
		if !p.marker("...") {
			node := p.block(-1, !explicit, false)
			if !node.absent && found {
				p.fail(start, "a second document begins: split the text first")
			} else if !node.absent {
				v, found = node.value, true
			}
			p.skipLines()
		}
		if ended = p.marker("..."); ended {
			p.at += len("...")
			p.blanks()
			p.endLine()
			p.skipLines()
		} else if p.indent >= 0 {
			p.fail(p.at+p.indent, "this line belongs to nothing above it: look at its indentation")
		}
	}
}

var (
	versionPattern = lazyregexp.New(`^%YAML[ \t]+1\.[0-9]+[ \t]*$`)
	tagPattern     = lazyregexp.New(`^%TAG[ \t]+(![0-9A-Za-z-]*!?)[ \t]+(\S+)[ \t]*$`)
	commentPattern = lazyregexp.New(`[ \t]#.*`)
)

// directives reads the lines before --- that begin with %, and reports whether there are any.
// Those that YAML does not define are passed over, as it says.
func (p *parser) directives(allowed bool) (any bool) {
	version := false
	p.anchors, p.handles = map[string]anchorValue{}, map[string]string{}
	for p.peek(0) == '%' && allowed {
		line, _, _ := strings.Cut(p.text[p.at:], "\n")
		p.checkPrintable(p.at, p.at+len(line))
		directive := commentPattern().ReplaceAllLiteralString(line, "")
		switch name := strings.Fields(directive)[0]; name {
		case "%YAML":
			if version || !versionPattern().MatchString(directive) {
				p.fail(p.at, "%%YAML stands once before a document, with a version of YAML 1, "+
					"such as %%YAML 1.2")
			}
			version = true
		case "%TAG":
			m := tagPattern().FindStringSubmatch(directive)
			if m == nil {
				p.fail(p.at, "%%TAG is followed by a handle and a prefix, "+
					"such as %%TAG !e! tag:example.com,2000:")
			}
			if _, twice := p.handles[m[1]]; twice {
				p.fail(p.at, "%%TAG defines %.100s twice", m[1])
			}
			p.handles[m[1]] = m[2]
		}
		any = true
		p.at += len(line)
		p.skipLines()
	}
	return any
}

// parsedNode is a node that has been read.
type parsedNode struct {
	at     int    // offset
	value  any    // for JSON
	text   string // of a scalar, as which it can be a name
	scalar bool
	plain  bool // a scalar without quotes
	closed bool // by a quote or a bracket
	alias  bool
	absent bool // nothing stands there, not even a tag
}

// nodeProperties are an anchor and a tag before a node.
type nodeProperties struct {
	at          int
	anchor, tag string
}

// join returns the properties of one node that stand at two places before it.
func (p *parser) join(outer, inner nodeProperties) nodeProperties {
	switch {
	case inner.anchor != "" && outer.anchor != "":
		p.fail(inner.at, "two anchors stand before one value")
	case inner.tag != "" && outer.tag != "":
		p.fail(inner.at, "two tags stand before one value")
	case outer.anchor == "" && outer.tag == "":
		return inner
	}
	outer.anchor += inner.anchor
	outer.tag += inner.tag
	return outer
}

// complete applies properties to a node. before is the size before the node was read.
func (p *parser) complete(node parsedNode, properties nodeProperties, before expandedSize) parsedNode {
	if node.alias {
		if properties.anchor != "" || properties.tag != "" {
			p.fail(properties.at, "an alias has neither an anchor nor a tag")
		}
		return node
	}
	if node.scalar {
		p.add(expandedSize{1, len(node.text)}, node.at)
	}
	switch {
	case properties.tag != "":
		node.value = p.tagged(node, properties)
		node.text, node.scalar = keyText(node.value)
		node.plain = false
	case node.plain:
		node.value = p.resolve(node.text, node.at)
	case node.scalar:
		node.value = node.text
	}
	if properties.anchor != "" {
		size := expandedSize{p.size.values - before.values, p.size.text - before.text}
		p.anchors[properties.anchor] = anchorValue{node.value, size}
	}
	node.absent = node.absent && properties.anchor == "" && properties.tag == ""
	return node
}

// absent returns a node that has no value, and at most properties.
func (p *parser) absent(at int, properties nodeProperties, before expandedSize) parsedNode {
	return p.complete(parsedNode{at: at, scalar: true, plain: true, absent: true}, properties, before)
}

// add counts values and text and holds them to their bounds.
func (p *parser) add(more expandedSize, at int) {
	p.size.values += more.values
	p.size.text += more.text
	if p.size.values > maxValues || p.size.text > maxExpanded {
		p.fail(at, "it has more than %d values or %d bytes of text once its aliases are written out",
			maxValues, maxExpanded)
	}
}

// open counts a collection that begins; the caller closes it by p.depth--.
func (p *parser) open(at int) {
	if p.depth++; p.depth > formats.MaxDepth {
		p.fail(at, "nested deeper than %d", formats.MaxDepth)
	}
	p.add(expandedSize{1, 0}, at)
}

// alias reads * and a name.
func (p *parser) alias() parsedNode {
	at := p.at
	name := p.anchorName()
	a, ok := p.anchors[name]
	if !ok {
		p.fail(at, "nothing before the alias is anchored as &%.100s", name)
	}
	p.add(a.size, at)
	text, scalar := keyText(a.value)
	return parsedNode{at: at, value: a.value, text: text, scalar: scalar, alias: true}
}

// anchorName reads & or * and a name.
func (p *parser) anchorName() string {
	start := p.at + 1
	for p.at++; !isSpace(p.peek(0)) && !isFlowIndicator(p.peek(0)); {
		p.at++
	}
	if p.at == start {
		p.fail(start-1, "a name is missing behind %c: put text that begins with it into quotes",
			p.text[start-1])
	}
	p.checkPrintable(start, p.at)
	return p.text[start:p.at]
}

// property reads one anchor or tag, and blanks behind it.
func (p *parser) property(properties *nodeProperties, flow bool) bool {
	one := nodeProperties{at: p.at}
	switch p.peek(0) {
	case '&':
		one.anchor = p.anchorName()
	case '!':
		one.tag = p.tag()
	default:
		return false
	}
	if c := p.peek(0); !isSpace(c) && !(flow && isFlowIndicator(c)) {
		p.fail(p.at, "a blank is missing behind an anchor or a tag")
	}
	*properties = p.join(*properties, one)
	p.blanks()
	return true
}

const yamlCore = "tag:yaml.org,2002:"

// yamlTag matches a tag: a whole one in < >, or a handle and a suffix.
var yamlTag = lazyregexp.New(`^(?:!<([^\s<>]+)>|` +
	`(!(?:[0-9A-Za-z-]*!)?)([0-9A-Za-z#;/?:@&=+$_.~*'()%-]*))`)

// tag reads a tag and returns it in full; ! alone is itself.
func (p *parser) tag() string {
	m := yamlTag().FindStringSubmatch(p.text[p.at:])
	at, whole, handle, suffix := p.at, m[1], m[2], m[3]
	p.at += len(m[0])
	prefix, defined := p.handles[handle]
	switch {
	case whole != "":
		return whole
	case m[0] == "!":
		return "!"
	case suffix == "":
		p.fail(at, "%.100s is not a tag: a name is missing behind it", m[0])
	case defined:
	case handle == "!":
		prefix = "!"
	case handle == "!!":
		prefix = yamlCore
	default:
		p.fail(at, "no %%TAG defines %.100s", handle)
	}
	return prefix + suffix
}

// tagged returns the value of a node that has a tag.
func (p *parser) tagged(node parsedNode, properties nodeProperties) any {
	tag := properties.tag
	if kind, ok := strings.CutPrefix(tag, yamlCore); ok {
		tag = "!!" + kind
	}
	kind := ""
	switch tag {
	case "!!str", "!!timestamp", "!!binary":
		kind = "!!str"
	case "!!seq", "!!map", "!!int", "!!float", "!!bool", "!!null":
		kind = tag
	case "!":
		if kind = "!!str"; !node.scalar {
			return node.value
		}
	default:
		p.fail(properties.at, "the tag %.100s has no meaning in JSON", tag)
	}
	v := node.value
	switch {
	case node.scalar && kind == "!!str":
		return node.text
	case node.scalar:
		v = p.resolve(node.text, node.at)
	}
	if is := yamlKind(v); is != kind && !(kind == "!!float" && is == "!!int") {
		p.fail(properties.at, "what %s stands before is not one", tag)
	}
	return v
}

// mappingBuilder is a mapping that is being read.
type mappingBuilder struct {
	object map[string]any
	merged []any
}

// keyText returns the name for which a value stands as a key, unless it is a list or a mapping.
func keyText(v any) (name string, ok bool) {
	if v == nil {
		return "", true
	}
	return formats.ScalarText(v)
}

// put adds a value under a name, or keeps what << names.
func (p *parser) put(m *mappingBuilder, key, value parsedNode) {
	switch {
	case key.plain && key.text == "<<":
		list, ok := value.value.([]any)
		if !ok {
			list = []any{value.value}
		}
		for _, v := range list {
			if _, ok := v.(map[string]any); !ok {
				p.fail(key.at, "<< is not followed by a mapping, or by a list of them")
			}
		}
		m.merged = append(m.merged, list...)
		return
	case !key.scalar:
		p.fail(key.at, "a list or a mapping is the name of a value: names are text")
	}
	if !key.alias {
		p.add(expandedSize{-1, 0}, key.at) // it is no value
	}
	if _, twice := m.object[key.text]; twice {
		p.fail(key.at, "the name %.100q is there twice", key.text)
	}
	m.object[key.text] = value.value
}

// merge adds the mappings under <<: earlier ones first, and none over a name that is there.
func (p *parser) merge(m *mappingBuilder) map[string]any {
	for _, from := range m.merged {
		from := from.(map[string]any)
		p.add(expandedSize{len(from), 0}, p.at)
		for name, v := range from {
			if _, own := m.object[name]; !own {
				m.object[name] = v
			}
		}
	}
	return m.object
}
