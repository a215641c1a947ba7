package permissions

import (
	"slices"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/luastd"
)

// Flags holds the entries that flags grant, by permission. Each flag may be given alone, for
// everything, or with a list.
type Flags map[string]*[]string

// Register adds the flags to a command.
func (f *Flags) Register(c *cobra.Command) {
	if *f == nil { // all commands have the same
		*f = Flags{}
	}
	for _, p := range luastd.Permissions {
		if (*f)[p.Name] == nil {
			(*f)[p.Name] = new([]string)
		}
		c.Flags().StringSliceVar((*f)[p.Name], "allow-"+p.Name, nil, p.Usage)
		c.Flags().Lookup("allow-" + p.Name).NoOptDefVal = everything
	}
}

// Grants returns the grants that settings returns, with those kinds replaced that flags name. Nil
// leaves all to the settings, which are not read then.
func (f Flags) Grants(settings func() (luastd.Grants, error)) (*luastd.Grants, error) {
	var given []luastd.Permission
	for _, p := range luastd.Permissions {
		if f[p.Name] == nil || len(*f[p.Name]) == 0 { // also of a command without the flags
			continue
		}
		given = append(given, p)
		for _, entry := range *f[p.Name] {
			if err := p.Check(entry); err != nil && entry != everything {
				return nil, exit.Usage("--allow-" + p.Name + ": " + err.Error())
			}
		}
	}
	if given == nil {
		return nil, nil
	}
	grants, err := settings()
	if err != nil {
		return nil, err
	}
	for _, p := range given {
		*p.Of(&grants) = luastd.Grant{List: *f[p.Name]}
		if slices.Contains(*f[p.Name], everything) {
			*p.Of(&grants) = luastd.Grant{All: true}
		}
	}
	return &grants, nil
}
