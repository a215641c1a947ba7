// Package store keeps contexts, and computes the values that their messages denote.
//
// A [Log] keeps any number of contexts. A context is an append-only list of messages, numbered from
// 1 ([Message.Seq]), with a journal beside it. Each message that holds data is one operation at one
// path, and the value of a path is the fold of the operations that bear on it:
//
//	log := memory.New() // or sqlite.Open(file, sqlite.Options{})
//	messages, err := store.ParseMessages([]byte(`{"type": "state", "user": {"name": "Ada"}}`))
//	_, err = log.Append(ctx, store.Batch{Context: "c", Create: &store.Origin{}, Messages: messages})
//	r := store.Resolver{Log: log, Context: "c"}
//	name, err := r.Resolve(ctx, store.MustParsePath("†state.user.name"), "")
//
// [Path] names a value, and [Resolver] returns the value of a path as of any seq, with the messages
// that it is made of. [View] is a context as its one writer sees it.
//
// The package knows nothing of plans or calls: a message carries the call that wrote it as plain
// JSON, and the journal beside the messages holds events that other packages define. The process
// that runs a context holds its [Lease], so that no other runs it at the same time.
package store
