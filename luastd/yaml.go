package luastd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
	"go.yaml.in/yaml/v4"

	"obelus/engine/lazyregexp"
	"obelus/luastd/internal/formats"
)

// yaml: the part of YAML that JSON has too. In Lua:
//
//	local yaml = require("yaml")
//	local config = assert(yaml.decode(text))
//	local text = yaml.encode({ name = "x", ports = { 80, 443 } })
//	-- name: x
//	-- ports:
//	--   - 80
//	--   - 443
//
// It reads one document of at most 1 MiB, nested at most 128 deep. go.yaml.in/yaml/v4 parses it,
// and this file makes values of the library's nodes, since the library's own values lose digits
// and follow YAML 1.1. Anchors, aliases and << work as long as the whole, written out, has no more
// than a million values and 64 MiB of text. Text without quotes is read by the core schema of YAML
// 1.2: yes, no, 1_000 and timestamps are text, 010 is ten, 0o10 is eight. Whole numbers stay exact;
// those beyond ±2^53 reach a script as their digits. Names that are not text become it.
// Refused are infinities and NaN, names that are lists or mappings, names given twice, and
// tags other than !!str, !!int, !!float, !!bool, !!null, !!seq, !!map, !!timestamp and
// !!binary; the last two are text. A list or an object of JSON is read as json.decode reads it.
//
// Refused as well, though YAML 1.2 has them: two \u escapes for one character (\U0001F600 is
// read); raw U+0085, U+2028 and U+2029; directives that YAML does not define; a %YAML line with
// another version than 1.1, or 1.2 at the start; anchors of other characters than letters, digits,
// - and _; a line that begins with a tab before its text; more than 50,000 commas and opening
// brackets, if one is a bracket.
var yamlFuncs = []Func{
	{"decode", yamlDecode},
	{"encode", yamlEncode},
}

// yaml.decode(text) → value | nil, err; null alone is json.null
func yamlDecode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	var v any
	var values int
	var err error
	e.aside(L, len(text)/4+1, func(context.Context) { v, values, err = decodeYAML(text) })
	if err != nil {
		return failed(L, "not YAML that can be read: "+err.Error())
	}
	e.charge(L, values)
	if v == nil {
		L.Push(Null)
	} else {
		L.Push(e.Codec.ToLua(v))
	}
	return 1
}

// yaml.encode(value) → text, names sorted, each on a line of its own; text of
// several lines as a block where that keeps it. A value that JSON does not
// have raises.
func yamlEncode(e *Env, L *lua.LState) int {
	v, err := e.Codec.FromLua(L.Get(1), "value")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	var text string
	e.aside(L, 4*weight(v), func(ctx context.Context) {
		text = encodeYAML(v, func(size int) bool { return size > e.maxString() || ctx.Err() != nil })
	})
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

// Bounds of a document. The last two hold once its aliases are written out.
const (
	maxYAML       = 1 << 20 // bytes of the text
	maxYAMLValues = 1 << 20
	maxYAMLText   = 64 << 20 // bytes of all scalars
	maxYAMLDigits = 1000     // of a hexadecimal or octal number, which takes long to convert
	maxYAMLFlow   = 50_000   // commas and opening brackets: the library holds 4 KiB for each
)

// decodeYAML reads one document. It returns its value and about the number of values in it.
func decodeYAML(text string) (v any, values int, err error) {
	if len(text) > maxYAML {
		return nil, 0, fmt.Errorf("it is longer than %d bytes", maxYAML)
	}
	if encoding := formats.WideEncoding(text); encoding != "" {
		return nil, 0, errors.New("it is " + encoding + ": convert it to UTF-8")
	}
	if !utf8.ValidString(text) {
		return nil, 0, errors.New("it is not valid UTF-8")
	}
	if strings.IndexAny(text, "[{") == 0 {
		if v, err := decodeJSON(text); err == nil {
			return v, weight(v), nil
		}
	}
	text = strings.TrimPrefix(text, formats.ByteOrderMark)
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // which belongs to a block at the end
	}
	brackets := strings.Count(text, "[") + strings.Count(text, "{")
	if brackets > 0 && brackets+strings.Count(text, ",") > maxYAMLFlow {
		return nil, 0, fmt.Errorf("it is no JSON, and has brackets and more than %d commas", maxYAMLFlow)
	}
	if i := strings.IndexFunc(text, isForeignToYAML); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return nil, 0, fmt.Errorf("the character %U can't stand in YAML: "+
			"write it as an escape in double quotes, at %s", r, formats.Position(text, i))
	}
	if rest, ok := strings.CutPrefix(text, "%YAML 1.2"); ok {
		text = "%YAML 1.1" + rest // the only version that the library takes; it reads both alike
	}
	return readYAML(text)
}

