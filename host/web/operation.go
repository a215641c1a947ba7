package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"obelus/host"
	"obelus/host/internal/setting"
	"obelus/host/web/internal/api"
	"obelus/store"
)

// operation is a request that the server answers. The route, the check of its role, the reading of
// the request, the descriptions for clients and the line of help are made of this one value.
//
// A request is read into a struct, whose tags are those of package setting. The tag that names a
// field says where it stands: path for a part of the path, query for a parameter, json for a field
// of the body.
type operation struct {
	ID      string    // a name for programs
	Route   string    // method and path, as of an [http.ServeMux]
	Role    host.Role // that a request needs; without it MayRead for a GET, MayRun for all others
	Open    bool      // whether a request needs no role
	Tag     string    // one of [api.Tags]; empty for a page, which clients are not told of
	Summary string    // a line
	Detail  string    // more about it; may be empty
	Example string    // of a body, or a query that begins with ?; may be empty

	Answer  string              // says what the answer is
	Type    string              // its media type; empty for JSON
	Schema  func() api.Schema   // of the answer; without it, that of its Go type
	Answers func() []api.Answer // in place of these three

	Body     api.Schema // of a body that is not read into the struct
	BodyType string     // its media type; empty for JSON

	// Once is set for a GET whose work is done before there is room for the answer: it waits for
	// something else, or must not wait at all.
	Once bool

	in     reflect.Type // nil for an operation that ignores the query
	out    reflect.Type // nil for an answer of its own
	handle handler
}

// handler answers a request.
type handler func(*Server, http.ResponseWriter, *http.Request) error

// answering returns an operation that answers with the value of a function, as JSON. For a GET the
// function may be called several times, until there is room for the answer.
func answering[In, Out any](o operation, do func(*Server, context.Context, In) (Out, error)) operation {
	o.out = reflect.TypeFor[Out]()
	isRepeatable := strings.HasPrefix(o.Route, "GET ") && !o.Once
	return handling(o, func(s *Server, w http.ResponseWriter, r *http.Request, in In) error {
		produce := func(ctx context.Context) ([]byte, error) {
			out, err := do(s, ctx, in)
			if err != nil {
				return nil, err
			}
			if l, ok := any(out).(interface{ end() []byte }); ok {
				return l.end(), nil
			}
			return append(store.EncodeJSON(out), '\n'), nil
		}
		if isRepeatable {
			return s.respondText(w, r, produce)
		}
		release(r)
		text, err := produce(r.Context())
		if err != nil {
			return err
		}
		if len(text) <= smallPiece { // what was done must be told even if there is no room
			return writeJSON(w, http.StatusOK, text)
		}
		return s.respondText(w, r, func(context.Context) ([]byte, error) { return text, nil })
	})
}

// handling returns an operation whose function writes the answer.
func handling[In any](o operation, do func(*Server, http.ResponseWriter, *http.Request, In) error) operation {
	o.in = reflect.TypeFor[In]()
	o.handle = func(s *Server, w http.ResponseWriter, r *http.Request) error {
		var in In
		if err := o.readURL(r, &in); err != nil {
			return err
		}
		if of, ok := any(in).(interface{ existing() string }); ok {
			if _, err := s.log.Head(r.Context(), of.existing()); err != nil {
				return err
			}
		}
		if o.hasFields() {
			if err := readObject(r, &in); err != nil {
				return err
			}
		}
		return do(s, w, r, in)
	}
	return o
}

// method returns the method of the operation, and path its path.
func (o *operation) method() string { method, _, _ := strings.Cut(o.Route, " "); return method }
func (o *operation) path() string   { _, path, _ := strings.Cut(o.Route, " "); return path }

// role returns the role that a request needs.
func (o *operation) role() host.Role {
	switch {
	case o.Open:
		return host.NoRole
	case o.Role != host.NoRole:
		return o.Role
	case o.method() == http.MethodGet:
		return host.MayRead
	}
	return host.MayRun
}

// tagged returns operations of a subject.
func tagged(tag string, all ...operation) []operation {
	for i := range all {
		all[i].Tag = tag
	}
	return all
}

// hasFields reports whether a body is read into the struct.
func (o *operation) hasFields() bool {
	return o.in != nil && o.Body == nil && o.method() == http.MethodPost
}

// Forms of the parts of a request.
var (
	pathForm  = setting.Form{Noun: "part", Root: "the path", Tag: "path", Kinds: kinds}
	queryForm = setting.Form{Noun: "parameter", Root: "the query", Tag: "query", Kinds: kinds}
	bodyForm  = setting.Form{Noun: "field", Root: "the body", JSON: true, Kinds: kinds}
)

// readURL reads the path and the query of a request into a struct.
func (o *operation) readURL(r *http.Request, into any) error {
	path := map[string]any{}
	for _, field := range pathForm.Fields(o.in) {
		path[field.Name] = r.PathValue(field.Name)
		if path[field.Name] == "" {
			return &problem{status: http.StatusNotFound, code: "not-found", message: "there is nothing at " + r.URL.Path}
		}
	}
	if errs := pathForm.Decode(path, into); errs != nil {
		return wrong("%s", errs)
	}
	query, err := o.query(r)
	if err != nil {
		return err
	}
	if errs := queryForm.Decode(query, into); errs != nil {
		return wrong("%s", errs)
	}
	return nil
}

// query returns the parameters of a request by name. An empty one is none, unless it is a flag.
func (o *operation) query(r *http.Request) (map[string]any, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, wrong("the query %s can't be read: %v", quoted(r.URL.RawQuery), err)
	}
	query := map[string]any{}
	for name, texts := range values {
		query[name] = texts[0]
	}
	for _, field := range queryForm.Fields(o.in) {
		texts := values[field.Name]
		switch {
		case len(texts) == 0:
		case isList(field):
			query[field.Name] = anyOf(texts)
		case len(texts) > 1:
			return nil, wrong("the parameter %s is given %d times: give it once", field.Name, len(texts))
		case texts[0] == "" && field.Kind != "flag":
			delete(query, field.Name)
		default:
			query[field.Name] = valueOf(texts[0], field.Type.Kind())
		}
	}
	return query, nil
}

func anyOf(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// isList reports whether a parameter may be given several times.
func isList(field setting.Field) bool {
	return field.Kind == "" && field.Type.Kind() == reflect.Slice
}

// valueOf returns the value that a text of a query stands for, where a Go type of a kind is wanted;
// the text itself where it stands for none.
func valueOf(text string, kind reflect.Kind) any {
	switch {
	case kind == reflect.Bool && (text == "true" || text == "false"):
		return text == "true"
	case kind == reflect.Int64 && text != "" && strings.Trim(text, "0123456789") == "":
		return json.Number(text)
	}
	return text
}

// readObject reads a body, which must be one object with the fields of the struct and no others. An
// empty body is an empty object.
func readObject(r *http.Request, into any) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	var v any
	if len(bytes.TrimSpace(body)) > 0 {
		if v, err = store.DecodeGiven(body, store.MaxDepth+1); err != nil { // the value of a field may be as deep as MaxDepth
			return wrong("the body must be a JSON object: %s", err)
		}
	}
	if v == nil {
		v = map[string]any{}
	}
	if errs := bodyForm.Decode(v, into); errs != nil {
		return wrong("%s", errs)
	}
	return nil
}
