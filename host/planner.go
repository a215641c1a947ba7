package host

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/projectfs"
	"obelus/host/internal/sandbox"
)

// planner is a function that a plan's file returns, or that is registered as a delegate. Every tick
// gets a function of its own, as the calls of activities do.
type planner struct {
	gen      *Generation
	script   *sandbox.Script
	delegate string // delegate "refund"; empty for a function that the file returns
	reader   *planReader
}

var _ plan.Planner = (*planner)(nil)

// Plan asks the function for the next calls.
func (p *planner) Plan(ctx context.Context, ask plan.Ask) (*plan.Solution, error) {
	s := p.gen.session()
	s.begin(ctx, cmp.Or(p.gen.settings.Timeout, plan.DefaultTimeout), p.script, &registrations{again: true})
	defer s.Run.Stop()
	s.Run.Lines = map[*lua.LTable]int{}
	var solution *plan.Solution
	err := sandbox.Guard(p.reader.file, func() (err error) {
		solution, err = p.ask(s, ask)
		return err
	})
	if _, raised := err.(*sandbox.Fault); raised {
		return nil, luaerr.From(err)
	}
	s.end()
	return solution, err
}

func (p *planner) ask(s *session, ask plan.Ask) (*plan.Solution, error) {
	v, err := s.make(p.script, p.delegate)
	if err != nil {
		return nil, err
	}
	fn := plannerFunction(s, v)
	if fn == nil {
		return nil, p.reader.fail(0, "the plan is no function this time")
	}
	if ask.Rehearsal { // the top level can do nothing to the world
		s.use(p.gen.rehearsal)
	}
	// See luacall.ReferenceFuncs.
	results, err := s.Call(fn, luacall.Table(s.State, plan.Literal(ask.Kinds)))
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		results = append(results, lua.LNil)
	}
	if len(results) > 1 && results[0] == lua.LNil && results[1] != lua.LNil {
		fields, err := sandbox.FailureFields(s.State, results[1])
		if err != nil {
			return nil, err
		}
		return nil, &plan.Failure{Fields: fields}
	}
	return p.reader.solution(s, results[0])
}

// plannerFunction returns the function in the value of a plan's file.
func plannerFunction(s *session, v lua.LValue) *lua.LFunction {
	if t, ok := v.(*lua.LTable); ok {
		s.Fill(t)
		if v = t.RawGetString("calls"); v == lua.LNil {
			v = t.RawGetString("plan")
		}
	}
	fn, _ := v.(*lua.LFunction)
	return fn
}

// solution reads the result of a planner. A table that can't be read is refused like calls that
// can't run: the planner may try again.
func (p *planReader) solution(s *session, v lua.LValue) (*plan.Solution, error) {
	t, ok := p.table(s, v)
	if !ok {
		got := "a " + v.Type().String()
		if v == lua.LNil {
			got = "nil"
		}
		return nil, p.fail(0, "the plan's function must return a table with calls, output or both, not %s", got)
	}
	solution, err := p.readSolution(s, t)
	if problems, ok := Problems(err); ok {
		err = &plan.PlanError{Problems: problems}
	}
	return solution, err
}

func (p *planReader) readSolution(s *session, t *lua.LTable) (*plan.Solution, error) {
	fields, calls, choice, err := p.readFields(s, t)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "calls" && name != "output" {
			return nil, p.fail(0, "the plan's function returned the unknown field %s%s", strconv.Quote(name), luaerr.DidYouMean(name, []string{"calls", "output"}))
		}
	}
	solution := &plan.Solution{Output: p.schema.Lists(fields["output"]), Choice: choice}
	if calls == nil {
		return solution, nil
	}
	if messages, err := p.messagesAmong(s, calls); err != nil || len(messages) > 0 {
		return nil, cmp.Or(err, p.fail(0, "the plan's function returned messages: it gives calls and output, and what calls read is written by other calls"))
	}
	solution.Calls, err = p.readCalls(s, calls)
	return solution, err
}

// delegates reads the registered delegates, with the tools of a registry. It runs each script that
// registers some once more.
func (l *loader) delegates(found *registrations, registry *plan.Registry) {
	names := map[*sandbox.Script][]string{}
	for _, name := range slices.Sorted(maps.Keys(found.delegates)) {
		script := found.delegates[name].script
		names[script] = append(names[script], name)
	}
	for script, own := range names {
		err := l.delegatesOf(script, own, found, registry)
		if err != nil {
			l.fail(luaerr.From(err))
		}
	}
}

// delegatesOf reads the delegates of one script. The error is one that was raised.
func (l *loader) delegatesOf(script *sandbox.Script, names []string, found *registrations, registry *plan.Registry) error {
	again := &registrations{again: true}
	s := l.g.session()
	s.begin(context.Background(), l.g.config.LoadTimeout, script, again)
	defer s.Run.Stop()
	s.Run.Lines = map[*lua.LTable]int{}
	if _, err := s.RunFile(script); err != nil {
		return err
	}
	for _, name := range names {
		d := found.delegates[name]
		p := l.g.reader(d.file, d.script, registry)
		p.what, p.line, p.planner.delegate = d.what+": ", d.line, d.what
		value := find(again.made, d.what)
		if value == nil {
			l.fail(p.fail(0, "the script did not register it this time"))
			continue
		}
		request, err := p.readGuarded(s, value)
		if _, raised := err.(*sandbox.Fault); raised {
			return err
		}
		if err != nil {
			l.fail(err)
			continue
		}
		registry.Delegates[name] = &plan.Delegate{Request: request}
	}
	s.end()
	return nil
}

// delegateFiles returns a function that reads delegates from files of the project. It reads each
// file again only if it has changed.
func (g *Generation) delegateFiles() func(name string) (*plan.Delegate, error) {
	var mu sync.Mutex
	known := map[string]fileDelegate{}
	return func(name string) (*plan.Delegate, error) {
		mu.Lock()
		defer mu.Unlock()
		clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
		file := projectfs.ReadSettled(g.config.FS, clean)
		if d, ok := known[clean]; ok && file.Err == nil && bytes.Equal(d.source, file.Bytes) {
			return d.delegate, nil
		}
		request, registry, err := g.Plan(clean)
		if err != nil {
			return nil, err
		}
		d := fileDelegate{file.Bytes, &plan.Delegate{Request: request, Registry: registry}}
		known[clean] = d
		return d.delegate, nil
	}
}

// fileDelegate is a delegate with the text of its file.
type fileDelegate struct {
	source   []byte
	delegate *plan.Delegate
}
