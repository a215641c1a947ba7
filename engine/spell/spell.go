// Package spell finds the name that a misspelt one may be meant for.
//
// It stands beside the engine's internal packages, and not among them, since packages host and cmd
// use it. It is not part of the interface for programs that embed Obelus.
package spell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// DidYouMean is a hint that ends an error about an unknown name, or nothing.
func DidYouMean(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// MaxSpelled is how long a name may be for a hint: the work grows with it.
const MaxSpelled = 64

// Nearest finds the candidate that a typing error could have made the name of,
// or gives nothing. Host shares it, so that all hints are alike.
func Nearest(name string, candidates []string) string {
	letters := utf8.RuneCountInString(name)
	if letters > MaxSpelled {
		return ""
	}
	best, bestDistance := "", max(1, (letters+1)/3)+1
	for _, candidate := range candidates {
		if len(candidate) > 4*MaxSpelled {
			continue
		}
		if d := Distance([]rune(strings.ToLower(name)), []rune(strings.ToLower(candidate))); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, changes and swaps of neighbours
// that lead from a to b.
func Distance(a, b []rune) int {
	var older []int
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, before, row = before, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
