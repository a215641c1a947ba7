package host

import (
	"fmt"
	"strings"
	"testing"
)

// TestGlobalFields_AccidentsAreFound holds that globals which a function assigns by accident are
// found in a file of very many too, and that those that it declares are none.
func TestGlobalFields_AccidentsAreFound(t *testing.T) {
	many := repeated(2*compiledGlobals, "g%d = %[1]d\n")
	last := "g" + fmt.Sprint(2*compiledGlobals-1)
	for body, want := range map[string]string{
		"hidden = c.v return hidden":                "a function assigns the global hidden, which this file does not declare",
		last + " = " + last + " + 1 return " + last: "",
	} {
		_, err := Open(Config{FS: project(map[string]string{
			"obelus.lua": "return {}", "activities/a.lua": many + `Activity.register("a", function(c) ` + body + ` end)`,
		})})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", body, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}
