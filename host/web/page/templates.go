package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"strings"
	"sync"

	"obelus/engine/numeral"
	"obelus/engine/visible"
	"obelus/host/web/internal/mount"
)

//go:embed templates/*.html assets/*
var files embed.FS

// parsed is the templates, without the functions that depend on where the page is mounted.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(funcs("")).ParseFS(files, "templates/*.html"))
})

// mostMounts bounds how many sets of templates are kept, one for each place at which the page is
// mounted.
const mostMounts = 8

var mounts = struct {
	sync.Mutex
	byBase map[string]*template.Template
}{byBase: map[string]*template.Template{}}

// template returns the templates, with links for the place at which a request found the page.
func (p *Page) template(r *http.Request) *template.Template {
	base := mount.Prefix(r)
	mounts.Lock()
	defer mounts.Unlock()
	if t := mounts.byBase[base]; t != nil {
		return t
	}
	t := template.Must(parsed().Clone()).Funcs(funcs(base))
	if len(mounts.byBase) < mostMounts {
		mounts.byBase[base] = t
	}
	return t
}

func funcs(base string) template.FuncMap {
	all := template.FuncMap{
		"link":      func(parts ...any) string { return link(base, parts...) },
		"fileLink":  func(parts ...any) string { return fileLink(base, parts...) },
		"ago":       ago,
		"duration":  duration,
		"thousands": func(n any) string { return numeral.Thousands(reflect.ValueOf(n).Int()) },
		"json":      oneLine,
		"cut":       cutText,
		"dict":      dict,
		"add":       func(a, b int) int { return a + b },
		"shape":     shape,
		"visible":   visible.Text,
		"command":   commandOf,
		"usage":     usageText,
		"join":      strings.Join,
	}
	maps.Copy(all, pieceMarks)
	return all
}

// link returns an address below base: its segments, and after one that is "?" the names and values
// of its query. Values that are empty, false or 0 are left out.
func link(base string, parts ...any) string { return addressBelow(base, url.PathEscape, parts) }

// fileLink is [link] for the path of a file: each part may be several segments.
func fileLink(base string, parts ...any) string {
	return addressBelow(base, func(path string) string {
		segments := strings.Split(path, "/")
		for i, segment := range segments {
			segments[i] = url.PathEscape(segment)
		}
		return strings.Join(segments, "/")
	}, parts)
}

func addressBelow(base string, escape func(string) string, parts []any) string {
	address := base
	for i, part := range parts {
		if part == "?" {
			return address + queryOf(parts[i+1:])
		}
		address += "/" + escape(fmt.Sprint(part))
	}
	return address
}

func queryOf(pairs []any) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" && value != "0" && value != "false" {
			query.Add(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// dict makes a map of names and values, as the data of a template within another one.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// asset is a style sheet or a script.
type asset struct {
	Name string // with its digest, so that browsers may keep it for good
	text []byte
	kind string
}

// readAssets returns the assets by their plain names.
func readAssets() map[string]asset {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	all := map[string]asset{}
	entries, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // they are embedded
	}
	for _, e := range entries {
		text, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		digest := sha256.Sum256(text)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "-" + hex.EncodeToString(digest[:6]) + ext
		all[strings.TrimSuffix(e.Name(), ext)] = asset{Name: name, text: text, kind: kinds[ext]}
	}
	return all
}

// asset answers with an asset.
func (p *Page) asset(w http.ResponseWriter, r *http.Request) error {
	for _, a := range p.assets {
		if a.Name == r.PathValue("name") {
			w.Header().Set("Content-Type", a.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			_, err := w.Write(a.text)
			return err
		}
	}
	return p.Fail(w, r, errNoPage)
}