// readYAML reads the documents of a text, of which one alone has a value.
func readYAML(text string) (v any, values int, err error) {
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, 0, err
	}
	reader := yamlReader{anchored: map[*yaml.Node]yamlValue{}}
	for found := false; ; {
		var document yaml.Node
		if err := loader.Load(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, 0, yamlError(err)
		}
		root := document.Content[0]
		if isEmpty := root.Tag == "!!null" && root.Value == "" && root.Anchor == ""; isEmpty {
			continue
		}
		if found {
			return nil, 0, yamlFault(root, "a second document begins: split the text first")
		}
		found = true
		if v, err = reader.read(root); err != nil {
			return nil, 0, err
		}
	}
	if formats.IsDeeper(v, formats.MaxDepth) {
		return nil, 0, fmt.Errorf("nested deeper than %d", formats.MaxDepth)
	}
	return v, reader.values, nil
}

// isForeignToYAML reports whether the library refuses a character without naming its place, or
// ends a line at it, as YAML 1.1 did.
func isForeignToYAML(r rune) bool {
	isControl := r < ' ' && r != '\n' && r != '\r' && r != '\t'
	return isControl || r == 0x85 || r == 0x2028 || r == 0x2029
}

// yamlFault is an error at a node.
func yamlFault(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s, at line %d column %d", fmt.Sprintf(format, args...), n.Line, n.Column)
}

// yamlError returns an error of the library without the library's name and stages.
func yamlError(err error) error {
	var fault *yaml.LoadError
	if !errors.As(err, &fault) {
		return err
	}
	began := ""
	if from := fault.ContextMark; fault.ContextMsg != "" && from != fault.Mark {
		began = fmt.Sprintf("%s from line %d column %d: ", fault.ContextMsg, from.Line, from.Column)
	}
	return fmt.Errorf("%s%.200s, at line %d column %d", began, fault.Message, fault.Mark.Line, fault.Mark.Column)
}

// yamlReader makes JSON values of the nodes of a document: nil, bool, string, json.Number, []any
// and map[string]any.
type yamlReader struct {
	values, text int                      // so far: values, bytes of scalars; aliases written out
	anchored     map[*yaml.Node]yamlValue // nodes with an anchor that have been read to their end
}

// yamlValue is the value of a node, and what each alias to it adds to values and text.
type yamlValue struct {
	value        any
	values, text int
}

// read returns the value of a node.
func (r *yamlReader) read(n *yaml.Node) (v any, err error) {
	if n.Kind == yaml.AliasNode {
		known, ok := r.anchored[n.Alias]
		if !ok {
			return nil, yamlFault(n, "the alias stands within the value that it names")
		}
		return known.value, r.add(n, known.values, known.text)
	}
	values, text := r.values, r.text
	if err := r.add(n, 1, len(n.Value)); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.SequenceNode:
		v, err = r.list(n)
	case yaml.MappingNode:
		v, err = r.mapping(n)
	default:
		v, err = yamlScalar(n)
	}
	if err != nil {
		return nil, err
	}
	if n.Style&yaml.TaggedStyle != 0 && !isTaggedRight(n.Tag, v) {
		return nil, yamlFault(n, "the tag %.100s has no meaning in JSON before this value", n.Tag)
	}
	if n.Anchor != "" {
		r.anchored[n] = yamlValue{v, r.values - values, r.text - text}
	}
	return v, nil
}

// add counts values and text and holds them to their bounds.
func (r *yamlReader) add(n *yaml.Node, values, text int) error {
	r.values += values
	r.text += text
	if r.values > maxYAMLValues || r.text > maxYAMLText {
		return yamlFault(n, "it has more than %d values or %d bytes of text "+
			"once its aliases are written out", maxYAMLValues, maxYAMLText)
	}
	return nil
}

