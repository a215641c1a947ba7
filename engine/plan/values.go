package plan

import (
	"obelus/store"
)

// Values is a JSON object whose numbers keep their text.
type Values map[string]any

// JournalDepth bounds the nesting of JSON in the journal: values as deep as data may be, within
// records.
const JournalDepth = store.MaxDepth + 16

// UnmarshalJSON reads an object.
func (v *Values) UnmarshalJSON(text []byte) error {
	read, err := store.DecodeWithin(text, JournalDepth)
	if err != nil {
		return err
	}
	*v, _ = read.(map[string]any)
	return nil
}
