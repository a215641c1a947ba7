package luastd

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Bounds of a document. The last two hold once its aliases are written out.
const (
	maxYAML       = 1 << 20 // bytes of the text
	maxYAMLKey    = 1024    // characters of a name on the line of its colon, as YAML has it
	maxYAMLValues = 1 << 20
	maxYAMLText   = 64 << 20 // bytes
)

// yamlParser reads a stream of documents by recursive descent, after the productions of
// YAML 1.2.2, and makes JSON values of them. It never goes back, except over blank lines, so
// that its time is linear. Its methods panic with a yamlError.
//
// Indentations are numbers of spaces. A parameter n is the indentation of the collection that
// a node belongs to, -1 at the top: the node's further lines are indented by more than that.
type yamlParser struct {
	text      string // with \n for all line ends, one of which ends it
	at        int    // offset of what is read next
	lineStart int    // offset of the line that at is on
	indent    int    // spaces that begin that line; -1 for the end of the text, --- and ...
	depth     int    // collections that are open
	handles   map[string]string
	anchors   map[string]yamlAnchor
	size      yamlSize
}

// yamlAnchor is the value that an anchor names, and what an alias to it adds.
type yamlAnchor struct {
	value any
	size  yamlSize
}

type yamlSize struct{ values, text int }

// yamlError is a reason to refuse the text, and the offset in it.
type yamlError struct {
	at   int
	text string
}

func (p *yamlParser) fail(at int, format string, args ...any) {
	panic(yamlError{at, fmt.Sprintf(format, args...)})
}

// decodeYAML reads one document and counts its values.
func decodeYAML(text string) (v any, values int, err error) {
	if len(text) > maxYAML {
		return nil, 0, fmt.Errorf("it is longer than %d bytes", maxYAML)
	}
	if encoding := wideEncoding(text); encoding != "" {
		return nil, 0, errors.New("it is " + encoding + ": convert it to UTF-8")
	}
	if !utf8.ValidString(text) {
		return nil, 0, errors.New("it is not valid UTF-8")
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	p := &yamlParser{text: text}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(yamlError)
			if !ok {
				panic(r)
			}
			v, err = nil, fmt.Errorf("%s, at %s", failure.text, position(text, failure.at))
		}
	}()
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }
	if i := strings.IndexFunc(text, control); i >= 0 {
		p.fail(i, "the control character %U can't stand in YAML: "+
			"write it as an escape in double quotes", text[i])
	}
	v = p.stream()
	if deep(v, maxJSONDepth) {
		return nil, 0, fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	return v, p.size.values, nil
}

