package luastd

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// Bounds of what aliases may make of a document.
const (
	maxYAMLValues = 1 << 20
	maxYAMLText   = 64 << 20
)

// decodeYAML reads one document and counts its values.
func decodeYAML(text string) (v any, values int, err error) {
	defer func() {
		if recover() != nil { // text that the library is not ready for
			v, values, err = nil, 0, errors.New("it is not well formed")
		}
	}()
	if !utf8.ValidString(text) {
		return nil, 0, errors.New("it is not valid UTF-8")
	}
	file, err := parseYAML(strings.TrimPrefix(text, byteOrderMark))
	if err != nil {
		return nil, 0, err
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, 0, fmt.Errorf("a second document begins at %s: split the text first", yamlPlace(doc.Start))
		}
		root = doc.Body
	}
	r := yamlReader{anchors: map[string]anchored{}}
	if root != nil {
		v, err = r.value(root)
	}
	if err == nil && deep(v, maxJSONDepth) {
		err = fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	return v, r.size.values, err
}

// yamlReader makes JSON values of a document's nodes.
type yamlReader struct {
	anchors map[string]anchored
	size    yamlSize
}

// anchored is what an anchor names, and what an alias to it adds.
type anchored struct {
	value any
	size  yamlSize
}

type yamlSize struct{ values, text int }

func (r *yamlReader) add(more yamlSize) error {
	r.size.values += more.values
	r.size.text += more.text
	if r.size.values > maxYAMLValues || r.size.text > maxYAMLText {
		return fmt.Errorf("it has more than %d values or %d bytes of text once its aliases are written out", maxYAMLValues, maxYAMLText)
	}
	return nil
}

func (r *yamlReader) value(node ast.Node) (any, error) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return r.mapping(n, n.Values)
	case *ast.MappingValueNode:
		return r.mapping(n, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		return r.sequence(n)
	case *ast.AnchorNode:
		return r.anchor(n)
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		return r.tagged(n)
	}
	return r.scalar(node)
}

func (r *yamlReader) anchor(n *ast.AnchorNode) (any, error) {
	before := r.size
	v, err := r.value(n.Value)
	if err != nil {
		return nil, err
	}
	size := yamlSize{r.size.values - before.values, r.size.text - before.text}
	r.anchors[n.Name.GetToken().Value] = anchored{v, size}
	return v, nil
}

func (r *yamlReader) alias(n *ast.AliasNode) (any, error) {
	name := n.Value.GetToken().Value
	a, ok := r.anchors[name]
	if !ok {
		return nil, fmt.Errorf("nothing before %s is anchored as &%s", yamlPlace(n.Start), name)
	}
	return a.value, r.add(a.size)
}

func (r *yamlReader) sequence(n *ast.SequenceNode) (any, error) {
	if err := r.add(yamlSize{1, 0}); err != nil {
		return nil, err
	}
	list := make([]any, len(n.Values))
	for i, element := range n.Values {
		var err error
		if list[i], err = r.value(element); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *yamlReader) mapping(n ast.Node, pairs []*ast.MappingValueNode) (any, error) {
	if err := r.add(yamlSize{1, 0}); err != nil {
		return nil, err
	}
	object := map[string]any{}
	var merged []any
	for _, pair := range pairs {
		v, err := r.value(pair.Value)
		if err != nil {
			return nil, err
		}
		if pair.Key.IsMergeKey() {
			list, err := mergedList(v, pair.Key)
			if err != nil {
				return nil, err
			}
			merged = append(merged, list...)
			continue
		}
		name, err := r.name(pair.Key)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%q is there twice, at %s", name, yamlPlace(pair.Key.GetToken()))
		}
		object[name] = v
	}
	for _, from := range merged { // earlier ones first, and none over what is said here
		from := from.(map[string]any)
		if err := r.add(yamlSize{len(from), 0}); err != nil {
			return nil, err
		}
		for name, v := range from {
			if _, own := object[name]; !own {
				object[name] = v
			}
		}
	}
	return object, nil
}

// mergedList is what << names: mappings, one or a list of them.
func mergedList(v any, key ast.Node) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		if _, ok := v.(map[string]any); !ok {
			return nil, fmt.Errorf("<< at %s is not followed by a mapping", yamlPlace(key.GetToken()))
		}
	}
	return list, nil
}

// name is a mapping's key as text.
func (r *yamlReader) name(key ast.Node) (string, error) {
	switch n := key.(type) {
	case *ast.StringNode:
		return n.Value, r.add(yamlSize{0, len(n.Value)})
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		text := n.GetToken().Value
		return text, r.add(yamlSize{0, len(text)})
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		v, err := r.value(n)
		if err != nil {
			return "", err
		}
		if text, ok := scalarText(v); ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("the name at %s is not text", yamlPlace(key.GetToken()))
}
