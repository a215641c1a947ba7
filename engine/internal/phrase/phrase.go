// Package phrase words parts of messages: lists of names, places within a value, long texts cut
// short.
package phrase

import (
	"fmt"
	"strings"

	"obelus/store"
)

// maxReason is how much of a reason is shown, in bytes: it may hold a whole value.
const maxReason = 2000

// Shorten cuts a text that is too long to be shown, and marks that with ….
func Shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// QuoteAll returns names in quotation marks, separated by commas.
func QuoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}

// PlacePrefix is a place as it precedes a statement about it.
func PlacePrefix(name string, location []string) string {
	return strings.TrimPrefix(Place(name, location)+": ", ": ")
}

// Place is a value within another, as a person would write it.
func Place(name string, location []string) string {
	for _, step := range location {
		switch {
		case strings.Trim(step, "0123456789") == "":
			name += "[" + step + "]"
		case name == "":
			name = step
		default:
			name += "." + step
		}
	}
	return name
}

// WithArticle puts one before the name of a type, or of several.
func WithArticle(types string) string {
	if strings.Contains(types, " or ") || types == "" {
		return types
	}
	return store.DescribeType(types)
}
