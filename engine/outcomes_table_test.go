package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConformance_HasEachOutcome holds that each cell of the table of outcomes in PROTOCOL.md has
// its case, 5-outcome-ROW-COLUMN.txtar, and that each case of that name has its cell.
func TestConformance_HasEachOutcome(t *testing.T) {
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "**Outcomes at each executor.**")
	_, table, _ = strings.Cut(table, "\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	name := regexp.MustCompile("^ `([a-z-]+)`")
	var columns, want []string
	for i, line := range strings.Split(strings.ReplaceAll(table, `\|`, ""), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for n, cell := range cells[1:] {
			if i == 0 {
				columns = append(columns, name.FindStringSubmatch(cell)[1])
			} else if i > 1 { // the second line is a rule
				want = append(want, filepath.Dir(conformance)+"/5-outcome-"+name.FindStringSubmatch(cells[0])[1]+"-"+columns[n]+".txtar")
			}
		}
	}
	got, err := filepath.Glob(filepath.Dir(conformance) + "/5-outcome-*.txtar")
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" || len(want) != 24 || err != nil {
		t.Error("the cells, and the cases (-want +got): ", diff, len(want), err)
	}
}
