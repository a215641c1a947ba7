package sandbox

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	luar "layeh.com/gopher-luar"
)

// newObject returns a Go value of the embedding program as scripts see it, by way of gopher-luar.
// gopher-luar reads tables without metamethods, and would find one empty that fills itself when a
// script reads it: such tables are filled before they cross.
func newObject(s *State, v any) lua.LValue { return adaptValue(s, luar.New(s.L, v)) }

// crossed marks the metatables of gopher-luar that are adapted.
const crossed = "obelus"

// adaptValue adapts a value of gopher-luar: its functions fill the tables that they are given, and
// a script can only call methods and read and write exported fields and elements.
func adaptValue(s *State, v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case *lua.LFunction:
		if v.IsG && !isWrapped(v) {
			return wrapMethod(s, v, 1)
		}
	case *lua.LUserData:
		meta, ok := v.Metatable.(*lua.LTable)
		if !ok || meta.RawGetString(crossed) != lua.LNil {
			return v
		}
		meta.RawSetString(crossed, lua.LTrue)
		adaptOperators(s, meta, reflect.TypeOf(v.Value))
		if methods, ok := meta.RawGetString("methods").(*lua.LTable); ok {
			for name, fn := methods.Next(lua.LNil); name != lua.LNil; name, fn = methods.Next(name) {
				methods.RawSet(name, wrapMethod(s, fn.(*lua.LFunction), 2)) // after the receiver
			}
		}
	}
	return v
}

// adaptOperators adapts the metatable of a kind of Go value. It removes operations with which a
// script could end or block the program: copying or writing a whole value includes its unexported
// fields (a locked mutex, for example), and a channel blocks past every deadline.
func adaptOperators(s *State, meta *lua.LTable, t reflect.Type) {
	kind := t.Kind()
	if kind == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		meta.RawSetString("__index", s.L.NewFunction(readField))
		meta.RawSetString("__newindex", s.L.NewFunction(writeField))
	}
	for _, copying := range []string{"__unm", "__pow"} {
		meta.RawSetString(copying, lua.LNil)
	}
	if kind == reflect.Chan {
		meta.RawSetString("__call", lua.LNil)
	}
	for name, v := meta.Next(lua.LNil); name != lua.LNil; name, v = meta.Next(name) {
		fn, ok := v.(*lua.LFunction)
		if !ok {
			continue
		}
		switch name.String() {
		case "__index":
			fn = wrapFilling(s, hideLocks(s.L, fn), nil, &fieldAccess)
		case "__call":
			if kind == reflect.Map {
				fn = wrapFilling(s, iterateMap(s, fn), nil, &fieldAccess)
			} else { // gopher-luar would give copies of elements
				fn = wrapFilling(s, s.L.NewFunction(iterateElements), nil, nil)
			}
		case "__tostring": // may call a method of the program
			fn = wrapFilling(s, fn, nil, nil)
		default:
			fn = wrapFilling(s, fn, assignedTypes, &fieldAccess)
		}
		meta.RawSet(name, fn)
	}
}

// readField is the __index of a pointer to a struct: a method, else a field. gopher-luar's own
// copies the whole struct each time, while the program may be writing it.
func readField(L *lua.LState) int {
	ud, name := L.CheckUserData(1), L.CheckString(2)
	own := ud.Metatable.(*lua.LTable)
	pointed, index := structMember(L, ud, name)
	for _, meta := range []*lua.LTable{own, pointed} {
		if method := meta.RawGetString("methods").(*lua.LTable).RawGetString(name); method != lua.LNil {
			return Push(L, method)
		}
	}
	if index == nil {
		return 0
	}
	field := reflect.ValueOf(ud.Value).Elem().FieldByIndex(index)
	if kind := field.Kind(); kind == reflect.Struct || kind == reflect.Array {
		field = field.Addr()
	}
	return Push(L, luar.New(L, field.Interface()))
}

