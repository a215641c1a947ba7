package store

// Optional is a value that may be absent: where a value may be null, nil alone does not say so.
// The zero Optional is absent.
type Optional struct {
	Value any
	Set   bool // the value is there, even if it is nil
}

// Some returns an Optional with a value, which may be nil.
func Some(v any) Optional { return Optional{v, true} }
