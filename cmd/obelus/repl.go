package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"obelus/engine"
	"obelus/host"
	"obelus/host/repl"
	"obelus/store"
)

func (a *app) replCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "repl",
		Short: "a Lua prompt with the project loaded",
		Long: `Open a Lua prompt with the project loaded, in the sandbox that its scripts have.

` + replHelp + `

The history is kept in .obelus/history. Elsewhere than on a terminal, lines are
read from stdin without a prompt, and values are all that goes to stdout.

Exit status: 0; elsewhere than on a terminal 1 if any input failed.`,
		Example: `  obelus repl
  printf '=1+1\n' | obelus repl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.repl(c.Context()) },
	}
	a.allow.register(c)
	return c
}

const replHelp = `  1 + 1, or =1 + 1       an expression: its value is printed
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

// prompt is a session of repl.
type prompt struct {
	app    *app
	lua    *repl.Session
	failed bool // some input did
}

// lineReader is where the lines of a session come from. It gives io.EOF where
// the session is to end, and errDropped for a line that is not wanted.
type lineReader interface {
	read(ctx context.Context, more bool) (string, error)
	// running gives a context for one input, which an interrupt ends.
	running(ctx context.Context) (context.Context, func())
}

var errDropped = errors.New("dropped")

func (a *app) repl(ctx context.Context) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	a.prompting = true // a question that an interrupt ends would take the next line for its answer
	p := &prompt{app: a}
	p.lua = repl.New(a.host.Generation(), repl.Actions{Run: p.runFunction, Call: p.callFunction})
	defer p.lua.Close()
	if a.asksLines() {
		return p.onTerminal(ctx)
	}
	err := p.session(ctx, newPipedLines(a.stdin))
	if err == nil && p.failed {
		err = statusError(exitFailed)
	}
	return err
}

// session evaluates one input after the other. What fails does not end it.
func (p *prompt) session(ctx context.Context, lines lineReader) error {
	input := ""
	var incomplete *repl.IncompleteError
	for {
		line, err := lines.read(ctx, input != "")
		switch {
		case ctx.Err() != nil:
			return statusError(exitInterrupted)
		case errors.Is(err, errDropped):
			input = ""
			continue
		case errors.Is(err, io.EOF):
			if input != "" {
				p.tell(incomplete.ScriptError)
			}
			return nil
		case err != nil:
			return err
		}
		running, end := lines.running(ctx)
		err = p.evaluate(running, input+line, input == "")
		end()
		if ctx.Err() != nil {
			return statusError(exitInterrupted)
		}
		if errors.As(err, &incomplete) {
			input += line + "\n"
			continue
		}
		input = ""
		p.tell(err)
	}
}

// tell tells of an error, and keeps in mind that there was one.
func (p *prompt) tell(err error) {
	var status statusError
	if err == nil {
		return
	}
	p.failed = true
	if errors.As(err, &status) {
		return // it has been told
	}
	p.app.fail(err)
	var script *host.ScriptError
	if errors.As(err, &script) && p.app.verbose && script.Trace() != "" {
		p.app.term.tell("  %s", strings.ReplaceAll(script.Trace(), "\n", "\n  "))
	}
}

// commandLine is a line that is no Lua: a command and its arguments. A call or a
// comparison of a variable of that name looks otherwise. No start of the program
// should wait for a pattern with all letters.
var commandLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(run|call)\s+((?:\.{0,2}/)?[\p{L}\p{N}_].*)$`)
})

// evaluate does what an input says. What is no Lua stands in a line of its own.
func (p *prompt) evaluate(ctx context.Context, input string, first bool) error {
	if line := strings.TrimSpace(input); first {
		m := commandLine().FindStringSubmatch(line)
		switch {
		case line == "":
			p.lua.Skip(1)
			return nil
		case line == "help":
			p.lua.Skip(1)
			p.app.term.tell("%s", replHelp)
			return nil
		case strings.HasPrefix(line, store.Dagger):
			p.lua.Skip(1)
			return p.withLog(func() error { return p.app.about(ctx, line, asked{}, p.app.get) })
		case m != nil:
			p.lua.Skip(1)
			return p.withLog(func() error { return p.command(ctx, m[1], m[2]) })
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
	return p.app.term.line(strings.Join(values, separator))
}

// withLog lets go of the log afterwards: others may want it while somebody
// thinks.
func (p *prompt) withLog(do func() error) error {
	err := do()
	if p.app.log == nil {
		return err
	}
	closed := p.app.log.Close()
	p.app.log = nil
	return cmp.Or(err, closed)
}

// command is a line "run PLAN key=value…" or "call TOOL key=value…".
func (p *prompt) command(ctx context.Context, name, arguments string) error {
	words, err := splitWords(arguments)
	if err != nil {
		return err
	}
	var start engine.Start
	registry := p.app.host.Generation().Registry()
	if name == "run" {
		for _, word := range words[1:] {
			if isStdin(word) {
				return &usageError{word + ": the prompt reads stdin itself"}
			}
		}
		if start.Input, err = p.app.readInputs(ctx, words[1:]); err != nil {
			return err
		}
		start.Request, registry, err = p.app.host.Plan(p.planName(words[0]))
	} else {
		var call map[string]any
		if call, err = readPairs(words[1:]); err == nil {
			start.Request, err = p.app.callRequest(registry, words[0], call)
		}
	}
	if err != nil {
		return err
	}
	return p.app.carryOut(ctx, start, registry, runOptions{one: name == "call"})
}

// planName is a plan's name in the project: from the working directory if there
// is such a file, else from the project's folder.
func (p *prompt) planName(file string) string {
	if _, err := os.Stat(file); err == nil {
		if name, err := p.app.inProject(file); err == nil {
			return name
		}
	}
	return filepath.ToSlash(file)
}

// runFunction is run(plan, [input]) in Lua.
func (p *prompt) runFunction(ctx context.Context, plan string, input map[string]any) (any, string, error) {
	request, registry, err := p.app.host.Plan(p.planName(plan))
	if err != nil {
		return nil, "", err
	}
	start := engine.Start{Request: request}
	if input != nil {
		start.Input = request.Lists("input", input, registry.Schemas...)
	}
	return p.carryOut(ctx, start, registry, runOptions{})
}

// callFunction is call(tool, [parameters]) in Lua.
func (p *prompt) callFunction(ctx context.Context, tool string, parameters map[string]any) (any, string, error) {
	registry := p.app.host.Generation().Registry()
	request, err := p.app.callRequest(registry, tool, parameters)
	if err != nil {
		return nil, "", err
	}
	return p.carryOut(ctx, engine.Start{Request: request}, registry, runOptions{one: true})
}

// carryOut gives the output of a run, or how it ended otherwise, which it tells
// as the command does.
func (p *prompt) carryOut(ctx context.Context, start engine.Start, registry *engine.Registry, o runOptions) (output any, why string, err error) {
	err = p.withLog(func() error {
		outcome, err := p.app.outcome(ctx, start, registry, o)
		if err != nil {
			return err
		}
		p.app.explain(outcome)
		if output = outcome.Output; outcome.Status != engine.RunDone {
			output, why = nil, string(outcome.Status)
		}
		return nil
	})
	return output, why, err
}
