package journal

import "obelus/store"

// Context is one context of a log: what its journal and messages say is read by the methods.
// It is a plain value; its methods may be called from several goroutines at once.
type Context struct {
	Log  store.Reader
	Name string
}

// In returns the context of a log that has a name, whether it exists or not.
func In(log store.Reader, name string) Context { return Context{log, name} }

// Sibling returns the context of the same log that has another name.
func (c Context) Sibling(name string) Context { return Context{c.Log, name} }
