// Package hook handles webhooks, requests that other programs send by themselves, as when a commit
// is pushed to a repository: it checks their signatures, names the run that each starts, and makes
// its input. It knows no HTTP: package web does.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"obelus/engine/lazyregexp"
	"obelus/host/once"
	"obelus/store"
)

// maxName is the length of a name with which the names of its runs are names of contexts.
const maxName = 64 - len("hook--") - 32

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)

// CheckName refuses a text that can't name a hook.
func CheckName(name string) error {
	if !validName().MatchString(name) || len(name) > maxName {
		return fmt.Errorf("%q is no name for it: it has up to %d letters, digits, _ and -, and begins with a letter", name, maxName)
	}
	return nil
}

// BodyID returns the id of a delivery whose sender gives it none, or none that is signed.
func BodyID(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// ContextName names the context of the run that a delivery to a hook starts.
func ContextName(name, id string) string { return "hook-" + name + "-" + once.Digest(id) }

// DecodeBody returns the value of a body of a media type: the fields of a form, what its JSON
// denotes, null for an empty one, and else its text. It is an error if it has none of them, or is
// said to be JSON or a form and is not.
func DecodeBody(body []byte, mediaType string) (any, error) {
	isJSON := mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
	switch {
	case len(body) == 0:
		return nil, nil
	case mediaType == "application/x-www-form-urlencoded":
		fields, err := DecodeQuery(string(body))
		if err != nil {
			return nil, err
		}
		return fields, nil
	}
	v, err := store.DecodeJSON(body)
	switch {
	case err == nil:
		return v, nil
	case isJSON:
		return nil, fmt.Errorf("the body is said to be JSON: %w", err)
	case !utf8.Valid(body):
		return nil, fmt.Errorf("the body is neither JSON nor UTF-8")
	}
	return string(body), nil
}

// DecodeQuery returns the values of a query or a form by their names: a text each, and an array of
// texts for a name that comes several times.
func DecodeQuery(text string) (map[string]any, error) {
	fields, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("a query or a form is not encoded as one: %w", err)
	}
	all := map[string]any{}
	for name, values := range fields {
		var texts []any
		for _, v := range values {
			texts = append(texts, strings.ToValidUTF8(v, "\ufffd"))
		}
		all[strings.ToValidUTF8(name, "\ufffd")] = texts
		if len(texts) == 1 {
			all[strings.ToValidUTF8(name, "\ufffd")] = texts[0]
		}
	}
	return all, nil
}

// Target is the name of a context with values of a request in it, such as "order-{body.order}".
type Target struct {
	text  string
	parts []part
}

// part is a text, or the path of a value.
type part struct {
	text string
	path []string // nil for a text
}

var placeholder = lazyregexp.New(`\{([^{}]*)\}`)

// ParseTarget reads a target.
func ParseTarget(text string) (*Target, error) {
	t := &Target{text: text}
	at := 0
	for _, m := range placeholder().FindAllStringSubmatchIndex(text, -1) {
		path := strings.Split(text[m[2]:m[3]], ".")
		if len(path) < 2 || path[0] != "body" && path[0] != "headers" && path[0] != "query" {
			return nil, fmt.Errorf("%q in %q must be a value of the request, such as {body.order} or {query.order}", text[m[0]:m[1]], text)
		}
		t.parts = append(t.parts, part{text: text[at:m[0]]}, part{path: path})
		at = m[1]
	}
	t.parts = append(t.parts, part{text: text[at:]})
	for _, p := range t.parts {
		if err := store.CheckStoredContext("x" + p.text); err != nil { // a part of a name may be empty
			return nil, fmt.Errorf("%q can't name a context: it has letters, digits, . _ and -, and values such as {body.order}", text)
		}
	}
	return t, nil
}

// Context returns the name of the context for a request with an input. It is an error if the input
// lacks a value of it, or has one that can't be in a name.
func (t *Target) Context(input map[string]any) (string, error) {
	var name strings.Builder
	for _, p := range t.parts {
		if p.path == nil {
			name.WriteString(p.text)
			continue
		}
		var v any = input
		for _, key := range p.path {
			object, _ := v.(map[string]any)
			v = object[key]
		}
		switch v := v.(type) {
		case string:
			name.WriteString(v)
		case map[string]any, []any, bool, nil:
			return "", fmt.Errorf("the request has no text or number at %s", strings.Join(p.path, "."))
		default:
			name.Write(store.EncodeJSON(v))
		}
	}
	if err := store.CheckContext(name.String()); err != nil {
		return "", err
	}
	return name.String(), nil
}
