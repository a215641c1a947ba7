package sandbox

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"obelus/luastd"
)

// Image is what the top level of a script made in a run: values that it left, and everything that
// can be reached from them. A script that runs again begins with a copy of it, which costs less
// than its top level, and comes to the same.
type Image struct {
	env     *lua.LTable
	globals []Field     // of env, except those that a new environment finds by itself
	loaded  *lua.LTable // package.loaded; nil if nothing was required
}

// maxImageDepth bounds the nesting of values in an image.
const maxImageDepth = 200

// Capture takes what the run has made so far, with the values that the caller wants copies of, and
// gives the run a new environment. It returns nil, and leaves the run as it is, if a copy would
// differ from what the top level would make another time: it looked at the clock, drew a random
// number, called a module or an object of the program, or left a value with a state of its own,
// such as an iterator.
func (s *State) Capture(wanted []lua.LValue) *Image {
	r := s.Run
	if r.varied || r.preloaded != nil || r.io != nil || len(r.begun) > 0 {
		return nil
	}
	image := &Image{env: r.Env, loaded: r.loaded}
	c := &capture{state: s, seen: map[any]bool{r.Env: true}}
	if r.loaded != nil {
		wanted = append(wanted, r.loaded)
	}
	for _, v := range wanted {
		if !c.canCopy(v, 0) {
			return nil
		}
	}
	var untouched []Field
	for key, v := r.Env.Next(lua.LNil); key != lua.LNil; key, v = r.Env.Next(key) {
		name, isText := key.(lua.LString)
		global := Field{string(name), v}
		switch {
		case v == r.Env && key == lua.LString("_G"):
		case isText && c.isUntouched(global):
			untouched = append(untouched, global)
		case isText && c.canCopy(v, 0):
			image.globals = append(image.globals, global)
		default:
			return nil
		}
	}
	for _, global := range untouched {
		if c.seen[global.Value] { // another value of the image shares it
			image.globals = append(image.globals, global)
		}
	}
	s.newEnvironment()
	return image
}

// capture looks through the values of an image.
type capture struct {
	state *State
	seen  map[any]bool
}

// isUntouched reports whether a new environment has the same global.
func (c *capture) isUntouched(global Field) bool {
	t, ok := global.Value.(*lua.LTable)
	if !ok {
		return c.state.Globals[global.Name] == global.Value
	}
	if _, unread := c.state.LibraryOf(t); unread || t.Metatable != lua.LNil {
		return unread
	}
	left := len(c.state.Libs[global.Name])
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		if !slices.Contains(c.state.Libs[global.Name], Field{lua.LVAsString(key), v}) {
			return false
		}
		left--
	}
	return left == 0
}

// canCopy reports whether a value, and everything in it, can be copied.
func (c *capture) canCopy(v lua.LValue, depth int) bool {
	switch v := v.(type) {
	case *lua.LFunction:
		if v.IsG { // one that the run has made may have a state
			return v.Env != c.state.Run.Env
		}
		return c.seen[v] || depth < maxImageDepth && c.canCopyFunction(v, depth+1)
	case *lua.LTable:
		return c.seen[v] || depth < maxImageDepth && c.canCopyTable(v, depth+1)
	case *lua.LUserData:
		return v == luastd.Null
	case *lua.LState, lua.LChannel:
		return false
	}
	return true
}

func (c *capture) canCopyFunction(f *lua.LFunction, depth int) bool {
	c.seen[f] = true
	for _, shared := range f.Upvalues {
		if !c.canCopy(shared.Value(), depth) {
			return false
		}
	}
	return c.canCopy(f.Env, depth)
}

func (c *capture) canCopyTable(t *lua.LTable, depth int) bool {
	c.seen[t] = true
	if meta, ok := t.Metatable.(*lua.LTable); ok {
		if _, unread := c.state.LibraryOf(t); unread {
			return true
		}
		if !c.state.IsMark(meta) && (c.state.Owns(meta) || !c.canCopy(meta, depth)) {
			return false
		}
	}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		switch key.(type) {
		case lua.LString, lua.LNumber, lua.LBool:
		default: // the copy would have another key
			return false
		}
		if !c.canCopy(v, depth) {
			return false
		}
	}
	return true
}

