// Package prompt is the session of the command repl: it reads inputs, evaluates them as Lua, and
// has the command carry out those that run plans, call activities or read the log.
package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/repl"
	"obelus/store"
)

// Help describes the inputs of a session.
const Help = `  1 + 1, or =1 + 1       an expression: its value is printed
  x = require "str"      a statement; globals stay, a local lasts for one input
  †state.user            what the context holds, as JSON: that of -c, else the
                         latest; any expression that begins with †
  run PLAN key=value …   run a plan in a new context, or in that of -c; its
                         output is printed, as JSON
  call TOOL key=value …  run one activity; its result is printed, as JSON
  run("PLAN", {input}), call("TOOL", {parameters})
                         the same in Lua: the value, or nil and the status
  help                   this text

An input that is incomplete goes on in the next line. Ctrl-C drops a line, or
ends what runs; Ctrl-D leaves. What scripts print goes to stderr. A call that is
held for a person stays held: approve decides about it, and resume goes on.`

// Start is a run that an input asks for.
type Start struct {
	engine.Start
	Registry   *plan.Registry
	SingleCall bool // the output is the result of the only call
}

// Project is the project and the log as the command has them.
type Project interface {
	Generation() *host.Generation

	// Plan reads a plan's file by the name that was typed.
	Plan(file string) (*plan.Request, *plan.Registry, error)

	// Call returns the request of a single call of a tool.
	Call(registry *plan.Registry, tool string, parameters map[string]any) (*plan.Request, error)

	// Run carries out a run and prints how it ended.
	Run(ctx context.Context, s Start) error

	// Outcome carries out a run, prints what explains its end, and returns that.
	Outcome(ctx context.Context, s Start) (*journal.Outcome, error)

	// PrintRef prints the value of an expression that begins with †.
	PrintRef(ctx context.Context, ref string) error

	// Paths returns the paths of the context one segment below a prefix, which is empty or ends with
	// a dot.
	Paths(prefix string) []string

	// Fail prints an error.
	Fail(err error)
}

// Prompt is a session.
type Prompt struct {
	Terminal *term.Terminal
	Stdin    io.Reader
	Verbose  bool

	project Project
	lua     *repl.Session
	failed  bool // whether an input failed
}

// New returns a session, which the caller must close.
func New(project Project, terminal *term.Terminal, stdin io.Reader, verbose bool) *Prompt {
	p := &Prompt{Terminal: terminal, Stdin: stdin, Verbose: verbose, project: project}
	p.lua = repl.New(project.Generation(), repl.Actions{Run: p.runFunction, Call: p.callFunction})
	return p
}

// Close frees the session's interpreter.
func (p *Prompt) Close() { p.lua.Close() }

// ReadPiped runs a session over the lines of stdin. Its error is [exit.Failed] if an input failed.
func (p *Prompt) ReadPiped(ctx context.Context) error {
	err := p.session(ctx, term.NewPipedLines(p.Stdin))
	if err == nil && p.failed {
		err = exit.Failed
	}
	return err
}

// ReadTyped runs a session with a person: greet begins it, and beforeExit waits until an
// interrupted run is recorded. history is the file of the lines that were typed, or empty.
func (p *Prompt) ReadTyped(ctx context.Context, history string, greet, beforeExit func()) error {
	lines, err := term.OpenTypedLines(p.Terminal, history, p.complete, beforeExit)
	if err != nil {
		return err
	}
	defer lines.Close()
	greet()
	err = p.session(ctx, lines)
	if status := exit.Status(0); err == nil || errors.As(err, &status) {
		fmt.Fprintln(p.Terminal.Err) // the shell's prompt is to begin a line
	}
	return err
}

// session evaluates one input after the other until the lines end. An input that fails does not end
// it.
func (p *Prompt) session(ctx context.Context, lines term.LineReader) error {
	input := ""
	var incomplete *repl.IncompleteError
	for {
		line, err := lines.Read(ctx, input != "")
		switch {
		case ctx.Err() != nil:
			return exit.Interrupted
		case errors.Is(err, term.ErrDropped):
			input = ""
			continue
		case errors.Is(err, io.EOF):
			if input != "" {
				p.report(incomplete.ScriptError)
			}
			return nil
		case err != nil:
			return err
		}
		running, end := lines.Running(ctx)
		err = p.evaluate(running, input+line, input == "")
		end()
		if ctx.Err() != nil {
			return exit.Interrupted
		}
		if errors.As(err, &incomplete) {
			input += line + "\n"
			continue
		}
		input = ""
		p.report(err)
	}
}