// writeField is the __newindex of a pointer to a struct. gopher-luar converts the value, as the one
// element of a list.
func writeField(L *lua.LState) int {
	ud, name := L.CheckUserData(1), L.CheckString(2)
	_, index := structMember(L, ud, name)
	if index == nil {
		L.RaiseError("unknown field %s", name)
	}
	field := reflect.ValueOf(ud.Value).Elem().FieldByIndex(index)
	list := reflect.MakeSlice(reflect.SliceOf(field.Type()), 1, 1)
	L.Replace(1, luar.New(L, list.Interface()))
	L.Replace(2, lua.LNumber(1))
	convert := luar.MT(L, []unexposed{}).RawGetString("__newindex") // the same for each list
	convert.(*lua.LFunction).GFunction(L)
	field.Set(list.Index(0))
	return 0
}

// unexposed is the element of a list that no script ever gets, so that its metatable is as
// gopher-luar made it.
type unexposed struct{}

// structMember returns the metatable of the struct that a pointer points to, and the index of one
// of its fields, or nil if it has no such field.
func structMember(L *lua.LState, pointer *lua.LUserData, name string) (meta *lua.LTable, index []int) {
	meta = luar.MT(L, reflect.Zero(reflect.TypeOf(pointer.Value).Elem()).Interface()).LTable
	if field, ok := meta.RawGetString("fields").(*lua.LTable).RawGetString(name).(*lua.LUserData); ok {
		index = field.Value.([]int)
	}
	return meta, index
}

// fieldAccess is held while a script reads or writes a field or an element of an object, so that
// two scripts at once do not end the program (Go ends it when a map is written while it is read).
// It does not cover methods, nor the program's own access.
var fieldAccess sync.Mutex

// iterateMap returns the iterator of maps, whose steps hold fieldAccess.
func iterateMap(s *State, fn *lua.LFunction) *lua.LFunction {
	return s.L.NewFunction(func(L *lua.LState) int {
		n := fn.GFunction(L)
		if next, ok := L.Get(-1).(*lua.LFunction); ok {
			L.Replace(-1, wrapFilling(s, next, nil, &fieldAccess))
		}
		return n
	})
}

// iterateElements is the iterator of lists: index and element. An element that is a struct is not
// copied.
func iterateElements(L *lua.LState) int {
	list, i := L.Get(1), 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if i >= L.ObjLen(list) {
			return 0
		}
		i++
		return Push(L, lua.LNumber(i), L.GetTable(list, lua.LNumber(i)))
	}))
	return 1
}

// lockMethods are hidden from scripts: a script that is stopped before it unlocks would lock the
// program for good, and unlocking an unlocked mutex ends it.
var lockMethods = []string{"lock", "unlock", "rlock", "runlock", "trylock", "tryrlock", "rlocker"}

// hideLocks returns the __index of an object without the methods of a lock and of types of
// package sync.
func hideLocks(L *lua.LState, index *lua.LFunction) *lua.LFunction {
	return L.NewFunction(func(L *lua.LState) int {
		ud, _ := L.Get(1).(*lua.LUserData)
		name, ok := L.Get(2).(lua.LString)
		if ud == nil || !ok {
			return index.GFunction(L)
		}
		t := reflect.TypeOf(ud.Value)
		if _, locks := ud.Value.(sync.Locker); ofSync(t) ||
			locks && slices.Contains(lockMethods, strings.ToLower(string(name))) {
			L.RaiseError("%s is not for scripts: a lock belongs to the program; give the object a method that takes it", string(name))
		}
		return index.GFunction(L)
	})
}

func ofSync(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "sync"
}

// wrapMethod returns a function or method of the program that gets filled tables and copies of
// maps, from an argument on: it may read a map while another script writes it, which ends a program
// in Go.
func wrapMethod(s *State, fn *lua.LFunction, from int) *lua.LFunction {
	called := *fn
	called.GFunction = func(L *lua.LState) int {
		for i := from; i <= L.GetTop(); i++ {
			L.Replace(i, copyObject(L, i, L.Get(i)))
		}
		return fn.GFunction(L)
	}
	return wrapFilling(s, &called, argumentTypes(fn), nil)
}

