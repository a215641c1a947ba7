package host

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/luastd"
)

// dummySettings are the settings with one that is declared here alone.
type dummySettings struct {
	Settings
	Dummy int `json:"dummy" jsonschema:"how many dummies there are (default 3)"`
}

// TestDummy_Setting holds that a setting is declared in one place: it is suggested for another name,
// an error names its line, and help and editors know it.
func TestDummy_Setting(t *testing.T) {
	sc, err := sandbox.NewScript(SettingsFile, []byte("return {\n  parallel = 2,\n  dummy = 'x' }"), 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	var s dummySettings
	errs := settingForm.Decode(map[string]any{"dumy": "x"}, &s)
	if errs == nil || errs.Error() != `unknown setting "dumy" (did you mean "dummy"?)` {
		t.Error(errs)
	}
	errs = settingForm.Decode(map[string]any{"dummy": "x"}, &s)
	if errs == nil || errs.Error() != `dummy must be a whole number above 0, not "x"` || keyLine(sc, errs[0].Keys) != 3 {
		t.Error(errs)
	}
	isDescribed(t, &settingForm, reflect.TypeFor[dummySettings](), "integer how many dummies there are (default 3)")
}

// dummyOptions are the options of an activity with one that is declared here alone.
type dummyOptions struct {
	activityOptions
	Dummy string `json:"dummy" kind:"overlap" jsonschema:"what it does with dummies"`
}

// TestDummy_Option holds that an option of an activity is declared in one place.
func TestDummy_Option(t *testing.T) {
	for _, test := range []struct {
		given map[string]any
		want  string
	}{
		{map[string]any{"dumy": "x"}, `unknown option "dumy" (did you mean "dummy"?)`},
		{map[string]any{"dummy": true}, `dummy must be "skip", "queue" or "all", not true`},
		{map[string]any{"dummy": "al"}, `dummy must be "skip", "queue" or "all", not "al" (did you mean "all"?)`},
	} {
		var o dummyOptions
		if errs := optionForm.Decode(test.given, &o); errs == nil || errs.Error() != test.want {
			t.Errorf("got %v, want %s", errs, test.want)
		}
	}
	isDescribed(t, &optionForm, reflect.TypeFor[dummyOptions](), `"skip"|"queue"|"all" what it does with dummies`)
}

// isDescribed holds that the field dummy of a table is in its help and in its class for editors.
func isDescribed(t *testing.T, form *setting.Form, table reflect.Type, annotation string) {
	t.Helper()
	_, about, _ := strings.Cut(annotation, " ")
	help := setting.Help(setting.Fields(table))
	if i := strings.Index(help, "\n  dummy "); i < 0 || !strings.HasSuffix(help, "  "+about+"\n") {
		t.Errorf("help does not tell of it:\n%s", help)
	}
	if class := form.Class("obelus.Dummy", "", table); !strings.Contains(class, "\n---@field dummy? "+annotation+"\n") {
		t.Errorf("editors do not know it:\n%s", class)
	}
}

// TestDummy_Permission holds that a permission is declared in luastd.Permissions: settings, options
// and tools take it, errors suggest it, and help and editors know it; the test of that name in
// cmd/internal/permissions holds that commands have its flag. It has one second place, a field of
// luastd.Grants, since a call's permissions are a value that is copied and sent to workers, and
// modules look at one permission by its field. The dummy borrows the field of env.
func TestDummy_Permission(t *testing.T) {
	before := luastd.Permissions
	t.Cleanup(func() { luastd.Permissions = before })
	luastd.Permissions = append(slices.Clone(before), luastd.Permission{
		Name: "clock", About: "clocks of the machine (--allow-clock=NAME,…)",
		Of: func(g *luastd.Grants) *luastd.Grant { return &g.Env },
		Check: func(entry string) error {
			if entry != "wall" {
				return errors.New("there is no clock " + entry)
			}
			return nil
		},
	})
	for allow, want := range map[string]string{
		`{ clok = true }`:      `unknown permission allow.clok (did you mean "clock"?)`,
		`{ clock = 3 }`:        `allow.clock must be true or a list of strings, not 3`,
		`{ clock = { "sun" }}`: `allow.clock: there is no clock sun`,
	} {
		for _, test := range []struct{ file, text, want string }{
			{"obelus.lua", "return {\n allow = " + allow + " }", "obelus.lua:2: " + want},
			{"activities/a.lua", "\nActivity.register('a', { allow = " + allow + " }, function() end)", `activities/a.lua:2: activity "a": ` + want},
			{"activities/a.lua", "\nTool.register('a', { _allow = { const = " + allow + " } })", `activities/a.lua:2: tool "a": ` + strings.ReplaceAll(want, "allow.", "_allow.")},
		} {
			if _, err := Open(Config{FS: project(map[string]string{test.file: test.text})}); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		}
	}
	g := open(t, map[string]string{"obelus.lua": `return { allow = { clock = { "wall" } } }`})
	if got := g.Grants().Env.List; !slices.Equal(got, []string{"wall"}) {
		t.Errorf("the project grants %v", got)
	}
	if help := TableHelp("permissions"); !strings.Contains(help, "\n  clock  clocks of the machine") {
		t.Errorf("help does not tell of it:\n%s", help)
	}
	if types := TableTypes(); !strings.Contains(types, "clock?: boolean|string[]") {
		t.Errorf("editors do not know it:\n%s", types)
	}
}
