package page

import "obelus/host/web/internal/lookup"

// reader reads the data of pages from the log.
type reader struct {
	*lookup.Runs
	stuck func(context string) (reason string, ok bool)
}
