package api

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"obelus/engine/visible"
)

//go:embed page.html
var pageText string

// Style is the style sheet of the page.
//
//go:embed page.css
var Style []byte

var page = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// section is a subject of the page.
type section struct {
	Tag
	Routes []shown
}

// shown is an operation as the page shows it.
type shown struct {
	Operation
	Fields     []shownField // of the body
	BodySchema string       // of the body as JSON, where it has no fields
	Answers    []shownAnswer
	Curl       string
}

type shownField struct {
	Name, Type, About string
	Required          bool
}

type shownAnswer struct {
	Answer
	Title  string
	Fields []shownField
	JSON   string
}

// WritePage writes the page about operations. base is the URL that paths begin with, for examples,
// and text is about all of them.
func WritePage(w io.Writer, all []Operation, base, text string) error {
	var sections []section
	for _, tag := range Tags {
		s := section{Tag: tag}
		for _, o := range all {
			if o.Tag == tag.Name {
				s.Routes = append(s.Routes, show(o, base))
			}
		}
		sections = append(sections, s)
	}
	return page().Execute(w, map[string]any{"Sections": sections, "Text": text})
}

func show(o Operation, base string) shown {
	s := shown{Operation: o, Curl: curl(&o, base)}
	if s.Fields = fieldsOf(o.Body); s.Fields == nil && len(o.Body) > 0 && o.Body["properties"] == nil {
		s.BodySchema = indented(o.Body)
	}
	for _, a := range o.Answers {
		s.Answers = append(s.Answers, showAnswer(a))
	}
	return s
}

func showAnswer(a Answer) shownAnswer {
	s := shownAnswer{Answer: a, Title: fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status))}
	if a.Schema != nil {
		s.Fields = fieldsOf(a.Schema)
		if items, ok := a.Schema["items"].(map[string]any); ok && s.Fields == nil {
			s.Fields, s.Title = fieldsOf(items), s.Title+", a list of"
		}
		s.JSON = indented(a.Schema)
	}
	return s
}

// fieldsOf lists the fields of an object's schema; nil for any other.
func fieldsOf(s Schema) (fields []shownField) {
	properties, _ := s["properties"].(map[string]any)
	required := map[string]bool{}
	switch names := s["required"].(type) {
	case []any:
		for _, name := range names {
			required[fmt.Sprint(name)] = true
		}
	case []string:
		for _, name := range names {
			required[name] = true
		}
	}
	for name, v := range properties {
		field, _ := v.(map[string]any)
		about, _ := field["description"].(string)
		fields = append(fields, shownField{Name: name, Type: typeOf(field), About: about, Required: required[name]})
	}
	slices.SortFunc(fields, func(a, b shownField) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return fields
}

// typeOf names the type of a schema's values.
func typeOf(s Schema) string {
	switch kind := s["type"].(type) {
	case string:
		return kind
	case []any:
		var names []string
		for _, name := range kind {
			names = append(names, fmt.Sprint(name))
		}
		slices.SortStableFunc(names, func(a, b string) int { // null last
			return cmp.Compare(strings.Index("null", a), strings.Index("null", b))
		})
		if len(names) < 6 { // there are no more types
			return strings.Join(names, " or ")
		}
		return "any"
	}
	if options, ok := s["anyOf"].([]any); ok {
		var names []string
		for _, option := range options {
			below, _ := option.(map[string]any)
			names = append(names, typeOf(below))
		}
		return strings.Join(names, " or ")
	}
	if s["enum"] != nil || s["const"] != nil {
		return "string"
	}
	return "any"
}

func indented(s Schema) string {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}

// curl returns a command line that makes a request of an operation.
func curl(o *Operation, base string) string {
	path := o.Path
	for _, p := range o.Parameters {
		path = strings.NewReplacer("{"+p.Name+"}", p.Example, "{"+p.Name+"...}", p.Example).Replace(path)
	}
	var b strings.Builder
	b.WriteString("curl")
	if o.Role != "" {
		b.WriteString(` -H "Authorization: Bearer $TOKEN"`)
	}
	switch {
	case o.Method == http.MethodPost && o.Example == "":
		b.WriteString(" -d '{}'")
	case o.Method == http.MethodPost:
		b.WriteString(" -d " + visible.Word(o.Example))
	case o.Method != http.MethodGet:
		b.WriteString(" -X " + o.Method)
	}
	url := base + path
	if o.Method == http.MethodGet && o.Example != "" {
		url = visible.Word(url + o.Example)
	}
	for _, a := range o.Answers {
		if a.Type == "text/event-stream" {
			b.WriteString(" -N")
		}
	}
	return b.String() + " " + url
}