// copyObject returns an object, which is or belongs to argument arg, with its maps copied. Without
// maps it is returned itself.
func copyObject(L *lua.LState, arg int, v lua.LValue) lua.LValue {
	ud, ok := v.(*lua.LUserData)
	if !ok || !mayHoldMaps(reflect.TypeOf(ud.Value), 0) {
		return v
	}
	fieldAccess.Lock()
	defer fieldAccess.Unlock()
	copied := *ud
	copied.Value = copyMaps(L, arg, reflect.ValueOf(ud.Value), 0).Interface()
	return &copied
}

// mayHoldMaps reports whether a value of the type is a map, or a list that can hold one.
func mayHoldMaps(t reflect.Type, depth int) bool {
	switch {
	case t == nil || depth > maxObjectDepth:
		return false
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return t.Elem().Kind() == reflect.Interface || mayHoldMaps(t.Elem(), depth+1)
	}
	return t.Kind() == reflect.Map
}

func copyMaps(L *lua.LState, arg int, v reflect.Value, depth int) reflect.Value {
	switch {
	case depth > maxObjectDepth: // it may contain itself
		L.ArgError(arg, fmt.Sprintf("a map that is nested deeper than %d", maxObjectDepth))
	case v.Kind() == reflect.Interface && !v.IsNil():
		return copyMaps(L, arg, v.Elem(), depth)
	case !mayHoldMaps(v.Type(), 0) || v.Kind() != reflect.Array && v.IsNil():
		return v
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		copied := reflect.New(v.Type()).Elem()
		if v.Kind() == reflect.Slice {
			copied = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		}
		for i := range v.Len() {
			copied.Index(i).Set(copyMaps(L, arg, v.Index(i), depth+1))
		}
		return copied
	}
	copied := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entries := v.MapRange(); entries.Next(); {
		copied.SetMapIndex(entries.Key(), copyMaps(L, arg, entries.Value(), depth+1))
	}
	return copied
}

// wrapFilling returns a function of gopher-luar that fills its arguments, in the same frame, so
// that its errors have the same place. types gives the Go types of its arguments, nil for any type;
// during, if not nil, is held while it runs.
func wrapFilling(s *State, fn *lua.LFunction, types argumentsOf, during *sync.Mutex) *lua.LFunction {
	var carried []lua.LValue
	for _, up := range fn.Upvalues {
		carried = append(carried, up.Value())
	}
	return s.L.NewClosure(func(L *lua.LState) int {
		for i := 1; i <= L.GetTop(); i++ {
			var want reflect.Type
			if types != nil {
				want = types(L, i)
			}
			L.Replace(i, fillArgument(s, L, L.Get(i), want, i))
		}
		n := callLocked(during, fn.GFunction, L)
		for i := L.GetTop() - n + 1; i <= L.GetTop(); i++ {
			L.Replace(i, adaptValue(s, L.Get(i)))
		}
		return n
	}, append(carried, filledMark)...)
}

func callLocked(during *sync.Mutex, fn lua.LGFunction, L *lua.LState) int {
	if during != nil {
		during.Lock()
		defer during.Unlock()
	}
	return fn(L)
}

// argumentsOf returns the Go type that argument i, from 1, of a call becomes; nil for any.
type argumentsOf func(L *lua.LState, i int) reflect.Type

// argumentTypes returns the argument types of a method or function in Go.
func argumentTypes(fn *lua.LFunction) argumentsOf {
	if len(fn.Upvalues) == 0 {
		return nil
	}
	ud, _ := fn.Upvalues[0].Value().(*lua.LUserData)
	if ud == nil {
		return nil
	}
	of, ok := ud.Value.(reflect.Value)
	if !ok || of.Kind() != reflect.Func {
		return nil
	}
	t := of.Type()
	return func(_ *lua.LState, i int) reflect.Type {
		switch last := t.NumIn(); {
		case t.IsVariadic() && i >= last:
			return t.In(last - 1).Elem()
		case i <= last:
			return t.In(i - 1)
		}
		return nil
	}
}

