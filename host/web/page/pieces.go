package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"obelus/engine/visible"
)

// A view marks the parts of it that change: a piece is an element with an id, and a list is an
// element with an id whose children are pieces. The marks are texts between U+0000, which the
// template engine replaces in data, so that no data can hold one.
//
//	{{list "rows"}}<tbody id="rows">
//	{{range .Runs}}{{piece .ID}}<tr id="{{.ID}}">…</tr>{{done}}{{end}}
//	</tbody>{{endlist}}
const (
	markPiece   = "\x00p"
	markDone    = "\x00d"
	markList    = "\x00l"
	markEndList = "\x00e"
)

// pieceMarks are the functions of templates that write marks.
var pieceMarks = template.FuncMap{
	"piece":   func(id string) template.HTML { return mark(markPiece, id) },
	"done":    func() template.HTML { return mark(markDone, "") },
	"list":    func(id string) template.HTML { return mark(markList, id) },
	"endlist": func() template.HTML { return mark(markEndList, "") },
}

func mark(kind, id string) template.HTML {
	// An id is not shown, and has no U+0000.
	return template.HTML(kind + strings.ReplaceAll(id, "\x00", "") + "\x00")
}

// rendered is a view's HTML with its pieces.
type rendered struct {
	text   []byte // with marks
	pieces map[string]string
	lists  map[string][]string // the pieces of each list, in order
}

// whole returns the HTML without marks.
func (v *rendered) whole() template.HTML { return safe(unmarked(v.text)) }

// safe declares text that a template has made to be HTML.
func safe(text []byte) template.HTML {
	return template.HTML(text)
}

// unmarked returns text without its marks.
func unmarked(text []byte) []byte {
	if bytes.IndexByte(text, 0) < 0 {
		return text
	}
	var b bytes.Buffer
	for {
		before, rest, found := bytes.Cut(text, []byte{0})
		b.Write(before)
		if !found {
			return b.Bytes()
		}
		_, text, _ = bytes.Cut(rest, []byte{0})
	}
}

// render executes a view's template, and finds its pieces.
func (p *Page) render(r *http.Request, c *content) (*rendered, error) {
	text, err := execute(p.template(r), c.Template, c.Data)
	if err != nil {
		return nil, err
	}
	return findPieces(text)
}

// execute returns the HTML of a template, with marks. All texts that are shown are visible, see
// [visible.Text].
func execute(t *template.Template, name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return nil, err
	}
	return visibleHTML(b.Bytes()), nil
}

// visibleHTML is [visible.Text] for the texts of HTML that a template has made. Tags and marks stay
// as they are, and so does what stands in a textarea: they have the values that forms send.
func visibleHTML(text []byte) []byte {
	var b bytes.Buffer
	for len(text) > 0 {
		n := bytes.IndexAny(text, "<\x00")
		if n < 0 {
			n = len(text)
		}
		b.WriteString(visible.Text(string(text[:n])))
		if text = text[n:]; len(text) == 0 {
			break
		}
		end := byte('>') // which is escaped in the values of attributes
		if text[0] == 0 {
			end = 0
		}
		n = bytes.IndexByte(text[1:], end) + 2
		if bytes.HasPrefix(text, []byte("<textarea")) {
			n = bytes.Index(text, []byte("</textarea>"))
		}
		b.Write(text[:n])
		text = text[n:]
	}
	return b.Bytes()
}

// findPieces finds the pieces and lists of a text with marks.
func findPieces(text []byte) (*rendered, error) {
	v := &rendered{text: text, pieces: map[string]string{}, lists: map[string][]string{}}
	list, id, from := "", "", 0
	for at := 0; ; {
		i := bytes.IndexByte(text[at:], 0)
		if i < 0 {
			return v, nil
		}
		start := at + i
		length := bytes.IndexByte(text[start+1:], 0)
		if length < 0 {
			return nil, fmt.Errorf("a template has a mark without an end")
		}
		kind, name := string(text[start:start+2]), string(text[start+2:start+1+length])
		at = start + length + 2
		switch kind {
		case markList:
			list = name
			v.lists[list] = []string{}
		case markEndList:
			list = ""
		case markPiece:
			id, from = name, at
			if list != "" {
				v.lists[list] = append(v.lists[list], id)
			}
		case markDone:
			v.pieces[id] = string(text[from:start])
		}
	}
}

// change is an event of a stream: new pieces by their ids, and new orders of lists.
type change struct {
	Lists  map[string][]string `json:"lists,omitempty"`
	Pieces map[string]string   `json:"pieces,omitempty"`
}

// digest identifies the pieces and the orders of the lists.
func (v *rendered) digest() string {
	sum := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(v.pieces)) {
		_, _ = io.WriteString(sum, id+"\x00"+v.pieces[id]+"\x00")
	}
	for _, id := range slices.Sorted(maps.Keys(v.lists)) {
		_, _ = io.WriteString(sum, id+"\x00"+strings.Join(v.lists[id], "\x00")+"\x00\x00")
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// since returns the pieces and lists that are new in a view; all where before is nil.
func (v *rendered) since(before *rendered) (c change, any bool) {
	c = change{map[string][]string{}, map[string]string{}}
	for id, text := range v.pieces {
		if before == nil || before.pieces[id] != text {
			c.Pieces[id] = text
		}
	}
	for id, order := range v.lists {
		if before == nil || strings.Join(before.lists[id], "\x00") != strings.Join(order, "\x00") {
			c.Lists[id] = order
		}
	}
	return c, len(c.Pieces)+len(c.Lists) > 0
}