// report prints an error, and remembers that an input failed.
func (p *Prompt) report(err error) {
	var status exit.Status
	if err == nil {
		return
	}
	p.failed = true
	if errors.As(err, &status) {
		return // the command has printed it
	}
	p.project.Fail(err)
	var script *host.ScriptError
	if errors.As(err, &script) && p.Verbose && script.Trace() != "" {
		p.Terminal.Noticef("  %s", strings.ReplaceAll(script.Trace(), "\n", "\n  "))
	}
}

// commandLine matches a line that is a command and its arguments, not Lua. It does not match a call
// or a comparison of a variable named run or call. It is compiled when it is first used, since a
// pattern with all letters takes time.
var commandLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(run|call)\s+((?:\.{0,2}/)?[\p{L}\p{N}_].*)$`)
})

// evaluate evaluates an input. first reports whether it is a line of its own, which may be a
// command or a reference.
func (p *Prompt) evaluate(ctx context.Context, input string, first bool) error {
	if line := strings.TrimSpace(input); first {
		m := commandLine().FindStringSubmatch(line)
		switch {
		case line == "":
			p.lua.Skip(1)
			return nil
		case line == "help":
			p.lua.Skip(1)
			p.Terminal.Noticef("%s", Help)
			return nil
		case strings.HasPrefix(line, store.Dagger):
			p.lua.Skip(1)
			return p.project.PrintRef(ctx, line)
		case m != nil:
			p.lua.Skip(1)
			return p.command(ctx, m[1], m[2])
		}
	}
	values, err := p.lua.Eval(ctx, input)
	if err != nil || len(values) == 0 {
		return err
	}
	separator := "\t"
	if strings.Contains(strings.Join(values, ""), "\n") {
		separator = "\n"
	}
	return p.Terminal.Line(strings.Join(values, separator))
}

// command runs a line "run PLAN key=value…" or "call TOOL key=value…".
func (p *Prompt) command(ctx context.Context, name, arguments string) error {
	words, err := cli.Split(arguments)
	if err != nil {
		return err
	}
	start := Start{Registry: p.project.Generation().Registry(), SingleCall: name == "call"}
	if name == "run" {
		for _, word := range words[1:] {
			if cli.IsStdin(word) {
				return exit.Usage(word + ": the prompt reads stdin itself")
			}
		}
		if start.Input, err = cli.ReadInputs(ctx, p.Stdin, words[1:]); err != nil {
			return err
		}
		start.Request, start.Registry, err = p.project.Plan(words[0])
	} else {
		var call map[string]any
		if call, err = cli.ReadPairs(words[1:]); err == nil {
			start.Request, err = p.project.Call(start.Registry, words[0], call)
		}
	}
	if err != nil {
		return err
	}
	return p.project.Run(ctx, start)
}

// runFunction implements run(plan, [input]) in Lua.
func (p *Prompt) runFunction(ctx context.Context, plan string, input map[string]any) (any, string, error) {
	request, registry, err := p.project.Plan(plan)
	if err != nil {
		return nil, "", err
	}
	start := Start{Start: engine.Start{Request: request}, Registry: registry}
	if input != nil {
		start.Input = store.Some(request.Lists("input", input, registry.Schemas...))
	}
	return p.runForLua(ctx, start)
}

// callFunction implements call(tool, [parameters]) in Lua.
func (p *Prompt) callFunction(ctx context.Context, tool string, parameters map[string]any) (any, string, error) {
	registry := p.project.Generation().Registry()
	request, err := p.project.Call(registry, tool, parameters)
	if err != nil {
		return nil, "", err
	}
	return p.runForLua(ctx, Start{Start: engine.Start{Request: request}, Registry: registry, SingleCall: true})
}

// runForLua carries out a run and returns its output, or nil and the status if it is not done.
func (p *Prompt) runForLua(ctx context.Context, start Start) (output any, why string, err error) {
	outcome, err := p.project.Outcome(ctx, start)
	if err != nil {
		return nil, "", err
	}
	if outcome.Status != journal.RunDone {
		return nil, string(outcome.Status), nil
	}
	return outcome.Output, "", nil
}

// complete returns the words that fit at the end of a line: paths of the context behind a †, else
// names of Lua. head is the part of the line before each word.
func (p *Prompt) complete(line string) (head string, words []string) {
	if at := strings.LastIndex(line, store.Dagger); at >= 0 {
		if begun := line[at+len(store.Dagger):]; !strings.ContainsAny(begun, " \t\"'()|&") {
			return line[:at], p.completePath(begun)
		}
	}
	from, words := p.lua.Complete(line)
	return line[:from], words
}

// completePath completes a path of the context. begun has no dagger.
func (p *Prompt) completePath(begun string) (words []string) {
	for _, path := range p.project.Paths(begun[:strings.LastIndex(begun, ".")+1]) {
		if strings.HasPrefix(path, begun) {
			words = append(words, store.Dagger+path)
		}
	}
	return words
}
