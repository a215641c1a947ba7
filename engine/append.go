package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	for range journal.MaxConflicts {
		appended, err := tryAppend(ctx, journal.In(log, name), log, messages, options)
		pruned := errors.Is(err, store.ErrNoContext) // while it was read: the append begins it anew
		if !pruned && !errors.As(err, new(*store.ConflictError)) {
			return appended, err
		}
	}
	return store.Appended{}, journal.TooManyConflicts(name)
}

// tryAppend is [Append] to a context as it is now.
func tryAppend(ctx context.Context, c journal.Context, log store.Appender, messages []store.Message, options []schema.Option) (store.Appended, error) {
	newest, _, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name})
	if err != nil {
		return store.Appended{}, err
	}
	view, err := store.OpenView(ctx, c.Log, c.Name)
	if err == nil {
		err = c.EndsAfter(ctx, newest, view.Committed())
	}
	var superseded journal.Superseded
	if err == nil {
		superseded, err = c.Superseded(ctx)
	}
	if err != nil {
		return store.Appended{}, err
	}
	if err := refusePlan(ctx, c, messages); err != nil {
		return store.Appended{}, err
	}
	superseded.HideFrom(view)
	if err := validate.Stage(ctx, view, messages, options); err != nil {
		return store.Appended{}, err
	}
	origin := store.Origin{}
	if view.Absent() {
		if origin, err = journal.ExpectedOrigin(ctx, c); err != nil {
			return store.Appended{}, err
		}
	}
	return log.Append(ctx, store.Batch{
		Context:   c.Name,
		ExpectSeq: view.Committed(),
		Create:    &origin,
		Messages:  view.Staged(),
		Wake:      true,
		Journal:   []store.Entry{{Event: journal.EventAppend, Data: string(store.EncodeJSON(map[string]any{"messages": len(messages)}))}},
	})
}

// refusePlan refuses a plan message for a run whose own plan waits for a person: it is that plan
// that is corrected, or rejected.
func refusePlan(ctx context.Context, c journal.Context, messages []store.Message) error {
	if !slices.ContainsFunc(messages, func(m store.Message) bool { return m.Type == store.TypePlan }) {
		return nil
	}
	last, err := c.LastRun(ctx)
	if err != nil || !last.Held {
		return err
	}
	return &journal.NoSuchCallError{
		Message: fmt.Sprintf("the plan of context %s waits for a decision, and another one does not replace it: correct it as it is approved, or reject it with a reason", c.Name),
		Hint:    journal.Hint{Plan: c.Name},
	}
}
