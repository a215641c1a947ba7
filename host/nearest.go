package host

import "strings"

// didYouMean ends an error about an unknown name: ` (did you mean "timeout"?)`
// where one of the candidates is near, the list of them all where they are
// few, else nothing.
func didYouMean(name string, candidates []string) string {
	if near := nearest(name, candidates); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	if len(candidates) > 0 && len(candidates) <= 12 {
		return " (one of " + strings.Join(candidates, ", ") + ")"
	}
	return ""
}

// nearest is the candidate that name is most likely a slip for, or "".
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the insertions, deletions, changes and swaps of neighbours
// that lead from a to b.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var older []int
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
