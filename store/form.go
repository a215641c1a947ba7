package store

import (
	"maps"
	"slices"
)

// Form is the kind of value that an operation leaves at a path, for an index that finds current
// values without reading the messages.
type Form int

// The forms. Those up to [FormObject] replace the value that was there.
const (
	FormScalar   Form = iota // a number, true, false or null
	FormString               // a string
	FormArray                // an array
	FormEmpty                // an object without keys
	FormObject               // an object with keys
	FormOntoNone             // an object without keys that joins an object that is there
	FormOnto                 // an object with keys that joins one
	FormPush                 // an array that gets an element
	FormConcat               // an array that gets elements
	FormLonger               // a string that gets longer

	// Of an object of many leaves an index has this one place.
	FormUnlisted     // it replaces the value that was there
	FormOntoUnlisted // it joins an object that is there
)

// maxLeaves bounds the leaves of one operation that an index lists. An operation with more takes
// one row, or a message of many keys would delay every write beside it.
const maxLeaves = 256

// Mark is a place at which an operation leaves a value.
type Mark struct {
	Path Path
	Form Form
}

func formOf(v any) Form {
	switch v := v.(type) {
	case string:
		return FormString
	case []any:
		return FormArray
	case map[string]any:
		if len(v) == 0 {
			return FormEmpty
		}
		return FormObject
	}
	return FormScalar
}

// Marks lists the places at which the operation leaves a value: at are the paths that it
// [Op.Touches], below are the places below them, sorted: the leaves of an object that is not merged
// leaf by leaf, and the keys that assign replaces; none of an object of many leaves.
func (op Op) Marks() (at, below []Mark) {
	if op.Method == Push {
		return []Mark{{op.Path, FormPush}}, nil
	}
	leaves := appendLeaves(nil, op.Path, op.Value)
	if len(leaves) > maxLeaves {
		form := FormUnlisted
		if op.joins() {
			form = FormOntoUnlisted
		}
		return []Mark{{op.unlisted(), form}}, nil
	}
	if op.Method == Merge {
		sortPaths(leaves)
		for _, path := range leaves {
			v, _ := dig(op.Value, op.Path.below(path))
			at = append(at, Mark{path, op.form(v)})
		}
		return at, nil
	}
	at = []Mark{{op.Path, op.form(op.Value)}}
	if object, ok := op.Value.(map[string]any); ok {
		below = op.appendMarks(nil, op.Path, object, true)
	}
	return at, below
}

// joins reports whether an object that the operation leaves joins one that is there.
func (op Op) joins() bool { return op.Method == Merge || op.Method == Assign }

// form returns the form that a value of the operation has at a path that it touches.
func (op Op) form(v any) Form {
	form := formOf(v)
	switch {
	case op.joins() && form == FormEmpty:
		return FormOntoNone
	case op.joins() && form == FormObject:
		return FormOnto
	case op.Method == Concat && form == FormArray:
		return FormConcat
	case op.Method == Concat && form == FormString:
		return FormLonger
	}
	return form
}

// unlisted is the one place at which an index has an operation of many leaves: of a merge, the
// deepest path that all of its leaves have in common.
func (op Op) unlisted() Path {
	at := op.Path
	if op.Method != Merge {
		return at
	}
	object, _ := op.Value.(map[string]any)
	for len(object) == 1 {
		for key, v := range object {
			at = at.Child(key)
			object, _ = v.(map[string]any)
		}
	}
	return at
}

func (op Op) appendMarks(marks []Mark, at Path, object map[string]any, top bool) []Mark {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		child := at.Child(key)
		form := formOf(object[key])
		if form != FormObject || top && op.Method == Assign {
			marks = append(marks, Mark{child, form})
		}
		if form == FormObject {
			marks = op.appendMarks(marks, child, object[key].(map[string]any), false)
		}
	}
	return marks
}
