package page

import "obelus/host/ops"

// reader reads the data of pages from the log.
type reader struct {
	*ops.Runs
	stuck func(context string) (reason string, ok bool)
}
