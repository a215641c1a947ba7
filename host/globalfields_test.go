package host

import (
	"fmt"
	"strings"
	"testing"

	"obelus/host/internal/luac"
)

// TestGlobalFields_AccidentsAreFound holds that globals which a function assigns by accident are
// found in a file of very many too, and that those that it declares are none.
func TestGlobalFields_AccidentsAreFound(t *testing.T) {
	many := repeated(2*luac.CompiledGlobals, "g%d = %[1]d\n")
	last := "g" + fmt.Sprint(2*luac.CompiledGlobals-1)
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

// TestGlobals_Misspelt holds that what is nil is told with what may be meant.
func TestGlobals_Misspelt(t *testing.T) {
	for source, want := range map[string]string{
		`Activty.register("a", function() end)`: `attempt to index Activty (a nil value), key "register" (did you mean Activity?)`,
		`Activity.regster("a", function() end)`: `attempt to call Activity.regster, which is not a function (did you mean Activity.register?)`,
		`Tol.register("a", {})`:                 `(did you mean Tool?)`,
		`local order order.total = 1`:           `attempt to index order (a nil value), key "total"`,
		`setmetatble({}, {})`:                   `(did you mean setmetatable?)`,
		`unheardOfThing.register("a", 1)`:       `attempt to index unheardOfThing (a nil value), key "register"`,
	} {
		_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return {}", "activities/a.lua": source})})
		if err == nil || !strings.HasSuffix(strings.SplitN(err.Error(), "\n", 2)[0], want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
