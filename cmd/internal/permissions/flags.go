package permissions

import (
	"slices"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/luastd"
)

// Flags holds the permissions that flags grant. Each flag may be given alone, for everything, or
// with a list.
type Flags struct{ env, model, net, read, write []string }

// Register adds the flags to a command.
func (f *Flags) Register(c *cobra.Command) {
	for _, flag := range []struct {
		list *[]string
		name string
		what string
	}{
		{&f.env, "allow-env", "let scripts read variables of the environment, or only `NAME,...`"},
		{&f.model, "allow-model", "let scripts ask models, or only `NAME,...`"},
		{&f.net, "allow-net", "let scripts use the network, or only `HOST[:PORT],...`"},
		{&f.read, "allow-read", "let scripts read files, or only those below `DIR,...`"},
		{&f.write, "allow-write", "let scripts write files, or only those below `DIR,...`"},
	} {
		c.Flags().StringSliceVar(flag.list, flag.name, nil, flag.what)
		c.Flags().Lookup(flag.name).NoOptDefVal = everything
	}
}

// Grants returns the grants that settings returns, with those kinds replaced that flags name. Nil
// leaves all to the settings, which are not read then.
func (f *Flags) Grants(settings func() (luastd.Grants, error)) (*luastd.Grants, error) {
	if len(f.env)+len(f.model)+len(f.net)+len(f.read)+len(f.write) == 0 {
		return nil, nil
	}
	for _, flag := range []struct {
		name string
		list []string
	}{{"env", f.env}, {"model", f.model}, {"net", f.net}, {"read", f.read}, {"write", f.write}} {
		for _, entry := range flag.list {
			if err := luastd.CheckGrant(flag.name, entry); err != nil && entry != everything {
				return nil, exit.Usage("--allow-" + flag.name + ": " + err.Error())
			}
		}
	}
	grants, err := settings()
	if err != nil {
		return nil, err
	}
	for _, g := range []struct {
		grant *luastd.Grant
		list  []string
	}{{&grants.Env, f.env}, {&grants.Model, f.model}, {&grants.Net, f.net}, {&grants.Read, f.read}, {&grants.Write, f.write}} {
		switch {
		case slices.Contains(g.list, everything):
			*g.grant = luastd.Grant{All: true}
		case len(g.list) > 0:
			*g.grant = luastd.Grant{List: g.list}
		}
	}
	return &grants, nil
}
