package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/host/internal/codec"
	"obelus/host/internal/luac"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/projectfs"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/store"
)

// Plan reads a plan file, "plans/refund.lua" or .json, from the project's folder as it is now. It
// returns the request, and the registry to run it with: the generation's own, joined by the
// registrations of the file itself. Calls of its activities run the file's top level again. The
// error is a [*ScriptError], or [Errors]. A file whose time and size are as they were when it was
// last read is not read again, unless it had just been changed then.
func (g *Generation) Plan(file string) (*plan.Request, *plan.Registry, error) {
	name := path.Clean(strings.ReplaceAll(file, `\`, "/"))
	if !fs.ValidPath(name) || g.config.FS == nil {
		return nil, nil, &ScriptError{File: file, Message: "a plan is a file below the project's folder"}
	}
	kind := path.Ext(name)
	if kind != ".lua" && kind != ".json" { // even if it is too large to read
		return nil, nil, &ScriptError{File: name, Message: "a plan is a .lua or a .json file"}
	}
	f, err := g.planFile(name)
	if err != nil {
		return nil, nil, err
	}
	if request := f.constant.Load(); request != nil {
		own := *request // the caller may set its fields
		return &own, g.registry, nil
	}
	if kind == ".lua" {
		request, registry, err := g.luaPlan(f)
		if err == nil && luac.IsConstant(f.chunk()) {
			f.keep(request)
		}
		return request, registry, err
	}
	request, err := g.jsonPlan(name, f.source)
	if err == nil {
		f.keep(request)
	}
	return request, g.registry, err
}

// planFile is a text of a plan's file, with what need not be made anew each time that the plan is
// read.
type planFile struct {
	name     string
	source   []byte
	script   *sandbox.Script              // nil for JSON
	chunk    func() []ast.Stmt            // its syntax tree, parsed on first use
	constant atomic.Pointer[plan.Request] // set once a text that gives the same each time was read

	read atomic.Pointer[projectfs.File] // the file as it was last read
}

// keep keeps the request of a text that gives the same each time, in JSON, or in Lua without a call
// or a name, and with it the plan that is compiled of it. A request that can't be normalized is
// refused where it runs.
func (f *planFile) keep(request *plan.Request) {
	if own, err := request.Keep(); err == nil {
		f.constant.Store(own)
	}
}

// planFile returns the file of a plan as it is now, compiled if it is Lua.
func (g *Generation) planFile(name string) (*planFile, error) {
	var known *planFile
	if v, ok := g.plans.Load(name); ok {
		known = v.(*planFile)
		if known.read.Load().IsCurrent(g.config.FS, name) {
			return known, nil
		}
	}
	file := projectfs.ReadSettled(g.config.FS, name)
	if file.Err != nil {
		return nil, g.unreadPlan(name, file.Err)
	}
	if known != nil && bytes.Equal(known.source, file.Bytes) {
		known.read.Store(&file)
		return known, nil
	}
	f := &planFile{name: name, source: file.Bytes}
	f.read.Store(&file)
	if path.Ext(name) == ".lua" {
		var err error
		if f.script, err = sandbox.NewScript(name, f.source, g.project.Limits.Source); err != nil {
			return nil, err
		}
		f.chunk = sync.OnceValue(func() []ast.Stmt {
			chunk, _ := luac.ParseChunk(name, f.source) // it was compiled
			return chunk
		})
	}
	g.plans.Store(name, f)
	return f, nil
}

// RunsCode reports whether calls of an activity of a script run with the code of a digest: with the
// generation's own, or with that and the text that a plan's file has now.
func (g *Generation) RunsCode(digest, script string) bool {
	if _, loaded := g.sources[script]; loaded || digest == g.Digest || g.config.FS == nil {
		return digest == g.Digest
	}
	f, err := g.planFile(script)
	return err == nil && f.script != nil && g.codeWith(f.script).Digest == digest
}

// unreadPlan returns the error for a plan's file that can't be read.
func (g *Generation) unreadPlan(name string, err error) error {
	unread := projectfs.Unreadable(name, err)
	if near := g.nearPlan(name); near != "" && errors.Is(err, fs.ErrNotExist) {
		unread.Message += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return unread
}

// nearPlan returns the existing plan that the path of an absent one may mean; empty for none.
func (g *Generation) nearPlan(name string) string {
	entries, _ := fs.ReadDir(g.config.FS, path.Dir(name)) // an unreadable folder has no hints
	files := map[string]string{}                          // by name without the ending
	for _, entry := range entries {
		if ending := path.Ext(entry.Name()); !entry.IsDir() && (ending == ".lua" || ending == ".json") {
			files[strings.TrimSuffix(entry.Name(), ending)] = path.Join(path.Dir(name), entry.Name())
		}
	}
	stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
	return files[spell.Nearest(stem, slices.Sorted(maps.Keys(files)))]
}

// PlanOf reads the plan of a run again, a plan's file or a delegate, and returns it with its
// registry. [obelus/engine/journal.Context.RootPlan] returns its name. unread is the reason why
// that is not possible: resuming can do without the request, unless a function is to be asked
// again, and without the registry that a plan's file would add to.
func (g *Generation) PlanOf(name string) (request *plan.Request, registry *plan.Registry, unread error) {
	if name == "" || name == plan.Anonymous {
		return nil, g.registry, nil
	}
	if d, ok := g.registry.Delegates[name]; ok {
		return d.Request, g.registry, nil
	}
	request, registry, unread = g.Plan(name)
	if unread != nil {
		return nil, g.registry, unread
	}
	return request, registry, nil
}

// requestTable is a request, in Lua and in JSON. Its tags describe it for editors.
type requestTable struct {
	Calls    any            `json:"calls" kind:"calls"`
	Plan     any            `json:"plan" kind:"calls" jsonschema:"another word for calls"`
	Context  []any          `json:"context" kind:"messages" jsonschema:"messages"`
	Mode     string         `json:"mode" kind:"mode"`
	Model    string         `json:"model" kind:"model" jsonschema:"of a request without calls: the model that plans it"`
	Offer    []string       `json:"offer" kind:"offer" jsonschema:"the tools that it may plan with; all"`
	Output   any            `json:"output"`
	Refusals int            `json:"refusals" jsonschema:"of its plans, in a row, that end the run; 3"`
	Bridge   bool           `json:"bridge" jsonschema:"as a delegate: show it arguments that do not fit its input"`
	Schema   any            `json:"schema" kind:"schema" jsonschema:"a JSON Schema for the final output"`
	Scopes   any            `json:"scopes" kind:"scopes" jsonschema:"what a function or a model gets of the context"`
	Tools    map[string]any `json:"tools" kind:"tools"`
}

// requestForm is the form of requests.
var requestForm = setting.Form{Noun: "field", Kinds: map[string]setting.Kind{
	"calls":    setting.Of("", "obelus.Call[]|fun(context: obelus.Context): obelus.Request", setting.Same[any]),
	"messages": setting.Of("a list of messages", "table[]", setting.Same[[]any]),
	"mode":     setting.Words("eager", "lazy"),
	"model":    setting.Match("the name of a model", func(string) bool { return true }),
	"offer":    {Want: "a list of tools by name", Type: "string[]", Read: setting.Texts.Read},
	"schema":   setting.Of("", "table", setting.Same[any]),
	"scopes":   setting.Of("", "string[]", setting.Same[any]),
	"tools":    setting.Of("an object of schemas by name", "table<string, table>", setting.Same[map[string]any]),
}}

// planningFields are those of a request that a model plans.
var planningFields = []string{"bridge", "model", "offer", "refusals"}

func (g *Generation) luaPlan(f *planFile) (*plan.Request, *plan.Registry, error) {
	found := newRegistrations()
	s := g.session()
	s.begin(context.Background(), g.config.LoadTimeout, f.script, found)
	defer s.Run.Stop()
	s.Run.Lines = map[*lua.LTable]int{}
	v, err := s.RunFile(f.script)
	if err != nil {
		return nil, nil, luaerr.From(err)
	}
	registry, err := g.joinRegistrations(found)
	if err != nil {
		return nil, nil, err
	}
	p := g.reader(f.name, f.script, registry)
	p.place = func(field string) int { return luac.FieldLine(f.chunk(), field) }
	request, err := p.readGuarded(s, v)
	if err != nil {
		return nil, nil, err
	}
	s.end()
	return request, registry, nil
}

// reader returns a reader for the plan that a script's file returns.
func (g *Generation) reader(name string, sc *sandbox.Script, registry *plan.Registry) *planReader {
	p := &planReader{file: name, registry: registry}
	p.planner = &planner{gen: g, script: sc, reader: p}
	return p
}

// joinRegistrations returns the registry with the registrations of a plan file.
func (g *Generation) joinRegistrations(found *registrations) (*plan.Registry, error) {
	if len(found.tools)+len(found.activities)+len(found.delegates) == 0 {
		return g.registry, nil
	}
	registry := plan.NewRegistry()
	maps.Copy(registry.Tools, g.registry.Tools)
	maps.Copy(registry.Activities, g.registry.Activities)
	maps.Copy(registry.Delegates, g.registry.Delegates)
	registry.File, registry.Model, registry.Models, registry.Schemas = g.registry.File, g.registry.Model, g.registry.Models, g.registry.Schemas
	registry.CheckAllow = g.registry.CheckAllow
	l := &loader{g: g}
	for name, d := range found.delegates {
		if _, ok := g.registry.Delegates[name]; ok {
			l.fail(&ScriptError{File: d.file, Line: d.line, Message: d.what + " is registered twice: the project registers it too"})
		}
	}
	for name, t := range found.tools {
		// Else register tells it.
		if _, ok := g.registry.Tools[name]; ok && !g.config.describes(name) {
			l.fail(&ScriptError{File: t.file, Line: t.line, Message: t.what + " is registered twice: the project registers it too"})
		}
	}
	for name, a := range found.activities {
		// Else register tells it.
		if before, ok := g.registry.Activities[name]; ok && before.Script != "" {
			l.fail(&ScriptError{File: a.file, Line: a.line, Message: a.what + " is registered twice: " + before.Script + " registers it too"})
		}
	}
	l.register(found, registry)
	if len(l.errors) == 0 {
		l.delegates(found, registry)
	}
	if len(l.errors) > 0 {
		return nil, luaerr.Sort(l.errors)
	}
	return registry, nil
}

// planReader makes a request of a plan's value.
type planReader struct {
	file string
	// Name of a part of a file that is read: `delegate "x": `; empty for a whole file.
	what     string
	line     int                           // of the part, 0 if it is not known
	place    func(field string) (line int) // of a field of the request; nil if it is not known
	registry *plan.Registry
	tools    map[string]any        // of the request
	made     map[string]*plan.Tool // tools of the request that were compiled
	schema   *schema.Schema        // of the request's output, nil for none
	planner  *planner              // for a plan that is a function; nil for JSON
}

func (p *planReader) fail(line int, format string, args ...any) error {
	return &ScriptError{File: p.file, Line: cmp.Or(line, p.line), Message: p.what + fmt.Sprintf(format, args...)}
}

// fieldLine returns the line of a request's field, or 0.
func (p *planReader) fieldLine(field string) int {
	if p.place == nil {
		return 0
	}
	return p.place(field)
}

// readGuarded is lua with errors that are raised while the value is read.
func (p *planReader) readGuarded(s *session, v lua.LValue) (request *plan.Request, err error) {
	err = sandbox.Guard(p.file, func() (err error) {
		request, err = p.readLua(s, v)
		return err
	})
	return request, err
}

// readLua reads the value that a Lua plan returns.
func (p *planReader) readLua(s *session, v lua.LValue) (*plan.Request, error) {
	t, ok := p.table(s, v)
	switch {
	case v.Type() == lua.LTFunction:
		return &plan.Request{Name: p.file, Planner: p.planner}, nil
	case v == lua.LNil:
		return nil, p.fail(0, "a plan must return a list of calls, a table with calls, or a function: it returns nothing")
	case !ok:
		return nil, p.fail(0, "a plan must return a list of calls, a table with calls, or a function, not a %s", v.Type())
	}
	fields, calls, choice, err := p.readFields(s, t)
	if err != nil {
		return nil, err
	}
	request, err := p.readRequest(fields)
	if err != nil {
		return nil, err
	}
	request.Choice = choice
	if request.Planner != nil {
		return request, nil
	}
	messages, err := p.messagesAmong(s, calls)
	if err == nil {
		err = p.addContext(request, messages)
	}
	if err != nil {
		return nil, err
	}
	request.Calls, err = p.readCalls(s, calls)
	return request, p.checkMixed(request, messages, err)
}

// checkMixed returns an error, or refuses a list with messages and without a call.
func (p *planReader) checkMixed(r *plan.Request, messages []any, err error) error {
	if err == nil && len(messages) > 0 && len(r.Calls) == 0 {
		err = p.fail(0, "there are messages and no call: append them (obelus append), or give them as the context of a request, {context = …}, for a model to plan")
	}
	return err
}

// messagesAmong returns the messages that stand among calls.
func (p *planReader) messagesAmong(s *session, calls *lua.LTable) (messages []any, err error) {
	s.Fill(calls)
	for i := 1; i <= calls.Len(); i++ {
		v, ok := calls.RawGetInt(i).(*lua.LTable)
		if !ok || !isLuaMessage(s, v) {
			continue
		}
		m, err := s.FromLua(v, fmt.Sprintf("message %d", len(messages)+1))
		if err != nil {
			return nil, p.fail(s.Run.Lines[v], "%s", err.Error())
		}
		messages = append(messages, m)
	}
	listed := luacall.Listed(map[string]any{"context": messages}, luacall.RequestSchema).(map[string]any)
	messages, _ = listed["context"].([]any)
	return messages, nil
}

// isLuaMessage is [isMessage] for a table of Lua.
func isLuaMessage(s *session, t *lua.LTable) bool {
	s.Fill(t)
	return t.RawGetString("type") != lua.LNil && !isLuaCall(t)
}

// table returns the table that a plan or a planner returns. Output.to by itself is the output, of
// no calls.
func (p *planReader) table(s *session, v lua.LValue) (*lua.LTable, bool) {
	if _, _, ok := luacall.SentTo(v); ok {
		t := s.L.CreateTable(0, 2)
		t.RawSetString("calls", s.L.CreateTable(0, 0))
		t.RawSetString("output", v)
		return t, true
	}
	t, ok := v.(*lua.LTable)
	return t, ok
}

// readFields reads a table with calls and other fields, or a list of calls. It leaves the calls to
// be read once the tools beside them are known. calls is nil if they are a function. choice is
// where Output.to sends the output; nil without it.
func (p *planReader) readFields(s *session, t *lua.LTable) (fields map[string]any, calls *lua.LTable, choice *plan.Choice, err error) {
	s.Fill(t)
	given, called := map[string]any{}, map[string]any{}
	if isLuaCall(t) {
		one := s.L.CreateTable(1, 0)
		one.RawSetInt(1, t)
		t = one
	}
	if key, _ := t.Next(lua.LNil); t.Len() > 0 || key == lua.LNil {
		request := s.L.CreateTable(0, 1)
		request.RawSetString("calls", t)
		t = request
	}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name := lua.LVAsString(key)
		if path, sent, ok := luacall.SentTo(v); ok && name == "output" {
			choice, v = &plan.Choice{To: path}, sent
		}
		if name != "calls" && name != "plan" {
			if given[name], err = s.FromLua(v, name); err != nil {
				return nil, nil, nil, p.fail(p.fieldLine(name), "%s", err.Error())
			}
			continue
		}
		switch v := v.(type) {
		case *lua.LTable:
			calls, called[name] = v, []any{}
		case *lua.LFunction:
			called[name] = p.planner
		default:
			return nil, nil, nil, p.fail(p.fieldLine(name), "%s must be a list of calls or a function, not a %s", name, v.Type())
		}
	}
	fields = luacall.Listed(given, luacall.RequestSchema).(map[string]any)
	maps.Copy(fields, called)
	return fields, calls, choice, nil
}

func isLuaCall(t *lua.LTable) bool { return t.RawGetString("_tool") != lua.LNil }

// readCalls reads the calls, each by the schema of its tool.
func (p *planReader) readCalls(s *session, t *lua.LTable) ([]plan.Source, error) {
	s.Fill(t)
	if isLuaCall(t) {
		return nil, p.fail(s.Run.Lines[t], "calls is a list of calls: put braces around this one")
	}
	n, key := codec.BeyondArray(t)
	if key != lua.LNil {
		return nil, p.fail(0, "the list of calls has the key %s: calls stand one after the other", codec.KeyText(key))
	}
	calls := make([]plan.Source, 0, n)
	for i := range n {
		v := t.RawGetInt(i + 1)
		if v == lua.LNil {
			return nil, p.fail(0, "call %d is nil: the list of calls has a hole", i+1)
		}
		call, _ := v.(*lua.LTable)
		if call != nil && isLuaMessage(s, call) {
			continue
		}
		source := plan.Source{Line: s.Run.Lines[call]}
		var tool *plan.Tool
		if call != nil {
			s.Fill(call)
			tool = p.tool(lua.LVAsString(call.RawGetString("_tool")))
		}
		var err error
		if source.Call, err = luacall.FromLua(s.State, v, tool, fmt.Sprintf("call %d", i+1)); err != nil {
			return nil, p.fail(source.Line, "%s", err.Error())
		}
		calls = append(calls, source)
	}
	return calls, nil
}

// tool returns the tool of a name, or nil if it is unknown or can't be compiled, which the engine
// reports.
func (p *planReader) tool(name string) *plan.Tool {
	schema, brought := p.tools[name]
	if !brought {
		tool, _ := p.registry.Tool(name)
		return tool
	}
	tool, made := p.made[name]
	if !made {
		tool, _ = plan.NewTool(name, schema, p.registry.Schemas...)
		if p.made == nil {
			p.made = map[string]*plan.Tool{}
		}
		p.made[name] = tool
	}
	return tool
}

// readRequest reads all fields except the calls.
func (p *planReader) readRequest(fields map[string]any) (*plan.Request, error) {
	var of requestTable
	form := requestForm
	form.JSON = p.planner == nil
	if errs := form.Decode(fields, &of); errs != nil {
		return nil, p.fail(p.fieldLine(errs[0].Keys[0]), "%s", errs)
	}
	r := &plan.Request{Name: p.file, Mode: of.Mode, Schema: of.Schema, Tools: of.Tools, Bridge: of.Bridge}
	_, hasCalls := fields["calls"]
	_, hasPlan := fields["plan"]
	if hasCalls && hasPlan {
		return nil, p.fail(p.fieldLine("plan"), `"plan" is another word for "calls": give one of them`)
	}
	if !hasCalls && !hasPlan {
		r.Planner = &plan.Planning{Model: of.Model, Offer: of.Offer, Refusals: of.Refusals}
	}
	for _, name := range planningFields {
		if _, ok := fields[name]; ok && (hasCalls || hasPlan) {
			return nil, p.fail(p.fieldLine(name), "%s is for a request that a model plans, which has neither calls nor a function", name)
		}
	}
	if r.Schema != nil && p.planner != nil {
		p.schema, _ = schema.New(r.Schema, p.registry.Schemas...) // the engine reports its problems
	}
	if r.Output.Value, r.Output.Set = fields["output"]; r.Output.Set {
		r.OutputLine = p.fieldLine("output")
	}
	r.Output.Value = p.schema.Lists(r.Output.Value)
	if err := p.readPlannerFields(r, fields); err != nil {
		return nil, err
	}
	p.tools = r.Tools
	if err := p.addContext(r, of.Context); err != nil {
		return nil, err
	}
	return r, nil
}

// addContext adds messages to the context of a request, and the tools that they define to those
// that are known.
func (p *planReader) addContext(r *plan.Request, given []any) error {
	messages, err := p.readMessages(given)
	for i := range messages {
		if definitions, ok := messages[i].Data.Value.(map[string]any); ok && messages[i].Type == store.TypeTool {
			p.tools = maps.Clone(p.tools)
			if p.tools == nil {
				p.tools = map[string]any{}
			}
			maps.Copy(p.tools, definitions)
		}
	}
	r.Context = append(r.Context, messages...)
	return err
}

// readPlannerFields reads the fields that only a function may have, and refuses those that it may
// not have.
func (p *planReader) readPlannerFields(r *plan.Request, fields map[string]any) (err error) {
	for _, name := range []string{"calls", "plan"} {
		if fn, ok := fields[name].(*planner); ok {
			r.Planner = fn
		}
	}
	scopes, scoped := fields["scopes"]
	switch {
	case r.Output.Set && r.IsModelPlanned():
		return p.fail(p.fieldLine("output"), "the model that plans it gives the output: schema says what it must be")
	case r.Planner != nil && r.Output.Set:
		return p.fail(p.fieldLine("output"), "output belongs into what the function returns, beside the calls")
	case scoped && r.Planner == nil:
		return p.fail(p.fieldLine("scopes"), "scopes are for a function or a model: they say what of the context it gets")
	case scoped:
		if r.Scopes, err = plan.ParseScopes(scopes); err != nil {
			return p.fail(p.fieldLine("scopes"), "scopes%s", err)
		}
	}
	return nil
}

func (p *planReader) readMessages(list []any) ([]store.Message, error) {
	messages, schemas := make([]store.Message, len(list)), map[string]*schema.Schema{}
	for i, e := range list {
		m, err := store.ParseMessage(e)
		if err != nil {
			return nil, p.fail(p.fieldLine("context"), "context message %d: %s", i+1, err)
		}
		if m.Schema != nil && p.planner != nil {
			schemas[m.Kind], _ = schema.New(m.Schema, p.registry.Schemas...)
		}
		m.Data.Value = schemas[m.Kind].Lists(m.Data.Value)
		messages[i] = m
	}
	return messages, nil
}

// PlanFiles lists the files below plans/ that may be plans, sorted.
func (g *Generation) PlanFiles() (files []string) {
	if g.config.FS == nil {
		return nil
	}
	fs.WalkDir(g.config.FS, "plans", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (path.Ext(name) == ".lua" || path.Ext(name) == ".json") {
			files = append(files, name)
		}
		return nil // unreadable paths are left out
	})
	return files
}
