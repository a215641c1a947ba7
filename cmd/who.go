package cmd

import (
	"cmp"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
)

// deciderFlags holds the flags of commands by which a person decides.
type deciderFlags struct {
	by    string
	given func() bool
}

func (w *deciderFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&w.by, "by", "", "record the decision under `NAME` (default: the login name)")
	w.given = func() bool { return c.Flags().Changed("by") }
}

// decider returns the name to record for a decision: --by, else the login name.
func (w *deciderFlags) decider() (journal.Who, error) {
	by := strings.TrimSpace(w.by)
	if by == "" && w.given() {
		return journal.Who{}, exit.Usage("--by is empty: give the name of who decides, or leave the flag out")
	}
	who := journal.Who{By: cmp.Or(by, loginName())}
	if err := who.Check(); err != nil {
		return who, exit.Usagef("--by: %s", err)
	}
	return who, nil
}

// loginName returns the user's login name, or "" if it can't be found out.
func loginName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("LOGNAME"), os.Getenv("USER"))
}
