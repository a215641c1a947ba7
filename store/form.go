package store

import (
	"maps"
	"slices"
)

// Form is what an operation leaves at a path, for an index that tells the
// present values without reading what was written.
type Form int

// The forms. Up to [FormObject] what was there before is replaced.
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
)

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

// Form is what the operation leaves at one of the paths that it [Op.Touches].
func (op Op) Form(at Path) Form {
	if op.Method == Push {
		return FormPush
	}
	v, _ := dig(op.Value, op.Path.below(at))
	form := formOf(v)
	switch {
	case op.Method == Merge || op.Method == Assign:
		switch form {
		case FormEmpty:
			return FormOntoNone
		case FormObject:
			return FormOnto
		}
	case op.Method == Concat && form == FormArray:
		return FormConcat
	case op.Method == Concat && form == FormString:
		return FormLonger
	}
	return form
}

// Leaves lists what the operation leaves below the paths that it touches: the
// leaves of an object that is not merged leaf by leaf, and the keys that assign
// replaces, sorted.
func (op Op) Leaves() []Mark {
	object, ok := op.Value.(map[string]any)
	if !ok || op.Method == Push {
		return nil
	}
	if op.Method == Merge && len(appendLeaves(nil, op.Path, op.Value)) <= maxLeaves {
		return nil
	}
	return op.appendMarks(nil, op.Path, object, true)
}

func (op Op) appendMarks(marks []Mark, at Path, object map[string]any, top bool) []Mark {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		child := at.Child(key)
		form := formOf(object[key])
		if form == FormEmpty && op.Method == Merge {
			form = FormOntoNone
		}
		if form != FormObject || top && op.Method == Assign {
			marks = append(marks, Mark{child, form})
		}
		if form == FormObject {
			marks = op.appendMarks(marks, child, object[key].(map[string]any), false)
		}
	}
	return marks
}
