package luastd

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar is a value that is neither a list nor a mapping.
func (r *yamlReader) scalar(node ast.Node) (any, error) {
	text, plain, err := yamlScalar(node)
	if err != nil {
		return nil, err
	}
	if err := r.add(yamlSize{1, len(text)}); err != nil {
		return nil, err
	}
	if !plain {
		return text, nil
	}
	return resolve(text, node)
}

// yamlScalar is the text of a scalar; plain tells that it has no quotes.
func yamlScalar(node ast.Node) (text string, plain bool, err error) {
	switch n := node.(type) {
	case *ast.StringNode:
		text, plain = n.Value, n.Token.Type != token.SingleQuoteType && n.Token.Type != token.DoubleQuoteType
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.NullNode:
		return "", true, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text, plain = n.GetToken().Value, true
	default:
		return "", false, fmt.Errorf("what stands at %s is not of JSON's kinds", yamlPlace(node.GetToken()))
	}
	if !utf8.ValidString(text) {
		return "", false, fmt.Errorf("the text at %s is not valid UTF-8", yamlPlace(node.GetToken()))
	}
	return text, plain, nil
}

var (
	yamlInteger = regexp.MustCompile(`^[-+]?[0-9]+$`)
	yamlBased   = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	yamlFloat   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlNoJSON  = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// resolve reads a plain scalar by the core schema of YAML 1.2.
func resolve(text string, node ast.Node) (any, error) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, nil
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	switch {
	case len(text) > 400: // no number that anybody means; turning it into one takes long
		return text, nil
	case yamlInteger.MatchString(text), yamlBased.MatchString(text):
		base := 10
		if len(text) > 1 && (text[1] == 'o' || text[1] == 'x') {
			base = 0
		}
		n, _ := new(big.Int).SetString(text, base)
		return json.Number(n.String()), nil
	case yamlFloat.MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s at %s is too large for a number", text, yamlPlace(node.GetToken()))
		}
		if math.Abs(f) > 1<<53 { // without an exponent it would be an exact whole number
			return json.Number(strconv.FormatFloat(f, 'e', -1, 64)), nil
		}
		return json.Number(compactJSON(f)), nil
	case yamlNoJSON.MatchString(text):
		return nil, fmt.Errorf("%s at %s is not a number of JSON", text, yamlPlace(node.GetToken()))
	}
	return text, nil
}

// tagged is a value whose kind is said.
func (r *yamlReader) tagged(n *ast.TagNode) (any, error) {
	tag := n.Start.Value
	wrong := fmt.Errorf("what %s stands before at %s is not one", tag, yamlPlace(n.Start))
	switch tag {
	case "!!seq", "!!map":
		v, err := r.value(n.Value)
		if _, list := v.([]any); err == nil && list != (tag == "!!seq") {
			err = wrong
		}
		return v, err
	case "!!str", "!!timestamp", "!!binary", "!!int", "!!float", "!!bool", "!!null":
	default:
		return nil, fmt.Errorf("the tag %s at %s has no meaning in JSON", tag, yamlPlace(n.Start))
	}
	text, _, err := yamlScalar(n.Value)
	if err != nil {
		return nil, err
	}
	if err := r.add(yamlSize{1, len(text)}); err != nil {
		return nil, err
	}
	if tag == "!!str" || tag == "!!timestamp" || tag == "!!binary" {
		return text, nil
	}
	v, err := resolve(text, n)
	kind := "!!null"
	switch v := v.(type) {
	case string:
		kind = "!!str"
	case bool:
		kind = "!!bool"
	case json.Number:
		if kind = "!!int"; tag == "!!float" || strings.ContainsAny(string(v), ".eE") {
			kind = "!!float"
		}
	}
	if err == nil && kind != tag {
		err = wrong
	}
	return v, err
}
