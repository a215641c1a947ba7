// Package once has requests that may come twice change a log once.
package once

import (
	"context"

	"obelus/store"
)

// newContextLog is a log in which one context can only be begun.
type newContextLog struct {
	store.Log
	context string
}

// NewContext returns a log for a run that is to begin a context: if the context exists, or another
// process makes it first, the run's first append gives [store.ErrExists]. Without it the run would
// go on in that context, as its next one.
func NewContext(log store.Log, context string) store.Log { return &newContextLog{log, context} }

// Append appends a batch, unless it begins a run in the context after messages.
func (l *newContextLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if b.Context == l.context && b.Create != nil && b.ExpectSeq != 0 {
		return store.Appended{}, store.ErrExists
	}
	return l.Log.Append(ctx, b)
}
