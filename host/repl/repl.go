// Package repl is a Lua prompt over the scripts of a project, without the terminal: it evaluates
// inputs and completes words.
package repl

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/internal/inspect"
	"obelus/host/internal/limits"
	"obelus/host/internal/luac"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
)

// Session is a Lua prompt without the terminal: it evaluates one input after the other in one
// environment, in which globals stay and a local lasts for its input. It belongs to one goroutine.
type Session struct {
	gen     *host.Generation
	s       *sandbox.State
	actions Actions
	timeout time.Duration
	line    int    // number of earlier lines
	source  string // earlier inputs, on their lines, for the messages of errors
}

// Actions are the functions run(plan, [input]) and call(tool, [parameters]). They return the
// result, or why there is none ("failed", "waiting"); an error is a plan that is refused. ctx ends
// when the input is to end. A nil function is left out.
type Actions struct {
	Run  func(ctx context.Context, plan string, input map[string]any) (result any, why string, err error)
	Call func(ctx context.Context, tool string, parameters map[string]any) (result any, why string, err error)
}

// IncompleteError is an input that may become valid with more lines.
type IncompleteError struct {
	*host.ScriptError // the error if no lines follow
}

// Unwrap returns the error if no lines follow.
func (e *IncompleteError) Unwrap() error { return e.ScriptError }

// replFile is the name of the input in errors.
const replFile = "stdin"

// New opens a prompt over the scripts of a generation. The caller must call Close.
func New(g *host.Generation, actions Actions) *Session {
	r := &Session{gen: g, s: g.NewState(), actions: actions, timeout: cmp.Or(g.Settings().Timeout, plan.DefaultTimeout)}
	r.s.Begin(context.Background(), r.timeout, &sandbox.Script{File: replFile})
	if actions.Run != nil {
		r.s.Run.Env.RawSetString("run", r.s.L.NewFunction(r.run))
	}
	if actions.Call != nil {
		r.s.Run.Env.RawSetString("call", r.s.L.NewFunction(r.call))
	}
	return r
}

// Close ends the coroutines of the session.
func (r *Session) Close() { r.s.Run.Stop() }

// Skip counts lines that were not Lua, so that errors name the right ones.
func (r *Session) Skip(lines int) {
	r.line += lines
	r.source += strings.Repeat("\n", lines)
}

// Eval runs one input: an expression, which may have = before it, or statements. It returns the
// values as text. Its error is a [*host.ScriptError], or an [*IncompleteError], after which the
// whole input is to be given again with more lines. The next input finds everything as this one
// leaves it, even after an error.
func (r *Session) Eval(ctx context.Context, source string) (values []string, err error) {
	proto, err := r.compile(source)
	if err != nil {
		var incomplete *IncompleteError
		if !errors.As(err, &incomplete) {
			r.Skip(strings.Count(source, "\n") + 1)
		}
		return nil, err
	}
	r.remember(source)
	defer r.s.BeginInput(ctx, r.timeout)()
	results, err := r.s.Call(r.s.L.NewFunctionFromProto(proto))
	if err == nil { // tostring may be the script's
		_, err = r.s.Call(r.s.Fn(func(s *sandbox.State, _ *lua.LState) int {
			for _, v := range results {
				values = append(values, inspect.Short(s, v))
			}
			return 0
		}))
	}
	r.s.Run.Printed.Flush()
	if err != nil {
		return nil, luaerr.From(err)
	}
	return values, nil
}

// remember keeps an input for messages, which look for the names in a line. Each input is a block,
// so that a return in one of them is no error.
func (r *Session) remember(source string) {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(source, " \t"), "="); ok || r.isExpression(source) {
		if !ok {
			rest = source
		}
		source = "return " + rest
	}
	if len(r.source)+len(source) > limits.Defaults.Source {
		r.source = strings.Repeat("\n", r.line)
	}
	r.source += "do " + source + "\n end "
	r.line += strings.Count(source, "\n") + 1
	r.s.Run.Script = &sandbox.Script{File: replFile, Source: []byte(r.source)}
}

func (r *Session) isExpression(source string) bool {
	_, err := luac.ParseChunk(replFile, []byte("return "+source+"\n"))
	return err == nil
}

