package luastd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of YAML text. The parser can't be stopped; it recurses for each level
// and each name of a mapping, copies a mapping for each name in it, and keeps
// the way to every name as text.
const (
	maxYAML       = 1 << 20
	maxYAMLNames  = 10_000                          // in one mapping
	maxYAMLCopies = maxYAMLNames * maxYAMLNames / 2 // of names, for all mappings together
	maxYAMLName   = 1024                            // bytes, as in YAML's own definition
	maxYAMLWays   = 64 << 20                        // bytes
	maxProperties = 4                               // anchors and tags before one value
)

// parseYAML parses text that is safe to parse.
func parseYAML(text string) (file *ast.File, err error) {
	if len(text) > maxYAML {
		return nil, fmt.Errorf("it is longer than %d bytes", maxYAML)
	}
	tokens := lexer.Tokenize(text)
	if err := (&yamlShape{tokens: tokens}).check(); err != nil {
		return nil, err
	}
	file, err = parser.Parse(tokens, 0)
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &at) {
		err = fmt.Errorf("%s, at %s", at.GetMessage(), yamlPlace(at.GetToken()))
	}
	return file, err
}

func yamlPlace(tk *token.Token) string {
	if tk == nil || tk.Position == nil {
		return "its end"
	}
	return fmt.Sprintf("line %d column %d", tk.Position.Line, tk.Position.Column)
}

// yamlShape follows how tokens nest, near enough to hold the bounds.
type yamlShape struct {
	tokens     token.Tokens
	levels     []yamlLevel
	ways       int
	copies     int
	properties int // before the next value
}

// yamlLevel is a list or a mapping that is open.
type yamlLevel struct {
	flow, list bool
	column     int
	names, way int
}

func (s *yamlShape) check() error {
	for i, tk := range s.tokens {
		var err error
		switch tk.Type {
		case token.AnchorType, token.TagType:
			if s.properties++; s.properties > maxProperties {
				return fmt.Errorf("too many anchors and tags before one value, at %s", yamlPlace(tk))
			}
			continue
		case token.MappingKeyType:
			err = errors.New("names after ? are not supported")
		case token.SequenceStartType, token.MappingStartType:
			s.levels = append(s.levels, yamlLevel{flow: true})
		case token.SequenceEndType, token.MappingEndType:
			s.closeFlow()
		case token.SequenceEntryType:
			s.open(yamlLevel{list: true, column: tk.Position.Column})
			s.levels[len(s.levels)-1].way = 8
		case token.MappingValueType:
			if err = s.colon(i); err == nil {
				err = s.name(i)
			}
		case token.CollectEntryType:
		default:
			continue
		}
		if s.properties = 0; err == nil {
			err = s.bounds()
		}
		if err != nil {
			return fmt.Errorf("%w, at %s", err, yamlPlace(tk))
		}
	}
	return nil
}

func (s *yamlShape) closeFlow() {
	for n := len(s.levels) - 1; n >= 0; n-- {
		if s.levels[n].flow {
			s.levels = s.levels[:n]
			return
		}
	}
}

// open closes the block levels that a token in a column ends, and opens one
// unless it is there.
func (s *yamlShape) open(to yamlLevel) {
	n := len(s.levels)
	for n > 0 && !s.levels[n-1].flow && (s.levels[n-1].column > to.column || s.levels[n-1].column == to.column && s.levels[n-1].list && !to.list) {
		n--
	}
	s.levels = s.levels[:n]
	if n > 0 && (s.levels[n-1].flow || s.levels[n-1].column == to.column && s.levels[n-1].list == to.list) {
		return
	}
	s.levels = append(s.levels, to)
}

// colon refuses a colon at i that the scanner took for the end of a name: between { and }
// it is a part of it, unless something follows that can't be, or quotes end the name.
func (s *yamlShape) colon(i int) error {
	if i == 0 || i+1 == len(s.tokens) || !slices.ContainsFunc(s.levels, func(l yamlLevel) bool { return l.flow }) {
		return nil
	}
	at, before, next := s.tokens[i], s.tokens[i-1], s.tokens[i+1]
	switch before.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		return nil
	}
	adjacent := next.Position.Line == at.Position.Line && next.Position.Column == at.Position.Column+1
	if !adjacent || structural(next.Type) && next.Type != token.MappingValueType && next.Type != token.SequenceEntryType {
		return nil
	}
	return errors.New("within { } and [ ] a blank follows the colon after a name: without it the colon is a part of the name, which then wants quotes")
}

// name is the colon at i, after a name.
func (s *yamlShape) name(i int) error {
	length, first := 0, i
	for first > 0 && i-first < 2*maxProperties+1 && s.tokens[first-1].Position.Line == s.tokens[i].Position.Line && !structural(s.tokens[first-1].Type) {
		first--
		length += len(s.tokens[first].Value)
	}
	if length > maxYAMLName {
		return fmt.Errorf("a name is longer than %d bytes", maxYAMLName)
	}
	s.open(yamlLevel{column: s.tokens[first].Position.Column})
	top := &s.levels[len(s.levels)-1]
	top.way = length + 3
	if top.flow {
		return nil
	}
	top.names++
	if s.copies += top.names; s.copies > maxYAMLCopies {
		return fmt.Errorf("a mapping has more than %d names, or several have almost as many", maxYAMLNames)
	}
	return nil
}

func structural(t token.Type) bool {
	switch t {
	case token.SequenceStartType, token.MappingStartType, token.SequenceEndType, token.MappingEndType,
		token.SequenceEntryType, token.MappingValueType, token.CollectEntryType, token.MappingKeyType:
		return true
	}
	return false
}

func (s *yamlShape) bounds() error {
	if len(s.levels) > maxJSONDepth {
		return fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	for _, level := range s.levels {
		s.ways += level.way
	}
	if s.ways > maxYAMLWays {
		return errors.New("its names are too long, taken together with those that they lie below")
	}
	return nil
}