// assignedTypes returns the types of an assignment to a field or an element, or of adding an
// element to a list.
func assignedTypes(L *lua.LState, i int) reflect.Type {
	ud, ok := L.Get(1).(*lua.LUserData)
	if !ok || i == 1 {
		return nil
	}
	t := reflect.TypeOf(ud.Value)
	if t.Kind() == reflect.Slice && L.GetTop() == 2 {
		return t.Elem() // list + element
	}
	key, value := withinType(L, t, L.Get(2))
	if i == 2 {
		return key
	}
	if value != nil && holdsLock(value) {
		L.RaiseError("%s can't be replaced: it holds a lock of the program; write its fields", L.Get(2).String())
	}
	return value
}

// withinType returns the types of a key in a Go type and of its value; nil for any.
func withinType(L *lua.LState, t reflect.Type, key lua.LValue) (keys, values reflect.Type) {
	if t == nil {
		return nil, nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Map:
		return t.Key(), t.Elem()
	case reflect.Slice, reflect.Array:
		return nil, t.Elem()
	case reflect.Struct:
		fields, _ := luar.MT(L, reflect.Zero(t).Interface()).RawGetString("fields").(*lua.LTable)
		if at, ok := fields.RawGet(key).(*lua.LUserData); ok {
			return nil, t.FieldByIndex(at.Value.([]int)).Type
		}
	}
	return nil, nil
}

// holdsLock reports whether a value of the type must not be copied, as go vet defines it.
func holdsLock(t reflect.Type) bool {
	locker := reflect.TypeFor[sync.Locker]()
	switch t.Kind() {
	case reflect.Struct:
		if ofSync(t) || reflect.PointerTo(t).Implements(locker) && !t.Implements(locker) {
			return true
		}
		for i := range t.NumField() {
			if holdsLock(t.Field(i).Type) {
				return true
			}
		}
	case reflect.Array:
		return holdsLock(t.Elem())
	}
	return false
}

// filledMark is the last upvalue of functions that fill their arguments.
var filledMark lua.LValue = &lua.LUserData{}

// maxObjectDepth is the depth of tables for objects: gopher-luar follows them on Go's stack.
const maxObjectDepth = 200

// fillArgument fills a table and all tables in it, and replaces a function by one that fills. A
// table with functions is copied, with its functions bound to the call. An object that cannot
// become the wanted type raises an error here: gopher-luar would print the object, with fields that
// the program may be changing.
func fillArgument(s *State, L *lua.LState, v lua.LValue, want reflect.Type, arg int) lua.LValue {
	if err := checkObjectType(v, want); err != "" {
		L.ArgError(arg, err)
	}
	switch v := v.(type) {
	case *lua.LTable:
		seen := map[typedTable]bool{}
		if fillTables(s, L, v, want, arg, seen, 1) {
			return bindTables(s, L, v, want, map[*lua.LTable]*lua.LTable{})
		}
	case *lua.LFunction:
		if !isWrapped(v) {
			return bindFunction(s, L, v, want)
		}
	}
	return v
}

// checkObjectType returns the reason why an object cannot become the type, or ""; nil stands for
// any type.
func checkObjectType(v lua.LValue, want reflect.Type) string {
	ud, ok := v.(*lua.LUserData)
	if !ok || want == nil || ud.Value == nil || want.Implements(reflect.TypeFor[lua.LValue]()) {
		return ""
	}
	t := reflect.TypeOf(ud.Value)
	if t.ConvertibleTo(want) || want.Kind() == reflect.Pointer && t == want.Elem() {
		return ""
	}
	return fmt.Sprintf("cannot use object (type %s) as type %s", t, want)
}

