package engine

import (
	"context"
	"errors"

	"obelus/engine/internal/validate"
	"obelus/engine/journal"
	"obelus/engine/schema"
	"obelus/store"
)

// Append adds messages to a context, all of them or none, and creates the context if it is absent;
// [store.CheckContext] says which names are allowed. The values of messages may be anything that
// [store.FromGo] takes. Each message is checked for its form ([store.Message.Check]), against the
// value that it joins and against the schemas that are declared; one that does not fit gives a
// [*plan.MessageError]. Others may append to the context at the same time.
func Append(ctx context.Context, log store.ReadAppender, name string, messages []store.Message, options ...schema.Option) (store.Appended, error) {
	if err := store.CheckContext(name); err != nil {
		return store.Appended{}, err
	}
	newest, _, err := store.Newest(ctx, log, store.JournalFilter{Context: name})
	if err != nil {
		return store.Appended{}, err
	}
	for range journal.MaxConflicts {
		view, err := store.OpenView(ctx, log, name)
		if err == nil {
			err = journal.EndsAfter(newest, view.Committed())
		}
		var superseded journal.Superseded
		if err == nil {
			superseded, err = journal.In(log, name).Superseded(ctx)
		}
		if err != nil {
			return store.Appended{}, err
		}
		superseded.HideFrom(view)
		if err := validate.Stage(ctx, view, messages, options); err != nil {
			return store.Appended{}, err
		}
		origin := store.Origin{}
		if view.Absent() {
			if origin, err = journal.ExpectedOrigin(ctx, journal.In(log, name)); err != nil {
				return store.Appended{}, err
			}
		}
		appended, err := log.Append(ctx, store.Batch{
			Context:   name,
			ExpectSeq: view.Committed(),
			Create:    &origin,
			Messages:  view.Staged(),
			Wake:      true,
			Journal:   []store.Entry{{Event: journal.EventAppend, Data: string(store.EncodeJSON(map[string]any{"messages": len(messages)}))}},
		})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			return appended, err
		}
	}
	return store.Appended{}, journal.TooManyConflicts(name)
}
