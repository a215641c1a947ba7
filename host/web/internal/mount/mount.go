// Package mount tells where in another program's paths a server is mounted.
package mount

import (
	"net/http"
	"net/url"
	"strings"
)

// Prefix returns the part that a handler around the server has removed from a request's path.
func Prefix(r *http.Request) string {
	given, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return ""
	}
	prefix, ok := strings.CutSuffix(given.EscapedPath(), r.URL.EscapedPath())
	if !ok {
		return ""
	}
	return prefix
}
