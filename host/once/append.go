// Package once has requests that may come twice change a log once.
package once

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"obelus/engine/journal"
	"obelus/store"
)

// Digest returns 32 hex digits of the SHA-256 of a text, for the name of a context.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// ErrAppended is the error of an append whose id the context has already.
var ErrAppended = errors.New("this was appended already")

// appendOnceLog is a log that notes an id with an append of foreign messages.
type appendOnceLog struct {
	store.ReadAppender
	id string
}

// Appends returns a log for [obelus/engine.Append] that keeps an id with the messages, in the same
// transaction, and gives [ErrAppended] if the context has messages with that id.
func Appends(log store.ReadAppender, id string) store.ReadAppender { return &appendOnceLog{log, id} }

// Append appends a batch with the id. The caller has read the context at the expected seq, so that
// a batch with the same id that comes in between is a conflict, and is found when this is tried
// again.
func (l *appendOnceLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if is, err := HasAppended(ctx, l.ReadAppender, b.Context, l.id); is || err != nil {
		if err == nil {
			err = ErrAppended
		}
		return store.Appended{}, err
	}
	b.Journal = append([]store.Entry(nil), b.Journal...)
	for i := range b.Journal {
		if b.Journal[i].Event != journal.EventAppend {
			continue
		}
		data := map[string]any{}
		if err := json.Unmarshal([]byte(b.Journal[i].Data), &data); err != nil {
			return store.Appended{}, err
		}
		data["id"] = l.id
		b.Journal[i].Data = string(store.EncodeJSON(data))
	}
	return l.ReadAppender.Append(ctx, b)
}

// HasAppended reports whether a context has messages that were appended with an id.
func HasAppended(ctx context.Context, log store.Reader, name, id string) (bool, error) {
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: journal.EventAppend, Newest: true}) {
		if err != nil {
			return false, err
		}
		var data struct {
			ID string `json:"id"`
		}
		if json.Unmarshal([]byte(entry.Data), &data) == nil && data.ID == id {
			return true, nil
		}
	}
	return false, nil
}