// isWrapped reports whether gopher-luar made a function.
func isWrapped(fn *lua.LFunction) bool {
	n := len(fn.Upvalues)
	return fn.IsG && n > 0 && fn.Upvalues[n-1].Value() == filledMark
}

// bindFunction returns a function that ends with the call which gives it to an object.
func bindFunction(s *State, L *lua.LState, fn *lua.LFunction, as reflect.Type) *lua.LFunction {
	r, turn := s.Run, s.Run.turn.Load()
	return L.NewFunction(func(L *lua.LState) int {
		if r.turn.Load() != turn {
			L.RaiseError("the call that gave this function to an object has ended")
		}
		return callBound(s, L, fn, as)
	})
}

// typedTable is a table, and the Go type that it becomes.
type typedTable struct {
	table *lua.LTable
	want  reflect.Type
}

// fillTables fills a table, and the tables in it. It reports whether an object must get a copy: of
// functions, and of maps of objects.
func fillTables(s *State, L *lua.LState, t *lua.LTable, want reflect.Type, arg int, seen map[typedTable]bool, depth int) (functions bool) {
	if seen[typedTable{t, want}] {
		return false
	}
	if depth > maxObjectDepth {
		L.ArgError(arg, fmt.Sprintf("a table that is nested deeper than %d", maxObjectDepth))
	}
	seen[typedTable{t, want}] = true
	s.Fill(t)
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		_, inner := withinType(L, want, key)
		if err := checkObjectType(v, inner); err != "" {
			L.ArgError(arg, err)
		}
		switch v := v.(type) {
		case *lua.LTable:
			functions = fillTables(s, L, v, inner, arg, seen, depth+1) || functions
		case *lua.LFunction:
			functions = true
		case *lua.LUserData:
			functions = functions || mayHoldMaps(reflect.TypeOf(v.Value), 0)
		}
	}
	return functions
}

// bindTables copies a table and the tables in it, with their functions bound.
func bindTables(s *State, L *lua.LState, t *lua.LTable, want reflect.Type, made map[*lua.LTable]*lua.LTable) *lua.LTable {
	if c := made[t]; c != nil {
		return c
	}
	c := L.CreateTable(t.Len(), 0)
	c.Metatable, made[t] = t.Metatable, c
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		_, inType := withinType(L, want, key)
		if inner, ok := v.(*lua.LTable); ok {
			v = bindTables(s, L, inner, inType, made)
		} else if ud, ok := v.(*lua.LUserData); ok {
			v = copyObject(L, 1, ud)
		} else if fn, ok := v.(*lua.LFunction); ok && !isWrapped(fn) {
			v = bindFunction(s, L, fn, inType)
		}
		c.RawSet(key, v)
	}
	return c
}

// maxWithin is the depth of nested calls of objects that call functions of scripts: each takes Go's
// stack that the interpreter does not count.
const maxWithin = 200

// callBound calls a function that a script gave to an object. gopher-luar calls it on a thread of
// its own, which has no budget before.
func callBound(s *State, L *lua.LState, fn *lua.LFunction, as reflect.Type) int {
	if s.within >= maxWithin {
		L.RaiseError("stack overflow")
	}
	s.within++
	defer func() { s.within-- }()
	L.SetContext(&s.Budget)
	n := L.GetTop()
	L.Insert(fn, 1)
	for i := 2; i <= n+1; i++ {
		L.Replace(i, adaptValue(s, L.Get(i)))
	}
	L.Call(n, lua.MultRet)
	for i := 1; i <= L.GetTop(); i++ {
		var want reflect.Type
		if as != nil && as.Kind() == reflect.Func && i <= as.NumOut() {
			want = as.Out(i - 1)
		}
		L.Replace(i, fillArgument(s, L, L.Get(i), want, i))
	}
	return L.GetTop()
}
