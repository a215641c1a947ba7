package journal

import (
	"encoding/json"
	"errors"
	"fmt"

	"obelus/store"
)

// DamagedError is a journal that is not as a run writes it, as after an edit by
// hand.
type DamagedError struct {
	Context string
	What    string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the journal of context %s is damaged: %s", e.Context, e.What)
}

// Class implements the interface of [store.ClassOf].
func (e *DamagedError) Class() store.Class { return store.Damaged }

func damaged(entry store.Entry, format string, args ...any) error {
	return &DamagedError{entry.Context, fmt.Sprintf("entry %d ", entry.N) + fmt.Sprintf(format, args...)}
}

// unread returns a [*DamagedError] for an entry whose data could not be decoded.
func unread(entry store.Entry, err error) error {
	var form *json.UnmarshalTypeError
	switch {
	case entry.Data == "":
		return damaged(entry, "holds nothing")
	case errors.As(err, &form):
		return damaged(entry, "holds an unexpected %s", form.Value)
	}
	return damaged(entry, "can't be read: %s", err)
}

// EndsAfter returns an error if the last messages of a log are missing: new ones would take their
// seqs.
func EndsAfter(newest store.Entry, head int64) error {
	if newest.Seq > head {
		return damaged(newest, "was written when there were %d messages, and now there are %d", newest.Seq, head)
	}
	return nil
}
