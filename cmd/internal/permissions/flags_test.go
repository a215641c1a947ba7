package permissions

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"obelus/luastd"
)

// TestDummy_Permission holds that a permission that is declared in luastd.Permissions has a flag.
func TestDummy_Permission(t *testing.T) {
	before := luastd.Permissions
	t.Cleanup(func() { luastd.Permissions = before })
	luastd.Permissions = append(slices.Clone(before), luastd.Permission{
		Name: "clock", Usage: "let scripts read clocks, or only `NAME,...`",
		Of:    func(g *luastd.Grants) *luastd.Grant { return &g.Env }, // the dummy has no field of its own
		Check: func(string) error { return nil },
	})
	for _, test := range []struct {
		arg  string
		want luastd.Grant
	}{
		{"--allow-clock", luastd.Grant{All: true}}, {"--allow-clock=wall,sun", luastd.Grant{List: []string{"wall", "sun"}}},
	} {
		var f Flags
		c := &cobra.Command{}
		f.Register(c)
		if err := c.ParseFlags([]string{test.arg}); err != nil {
			t.Fatal(err)
		}
		grants, err := f.Grants(func() (luastd.Grants, error) { return luastd.Grants{}, nil })
		if err != nil || grants.Env.All != test.want.All || !slices.Equal(grants.Env.List, test.want.List) {
			t.Errorf("%s: %+v, %v", test.arg, grants, err)
		}
	}
}
