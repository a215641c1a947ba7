package luastd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/luastd/internal/formats"
)

// template: text with places for values. In Lua:
//
//	local template = require("template")
//	local text = assert(template.render([[
//	Dear {{customer.name}},
//	{{#each orders}}
//	  {{@index}}. {{title}}{{#if paid}} (paid){{else}} - {{price}} EUR{{/if}}
//	{{else}}
//	  no orders
//	{{/each}}
//	]], { customer = { name = "Ada" }, orders = { { title = "Book", price = 12 } } }))
//
// A template is text and tags, {{ and }} around one of:
//
//	name, a.b.c, list.1   the value there, a text, a number or a boolean; null is
//	                      nothing; parts are separated by dots, places in a list
//	                      count from 1
//	value | filter | …    html escapes & < > " and '; json writes any value as JSON
//	"text"                that text: {{"{{"}} is how {{ gets into the result
//	! words               nothing
//	#each value           the text up to {{/each}}, for each element of a list, or of a table
//	                      in the order of its names; {{else}} begins the text in
//	                      place of an empty or null one
//	#if value             the text up to {{/if}}, unless the value is false, null, unknown or
//	                      an empty table; {{else}} begins the text for that case;
//	                      "" and 0 are true, as in Lua
//
// Nothing is escaped that no filter escapes. Within each, names mean the
// fields of the element if it has them, else the same as outside; {{this}}
// is the element, {{@index}} its number, {{@key}} its name. A line with nothing
// but one of #, else, / and ! on it leaves no line behind. An unknown name is an
// error, save in #if. Blocks nest at most 50 deep; a template has at most 1 MiB.
var templateFuncs = []Func{
	{"render", templateRender},
}

// template.render(template, data) → text | nil, err; the error names the line
func templateRender(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	data, err := e.Codec.FromLua(L.CheckTable(2), "data")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	e.charge(L, len(text)/4+1)
	nodes, err := parseTemplate(text)
	if err != nil {
		return failed(L, err.Error())
	}
	r := renderer{write: e.maxString(), charge: func(units int) { e.charge(L, units) }}
	r.json = func(v any) (text string) {
		e.aside(L, weight(v), func(context.Context) { text = formats.CompactJSON(v) })
		return text
	}
	r.scopes = []scope{{value: data}}
	if err := r.render(nodes); err == errTooLong {
		e.limit(L, e.maxString()+1)
	} else if err != nil {
		return failed(L, err.Error())
	}
	e.limit(L, r.b.Len())
	L.Push(lua.LString(r.b.String()))
	return 1
}

var errTooLong = errors.New("too long")

// renderer makes a text of parsed nodes.
type renderer struct {
	b      strings.Builder
	write  int // bytes at most
	charge func(units int)
	json   func(v any) string
	scopes []scope // innermost last
}

// scope is what names mean at a place: the data, or an element of an each.
type scope struct {
	value any
	each  bool
	index int
	key   any // the name of an element of a table; nil for one of a list
}

func (r *renderer) render(nodes []templateNode) error {
	for i := range nodes {
		r.charge(3)
		var err error
		switch n := &nodes[i]; n.kind {
		case textNode:
			err = r.text(n.text)
		case valueNode:
			err = r.value(n)
		case ifNode:
			v, known := r.find(n.path)
			if body := n.body; known && truth(v) {
				err = r.render(body)
			} else {
				err = r.render(n.other)
			}
		case eachNode:
			err = r.each(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) text(text string) error {
	r.charge(len(text) / 16)
	if r.b.Len()+len(text) > r.write {
		return errTooLong
	}
	r.b.WriteString(text)
	return nil
}

func (r *renderer) value(n *templateNode) error {
	v, known := r.find(n.path)
	if !known {
		return n.unknown()
	}
	text, ok := formats.ScalarText(v)
	for i, filter := range n.filters {
		switch {
		case filter == "json" && i == 0:
			text, ok = r.json(v), true
		case filter == "json":
			text = r.json(text)
		case filter == "html":
			text = html.EscapeString(text)
		}
		if r.charge(len(text)/16 + 1); len(text) > r.write { // each makes the text longer
			return errTooLong
		}
	}
	if !ok && v != nil {
		return fmt.Errorf("line %d: %s is a table: write {{%s | json}}, or a field of it", n.line, n.name(), n.name())
	}
	return r.text(text)
}

func (r *renderer) each(n *templateNode) error {
	v, known := r.find(n.path)
	if !known {
		return n.unknown()
	}
	var elements []scope
	switch v := v.(type) {
	case nil:
	case []any:
		for i, element := range v {
			elements = append(elements, scope{element, true, i + 1, nil})
		}
	case map[string]any:
		for i, key := range slices.Sorted(maps.Keys(v)) {
			elements = append(elements, scope{v[key], true, i + 1, key})
		}
	default:
		return fmt.Errorf("line %d: %s is not a table", n.line, n.name())
	}
	if len(elements) == 0 {
		return r.render(n.other)
	}
	r.charge(len(elements))
	for _, element := range elements {
		r.scopes = append(r.scopes, element)
		if err := r.render(n.body); err != nil {
			return err
		}
		r.scopes = r.scopes[:len(r.scopes)-1]
	}
	return nil
}

// find is the value of a path: its first name in the innermost scope that
// knows it, and the way on from there.
func (r *renderer) find(path []string) (v any, known bool) {
	inner := r.scopes[len(r.scopes)-1]
	switch name := path[0]; {
	case name == "this" && inner.each:
		v, known = inner.value, true
	case name == "@index" && inner.each:
		v, known = json.Number(strconv.Itoa(inner.index)), true
	}
	for i := len(r.scopes) - 1; i >= 0 && !known; i-- {
		if v = r.scopes[i].key; path[0] == "@key" && v != nil {
			known = true
		} else {
			v, known = field(r.scopes[i].value, path[0])
		}
	}
	for _, name := range path[1:] {
		if known {
			v, known = field(v, name)
		}
	}
	r.charge(len(path) + len(r.scopes))
	return v, known
}

func field(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		found, ok := v[name]
		return found, ok
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 1 && i <= len(v) {
			return v[i-1], true
		}
	}
	return nil, false
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