func (r *yamlReader) list(n *yaml.Node) (_ any, err error) {
	list := make([]any, len(n.Content))
	for i, element := range n.Content {
		if list[i], err = r.read(element); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// mapping reads a mapping with what << brings into it: earlier ones first, and none over a name
// that is there.
func (r *yamlReader) mapping(n *yaml.Node) (any, error) {
	object := make(map[string]any, len(n.Content)/2)
	var merged []any
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		isMerge := key.Tag == "!!merge"
		name := ""
		if !isMerge {
			var err error
			if name, err = r.name(key); err != nil {
				return nil, err
			}
		}
		if _, twice := object[name]; twice && !isMerge {
			return nil, yamlFault(key, "the name %.100q is there twice", name)
		}
		value, err := r.read(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		if !isMerge {
			object[name] = value
		} else if list, ok := value.([]any); ok {
			merged = append(merged, list...)
		} else {
			merged = append(merged, value)
		}
	}
	for _, v := range merged {
		from, ok := v.(map[string]any)
		if !ok {
			return nil, yamlFault(n, "<< is not followed by a mapping, or by a list of them")
		}
		if err := r.add(n, len(from), 0); err != nil {
			return nil, err
		}
		for name, value := range from {
			if _, own := object[name]; !own {
				object[name] = value
			}
		}
	}
	return object, nil
}

// name returns the text of a key as it is written.
func (r *yamlReader) name(key *yaml.Node) (string, error) {
	named := key
	if key.Kind == yaml.AliasNode {
		named = key.Alias
	}
	if named.Kind != yaml.ScalarNode {
		return "", yamlFault(key, "a list or a mapping is the name of a value: names are text")
	}
	_, err := r.read(key)
	r.values-- // it is no value
	return named.Value, err
}

// isTaggedRight reports whether a value is of the kind that its tag says.
func isTaggedRight(tag string, v any) bool {
	switch v := v.(type) {
	case nil:
		return tag == "!!null"
	case bool:
		return tag == "!!bool"
	case json.Number:
		return tag == "!!float" || tag == "!!int" && !strings.ContainsAny(string(v), ".e")
	case []any:
		return tag == "!!seq"
	case map[string]any:
		return tag == "!!map"
	}
	return isTextTag(tag)
}

func isTextTag(tag string) bool {
	return tag == "!!str" || tag == "!!timestamp" || tag == "!!binary" || tag == "!"
}

const yamlQuotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

var (
	yamlInteger  = lazyregexp.New(`^[-+]?[0-9]+$`)
	yamlBased    = lazyregexp.New(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	yamlFloat    = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlInfinite = lazyregexp.New(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// yamlScalar reads a scalar: as text, or by the core schema of YAML 1.2, which the library's own
// tags differ from.
func yamlScalar(n *yaml.Node) (any, error) {
	text := n.Value
	isTagged := n.Style&yaml.TaggedStyle != 0 || n.Tag == "!"
	if isTagged && isTextTag(n.Tag) || !isTagged && n.Style&yamlQuotes != 0 {
		return text, nil
	}
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, nil
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	switch {
	case !strings.ContainsRune("+-.0123456789", rune(text[0])):
	case yamlInteger().MatchString(text):
		digits := strings.TrimLeft(text, "+-0")
		if digits == "" {
			return json.Number("0"), nil
		}
		if text[0] == '-' {
			digits = "-" + digits
		}
		return json.Number(digits), nil
	case yamlBased().MatchString(text):
		if len(text) > maxYAMLDigits {
			return nil, yamlFault(n, "a number has more than %d digits", maxYAMLDigits)
		}
		number, _ := new(big.Int).SetString(text, 0)
		return json.Number(number.String()), nil
	case yamlFloat().MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, yamlFault(n, "%.100s is too large for a number", text)
		}
		if math.Abs(f) > 1<<53 { // without an exponent it would be an exact whole number
			return json.Number(strconv.FormatFloat(f, 'e', -1, 64)), nil
		}
		return json.Number(formats.CompactJSON(f)), nil
	case yamlInfinite().MatchString(text):
		return nil, yamlFault(n, "%s is not a number of JSON", text)
	}
	return text, nil
}
