package expr

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"obelus/engine/lazyregexp"
	"obelus/store"
)

// MaxExpression bounds an expression's source, in bytes. The parser recurses,
// so its input must be short before it sees it.
const MaxExpression = 4096

// standIn begins the names that stand for paths in what expr parses: it knows
// the letter, but not the dagger, and both are as wide.
const standIn = "ǂ"

// firstName numbers the names: one letter each, so that even the shortest path
// has room for it and every column stays true.
const firstName = 0x4E00

// names finds the names that stand for paths, padding and all.
var names = lazyregexp.New(standIn + `[\x{4E00}-\x{9FFF}]_*`)

// Error is an expression that can't be used, with the place that is wrong.
type Error struct {
	Source  string // as written, dagger and all
	Column  int    // from 1, in characters; 0 if the whole is meant
	Message string
}

func (e *Error) Error() string {
	if e.Column == 0 || strings.Contains(e.Source, "\n") {
		return fmt.Sprintf("%s in %q", e.Message, e.Source)
	}
	return fmt.Sprintf("%s\n    %s\n    %s^", e.Message, strings.ReplaceAll(e.Source, "\t", " "), strings.Repeat(" ", e.Column-1))
}

// Class implements the interface of [store.ClassOf].
func (e *Error) Class() store.Class { return store.Usage }

// source is an expression whose paths have been read: each stands in text as
// one name of the same width.
type source struct {
	given string
	text  string
	paths []store.Path
}

func (s *source) errorAt(column int, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	message = names().ReplaceAllStringFunc(message, func(name string) string {
		if i, ok := s.path(name); ok {
			return s.paths[i].String()
		}
		return name
	})
	return &Error{s.given, column, message}
}

func (s *source) errorIn(node ast.Node, format string, args ...any) error {
	return s.errorAt(node.Location().From+1, format, args...)
}

// dashed finds keys of paths as other languages have them, in which expr sees an
// operator.
var dashed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\p{L}\p{N}_\]]\.([\p{L}_][\p{L}\p{N}_]*(?:-[\p{L}_][\p{L}\p{N}_]*)+)`)
})

// meant returns a hint for a node that is no reference: a key with a hyphen, or a reference without
// its dagger.
func (s *source) meant(node ast.Node) string {
	at := node.Location().From
	for _, found := range dashed().FindAllStringSubmatchIndex(s.given, -1) {
		key := s.given[found[2]:found[3]]
		if from := utf8.RuneCountInString(s.given[:found[2]]); from <= at && at < from+utf8.RuneCountInString(key) {
			return fmt.Sprintf(" (a reference begins with †, and a key of other characters than letters, digits and _ is quoted: [%q])", key)
		}
	}
	if _, ok := node.(*ast.IdentifierNode); ok {
		return " (a reference begins with †)"
	}
	return ""
}

// wrap turns an error of expr into one about the expression as written.
func (s *source) wrap(err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return s.errorAt(0, "%s", err)
	}
	if ours := ownError(""); errors.As(err, &ours) {
		return s.errorAt(at.From+1, "%s", ours)
	}
	return s.errorAt(at.From+1, "%s", reworded(at.Message))
}

func (s *source) name(i int) string {
	return standIn + string(rune(firstName+i))
}

// path gives the path that a name stands for.
func (s *source) path(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, standIn)
	if !ok {
		return 0, false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	i := int(r) - firstName
	return i, i >= 0 && i < len(s.paths)
}

// readSource reads the paths of an expression, by the grammar of protocol §2.
func readSource(given string) (*source, error) {
	s := &source{given: given}
	switch {
	case len(given) > MaxExpression:
		return nil, &Error{Source: strings.ToValidUTF8(given[:40], "") + "…", Message: fmt.Sprintf("an expression of %d bytes is too long: at most %d", len(given), MaxExpression)}
	case !utf8.ValidString(given):
		return nil, s.errorAt(0, "the expression is not valid UTF-8")
	}
	text := given
	if strings.HasPrefix(text, store.Dagger+"(") {
		text = " " + strings.TrimPrefix(text, store.Dagger)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n, err := s.read(&b, text, i)
		if err != nil {
			return nil, err
		}
		i += n
	}
	s.text = b.String()
	return s, nil
}

// read copies the token at text[i:] into b and returns its length in bytes: a path, a string
// literal, or one character.
func (s *source) read(b *strings.Builder, text string, i int) (int, error) {
	rest := text[i:]
	column := utf8.RuneCountInString(text[:i]) + 1
	switch {
	case strings.HasPrefix(rest, store.Dagger):
		path, n, err := store.ScanPath(rest)
		if err != nil {
			var bad *store.PathError
			if errors.As(err, &bad) {
				hint := ""
				if strings.HasSuffix(rest[:bad.Offset], ".") && bad.Offset < len(rest) && !strings.ContainsRune(". (", rune(rest[bad.Offset])) {
					hint = ` (one of other characters than letters, digits and _ is quoted: ["…"])`
				}
				return 0, s.errorAt(column+utf8.RuneCountInString(rest[:bad.Offset]), "%s%s", bad.Message, hint)
			}
			return 0, err
		}
		at := slices.Index(s.paths, path)
		if at < 0 {
			at, s.paths = len(s.paths), append(s.paths, path)
		}
		b.WriteString(s.name(at))
		b.WriteString(strings.Repeat("_", utf8.RuneCountInString(rest[:n])-2))
		return n, nil
	case strings.HasPrefix(rest, standIn), strings.HasPrefix(rest, "‡"):
		r, _ := utf8.DecodeRuneInString(rest)
		return 0, s.errorAt(column, "unexpected %q: a reference begins with †", r)
	case rest[0] == '"', rest[0] == '\'', rest[0] == '`':
		return copyUntil(b, rest, rest[:1]), nil
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"): // expr would skip a comment
		return 0, s.errorAt(column, "%s is no operator, and an expression has no comments: / divides, as in †(floor(†state.n / 2)), and || gives the first that exists", rest[:2])
	}
	_, n := utf8.DecodeRuneInString(rest)
	b.WriteString(rest[:n])
	return n, nil
}

// copyUntil copies a literal to its end, escapes and all.
func copyUntil(b *strings.Builder, rest, end string) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && end != "`":
			i++
		case strings.HasPrefix(rest[i:], end):
			b.WriteString(rest[:i+len(end)])
			return i + len(end)
		}
	}
	b.WriteString(rest)
	return len(rest)
}

// parse gives expr's tree of the expression.
func (s *source) parse(config *conf.Config) (*parser.Tree, error) {
	tree, err := parser.ParseWithConfig(s.text, config)
	if err != nil {
		return nil, s.wrap(err)
	}
	return tree, nil
}
