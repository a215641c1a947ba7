package main

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"obelus/engine"
)

// who are the flags of commands by which a person decides something.
type who struct{ by string }

func (w *who) register(c *cobra.Command) {
	c.Flags().StringVar(&w.by, "by", "", "who decides: `NAME` (default: the login name)")
}

// longestName is how long the name may be that --by gives.
const longestName = 200

// decider is who decides.
func (w *who) decider() (engine.Who, error) {
	by := strings.TrimSpace(w.by)
	if len(by) > longestName {
		return engine.Who{}, &usageError{fmt.Sprintf("--by: a name may have %d bytes, and this has %d", longestName, len(by))}
	}
	return engine.Who{By: cmp.Or(by, loginName())}, nil
}

// loginName is that of the user, as far as it can be told.
func loginName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("LOGNAME"), os.Getenv("USER"))
}