// stream reads all documents and returns the value of the one that has one.
func (p *yamlParser) stream() (v any) {
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

// marker reports whether a line begins here that is a mark of documents.
func (p *yamlParser) marker(mark string) bool {
	return p.at == p.lineStart && strings.HasPrefix(p.text[p.at:], mark) &&
		isYAMLSpace(p.peek(len(mark)))
}

var (
	yamlVersion   = regexp.MustCompile(`^%YAML[ \t]+1\.[0-9]+[ \t]*$`)
	yamlTagHandle = regexp.MustCompile(`^%TAG[ \t]+(![0-9A-Za-z-]*!?)[ \t]+(\S+)[ \t]*$`)
	yamlComment   = regexp.MustCompile(`[ \t]#.*`)
)

// directives reads the lines before --- that begin with %, and reports whether there are any.
// Those that YAML does not define are passed over, as it says.
func (p *yamlParser) directives(allowed bool) (any bool) {
	version := false
	p.anchors, p.handles = map[string]yamlAnchor{}, map[string]string{}
	for p.peek(0) == '%' && allowed {
		line, _, _ := strings.Cut(p.text[p.at:], "\n")
		p.checkPrintable(p.at, p.at+len(line))
		directive := yamlComment.ReplaceAllLiteralString(line, "")
		switch name := strings.Fields(directive)[0]; name {
		case "%YAML":
			if version || !yamlVersion.MatchString(directive) {
				p.fail(p.at, "%%YAML stands once before a document, with a version of YAML 1, "+
					"such as %%YAML 1.2")
			}
			version = true
		case "%TAG":
			m := yamlTagHandle.FindStringSubmatch(directive)
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

// yamlNode is a node that has been read.
type yamlNode struct {
	at     int    // offset
	value  any    // for JSON
	text   string // of a scalar, as which it can be a name
	scalar bool
	plain  bool // a scalar without quotes
	closed bool // by a quote or a bracket
	alias  bool
	absent bool // nothing stands there, not even a tag
}

// yamlProperties are an anchor and a tag before a node.
type yamlProperties struct {
	at          int
	anchor, tag string
}

// join returns the properties of one node that stand at two places before it.
func (p *yamlParser) join(outer, inner yamlProperties) yamlProperties {
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
func (p *yamlParser) complete(node yamlNode, properties yamlProperties, before yamlSize) yamlNode {
	if node.alias {
		if properties.anchor != "" || properties.tag != "" {
			p.fail(properties.at, "an alias has neither an anchor nor a tag")
		}
		return node
	}
	if node.scalar {
		p.add(yamlSize{1, len(node.text)}, node.at)
	}
	switch {
	case properties.tag != "":
		node.value = p.tagged(node, properties)
		node.text, node.scalar = yamlName(node.value)
		node.plain = false
	case node.plain:
		node.value = p.resolve(node.text, node.at)
	case node.scalar:
		node.value = node.text
	}
	if properties.anchor != "" {
		size := yamlSize{p.size.values - before.values, p.size.text - before.text}
		p.anchors[properties.anchor] = yamlAnchor{node.value, size}
	}
	node.absent = node.absent && properties.anchor == "" && properties.tag == ""
	return node
}

// absent returns a node of which there are at most properties.
func (p *yamlParser) absent(at int, properties yamlProperties, before yamlSize) yamlNode {
	return p.complete(yamlNode{at: at, scalar: true, plain: true, absent: true}, properties, before)
}

// add counts values and text and holds them to their bounds.
func (p *yamlParser) add(more yamlSize, at int) {
	p.size.values += more.values
	p.size.text += more.text
	if p.size.values > maxYAMLValues || p.size.text > maxYAMLText {
		p.fail(at, "it has more than %d values or %d bytes of text once its aliases are written out",
			maxYAMLValues, maxYAMLText)
	}
}

// open counts a collection that begins; the caller closes it by p.depth--.
func (p *yamlParser) open(at int) {
	if p.depth++; p.depth > maxJSONDepth {
		p.fail(at, "nested deeper than %d", maxJSONDepth)
	}
	p.add(yamlSize{1, 0}, at)
}

// alias reads * and a name.
func (p *yamlParser) alias() yamlNode {
	at := p.at
	name := p.anchorName()
	a, ok := p.anchors[name]
	if !ok {
		p.fail(at, "nothing before the alias is anchored as &%.100s", name)
	}
	p.add(a.size, at)
	text, scalar := yamlName(a.value)
	return yamlNode{at: at, value: a.value, text: text, scalar: scalar, alias: true}
}

// anchorName reads & or * and a name.
func (p *yamlParser) anchorName() string {
	start := p.at + 1
	for p.at++; !isYAMLSpace(p.peek(0)) && !isYAMLFlow(p.peek(0)); {
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
func (p *yamlParser) property(properties *yamlProperties, flow bool) bool {
	one := yamlProperties{at: p.at}
	switch p.peek(0) {
	case '&':
		one.anchor = p.anchorName()
	case '!':
		one.tag = p.tag()
	default:
		return false
	}
	if c := p.peek(0); !isYAMLSpace(c) && !(flow && isYAMLFlow(c)) {
		p.fail(p.at, "a blank is missing behind an anchor or a tag")
	}
	*properties = p.join(*properties, one)
	p.blanks()
	return true
}

const yamlCore = "tag:yaml.org,2002:"

// yamlTag is a tag: a whole one in < >, or a handle and what follows it.
var yamlTag = regexp.MustCompile(`^(?:!<([^\s<>]+)>|` +
	`(!(?:[0-9A-Za-z-]*!)?)([0-9A-Za-z#;/?:@&=+$_.~*'()%-]*))`)

// tag reads a tag and returns it in full; ! alone is itself.
func (p *yamlParser) tag() string {
	m := yamlTag.FindStringSubmatch(p.text[p.at:])
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
func (p *yamlParser) tagged(node yamlNode, properties yamlProperties) any {
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

// yamlMapping is a mapping that is being read.
type yamlMapping struct {
	object map[string]any
	merged []any
}

// yamlName returns the name for which a value stands as a key, unless it is a list or a mapping.
func yamlName(v any) (name string, ok bool) {
	if v == nil {
		return "", true
	}
	return scalarText(v)
}

// put adds a value under a name, or keeps what << names.
func (p *yamlParser) put(m *yamlMapping, key, value yamlNode) {
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
		p.add(yamlSize{-1, 0}, key.at) // it is no value
	}
	if _, twice := m.object[key.text]; twice {
		p.fail(key.at, "the name %.100q is there twice", key.text)
	}
	m.object[key.text] = value.value
}

// merge adds what << names: earlier ones first, and none over what is there.
func (p *yamlParser) merge(m *yamlMapping) map[string]any {
	for _, from := range m.merged {
		from := from.(map[string]any)
		p.add(yamlSize{len(from), 0}, p.at)
		for name, v := range from {
			if _, own := m.object[name]; !own {
				m.object[name] = v
			}
		}
	}
	return m.object
}