// Restore makes a copy of an image in a run that has made nothing else yet, and returns the copy of
// one of its values.
func (s *State) Restore(image *Image, wanted lua.LValue) lua.LValue {
	c := &copier{state: s, env: image.env}
	for _, g := range image.globals {
		v := c.copy(g.Value)
		s.Run.Env.RawSetString(g.Name, v)
		if g.Name == "string" {
			s.stringMeta.RawSetString("__index", v)
		}
	}
	if image.loaded != nil {
		tableCopy{c, image.loaded}.FillTable(loadedModules(s))
	}
	if f, ok := wanted.(*lua.LFunction); ok && len(c.made)+len(f.Upvalues) == 0 && f.Env == image.env { // most are such
		return &lua.LFunction{Proto: f.Proto, Env: s.Run.Env}
	}
	return c.copy(wanted)
}

// copier makes one copy of each function, variable and table of an image.
type copier struct {
	state *State
	env   *lua.LTable // whose copy is the environment of the run
	made  map[any]any
}

func (c *copier) keep(original, copied any) {
	if c.made == nil {
		c.made = map[any]any{}
	}
	c.made[original] = copied
}

func (c *copier) copy(v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case *lua.LFunction:
		if !v.IsG {
			return c.function(v)
		}
	case *lua.LTable:
		return c.table(v)
	}
	return v
}

func (c *copier) function(f *lua.LFunction) *lua.LFunction {
	if made, ok := c.made[f]; ok {
		return made.(*lua.LFunction)
	}
	made := &lua.LFunction{Proto: f.Proto, Env: c.table(f.Env), Upvalues: make([]*lua.Upvalue, len(f.Upvalues))}
	c.keep(f, made)
	for i, shared := range f.Upvalues {
		made.Upvalues[i] = c.variable(shared)
	}
	return made
}

func (c *copier) variable(shared *lua.Upvalue) *lua.Upvalue {
	if made, ok := c.made[shared]; ok {
		return made.(*lua.Upvalue)
	}
	made := &lua.Upvalue{}
	c.keep(shared, made)
	made.SetValue(c.copy(shared.Value()))
	return made
}

// table copies a table. One without a metatable is copied when the script touches it.
func (c *copier) table(t *lua.LTable) *lua.LTable {
	if t == c.env {
		return c.state.Run.Env
	}
	if made, ok := c.made[t]; ok {
		return made.(*lua.LTable)
	}
	var made *lua.LTable
	if library, unread := c.state.LibraryOf(t); unread {
		made = c.state.Lazy(library)
		c.keep(t, made)
		return made
	}
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok {
		made = c.state.Lazy(tableCopy{c, t})
		c.keep(t, made)
		return made
	}
	made = c.state.L.CreateTable(t.MaxN(), 0)
	c.keep(t, made)
	tableCopy{c, t}.FillTable(made)
	if c.state.IsMark(meta) {
		made.Metatable = meta
		return made
	}
	copied := c.table(meta)
	c.state.Fill(copied) // the interpreter reads metamethods as they are
	made.Metatable = copied
	return made
}

// tableCopy is a table of an image whose copy has not been read yet.
type tableCopy struct {
	*copier
	of *lua.LTable
}

func (c tableCopy) FillTable(t *lua.LTable) {
	n := 0
	for key, v := c.of.Next(lua.LNil); key != lua.LNil; key, v = c.of.Next(key) {
		t.RawSet(key, c.copy(v))
		n++
	}
	c.state.Budget.Spent(n)
}

func (c tableCopy) LookupField(key lua.LValue) lua.LValue {
	return c.copy(c.of.RawGet(key))
}
