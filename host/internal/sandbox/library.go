package sandbox

import lua "github.com/yuin/gopher-lua"

// Field is one entry of a library table. Libraries are kept as lists, sorted by name, from which
// each run makes its own tables.
type Field struct {
	Name  string
	Value lua.LValue
}

// fieldList is a library table that a run has not read yet.
type fieldList []Field

func (l fieldList) FillTable(t *lua.LTable) {
	for _, f := range l {
		t.RawSetString(f.Name, f.Value)
	}
}

func (l fieldList) LookupField(key lua.LValue) lua.LValue {
	for _, f := range l {
		if key == lua.LString(f.Name) {
			return f.Value
		}
	}
	return lua.LNil
}

// Function is a library function of a state.
type Function = func(s *State, L *lua.LState) int

// Entry is a library function with its name. Its first argument is a state, or a value that has a
// state.
type Entry[T any] struct {
	Name string
	Fn   func(of T, L *lua.LState) int
}

// StateEntry is a library function of a state. Tables of them are sorted by name.
type StateEntry = Entry[*State]

// Bind returns the functions of entries, for the state of L.
func Bind[T any](L *lua.LState, of T, entries []Entry[T]) []Field {
	fields := make([]Field, len(entries))
	for i, e := range entries {
		fields[i] = Field{e.Name, L.NewFunction(func(L *lua.LState) int { return e.Fn(of, L) })}
	}
	return fields
}

// Fn returns a library function as a value.
func (s *State) Fn(f Function) *lua.LFunction {
	return s.L.NewFunction(func(L *lua.LState) int { return f(s, L) })
}

// Funcs returns library functions as fields.
func (s *State) Funcs(entries []StateEntry) []Field { return Bind(s.L, s, entries) }

// AddLibrary adds a global table; its fields are sorted by name.
func (s *State) AddLibrary(name string, fields []Field) { s.Libs[name] = fields }

// AddGlobals adds globals, except for names of objects of the program.
func (s *State) AddGlobals(fields []Field) {
	for _, f := range fields {
		if s.Globals[f.Name] == nil {
			s.Globals[f.Name] = f.Value
		}
	}
}

// Table returns a new table with fields.
func (s *State) Table(fields []Field) *lua.LTable {
	t := s.L.CreateTable(0, len(fields))
	for _, f := range fields {
		t.RawSetString(f.Name, f.Value)
	}
	return t
}