// compile compiles an input: as an expression if it can be one.
func (r *Session) compile(source string) (*lua.FunctionProto, error) {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(source, " \t"), "="); ok {
		proto, err := r.compileAfter("return ", rest)
		return proto, moveError(err, "return ", "=", r.line+1)
	}
	proto, asValue := r.compileAfter("return ", source)
	if asValue == nil {
		return proto, nil
	}
	asValue = moveError(asValue, "return ", "", r.line+1)
	proto, err := r.compileAfter("; ", source) // else # might begin a comment for Unix
	if err == nil {
		return proto, nil
	}
	err = moveError(err, "; ", "", r.line+1)
	if gotFurther(asValue, err) {
		err = asValue
	}
	return nil, err
}

func (r *Session) compileAfter(prefix, source string) (*lua.FunctionProto, error) {
	text := strings.Repeat("\n", r.line) + prefix + source + "\n"
	if len(source) > r.s.Project.Limits.Source {
		return nil, luaerr.From(errors.New(limits.Over("the input is too long", "source", r.s.Project.Limits.Source)))
	}
	proto, err := luac.Compile(replFile, []byte(text), sandbox.Functions)
	if err != nil && endsEarly(text) {
		return nil, &IncompleteError{luaerr.From(err)}
	}
	return proto, err
}

// endsEarly reports whether the end of the text is its only error.
func endsEarly(text string) (early bool) {
	// As luac.ParseChunk does: text that makes the parser panic needs no more lines.
	defer func() { recover() }()
	_, err := parse.Parse(strings.NewReader(text), replFile)
	var at *parse.Error
	return errors.As(err, &at) && at.Pos.Line == parse.EOF
}

// moveError moves an error to its place in the typed text, which has typed where the compiled text
// has prefix.
func moveError(err error, prefix, typed string, line int) error {
	var e *luaerr.ScriptError
	if errors.As(err, &e) && e.Line == line {
		if rest, ok := strings.CutPrefix(e.Source, prefix); ok {
			e.Source, e.Column = typed+rest, max(e.Column-len(prefix)+len(typed), 0)
		}
	}
	return err
}

// gotFurther reports whether one reading of the input got further than another.
func gotFurther(a, b error) bool {
	var x, y *luaerr.ScriptError
	if !errors.As(a, &x) || !errors.As(b, &y) {
		return false
	}
	return x.Line > y.Line || x.Line == y.Line && x.Column > y.Column
}

// run(plan, [input]) → output | nil, why
func (r *Session) run(L *lua.LState) int {
	plan := L.CheckString(1)
	var input map[string]any
	if L.Get(2) != lua.LNil {
		input = luacall.OptionalObject(r.s, L, 2, "input", nil)
	}
	return r.runAction(L, "run", func(ctx context.Context) (any, string, error) { return r.actions.Run(ctx, plan, input) })
}

// call(tool, [parameters]) → result | nil, why
func (r *Session) call(L *lua.LState) int {
	name := L.CheckString(1)
	parameters := map[string]any{}
	if L.Get(2) != lua.LNil {
		tool, _ := r.gen.Registry().Tool(name)
		v, err := luacall.FromLua(r.s, L.CheckTable(2), tool, "call")
		if err != nil {
			L.ArgError(2, err.Error())
		}
		if given, ok := v.(map[string]any); ok {
			parameters = given
		} else if v != nil {
			L.ArgError(2, "parameters have names")
		}
	}
	return r.runAction(L, "call", func(ctx context.Context) (any, string, error) { return r.actions.Call(ctx, name, parameters) })
}

// runAction runs calls, whose time does not count against the input.
func (r *Session) runAction(L *lua.LState, what string, do func(ctx context.Context) (any, string, error)) int {
	s := r.s
	s.Effect(L, what)
	s.Run.Printed.Flush()
	began := time.Now()
	result, why, err := do(s.Budget.Context)
	s.Budget.Extend(L, time.Since(began))
	switch {
	case err != nil:
		L.RaiseError("%s", err.Error())
	case why != "":
		return sandbox.Push(L, lua.LNil, lua.LString(why))
	}
	return sandbox.Push(L, s.ToLua(result))
}
