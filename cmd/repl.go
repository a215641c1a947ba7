package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

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

func replCommand(a *app) *cobra.Command {
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
		RunE: func(c *cobra.Command, _ []string) error { return runPrompt(c.Context(), a) },
	}
	a.allow.register(c)
	a.models.register(c)
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
	failed bool // whether an input failed
}

func runPrompt(ctx context.Context, a *app) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	a.prompting = true // a question that was interrupted would take the next line as its answer
	p := &prompt{app: a}
	p.lua = repl.New(a.host.Generation(), repl.Actions{Run: p.runFunction, Call: p.callFunction})
	defer p.lua.Close()
	if a.canTypeLines() {
		return p.onTerminal(ctx)
	}
	err := p.session(ctx, term.NewPipedLines(a.stdin))
	if err == nil && p.failed {
		err = exit.Failed
	}
	return err
}

// session evaluates one input after the other until the lines end. An input that fails does not end
// it.
func (p *prompt) session(ctx context.Context, lines term.LineReader) error {
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
func (p *prompt) report(err error) {
	var status exit.Status
	if err == nil {
		return
	}
	p.failed = true
	if errors.As(err, &status) {
		return // the command has printed it
	}
	p.app.fail(err)
	var script *host.ScriptError
	if errors.As(err, &script) && p.app.verbose && script.Trace() != "" {
		p.app.term.Noticef("  %s", strings.ReplaceAll(script.Trace(), "\n", "\n  "))
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
func (p *prompt) evaluate(ctx context.Context, input string, first bool) error {
	if line := strings.TrimSpace(input); first {
		m := commandLine().FindStringSubmatch(line)
		switch {
		case line == "":
			p.lua.Skip(1)
			return nil
		case line == "help":
			p.lua.Skip(1)
			p.app.term.Noticef("%s", replHelp)
			return nil
		case strings.HasPrefix(line, store.Dagger):
			p.lua.Skip(1)
			return p.withLog(func() error { return answerRef(ctx, p.app, line, refQuery{}, printRefValue) })
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
	return p.app.term.Line(strings.Join(values, separator))
}

// withLog calls do, and closes the log afterwards: other processes may want it while the person
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

// command runs a line "run PLAN key=value…" or "call TOOL key=value…".
func (p *prompt) command(ctx context.Context, name, arguments string) error {
	words, err := cli.Split(arguments)
	if err != nil {
		return err
	}
	var start engine.Start
	registry := p.app.host.Generation().Registry()
	if name == "run" {
		for _, word := range words[1:] {
			if cli.IsStdin(word) {
				return exit.Usage(word + ": the prompt reads stdin itself")
			}
		}
		if start.Input, err = cli.ReadInputs(ctx, p.app.stdin, words[1:]); err != nil {
			return err
		}
		start.Request, registry, err = p.app.host.Plan(p.planName(words[0]))
	} else {
		var call map[string]any
		if call, err = cli.ReadPairs(words[1:]); err == nil {
			start.Request, err = newCallRequest(p.app, registry, words[0], call)
		}
	}
	if err != nil {
		return err
	}
	return runAndReport(ctx, p.app, start, registry, runOptions{singleCall: name == "call"})
}

// planName returns a plan's name in the project: relative to the working directory if there is such
// a file, else relative to the project's folder.
func (p *prompt) planName(file string) string {
	if _, err := os.Stat(file); err == nil {
		if name, err := p.app.nameInProject(file); err == nil {
			return name
		}
	}
	return filepath.ToSlash(file)
}

// runFunction implements run(plan, [input]) in Lua.
func (p *prompt) runFunction(ctx context.Context, plan string, input map[string]any) (any, string, error) {
	request, registry, err := p.app.host.Plan(p.planName(plan))
	if err != nil {
		return nil, "", err
	}
	start := engine.Start{Request: request}
	if input != nil {
		start.Input = store.Some(request.Lists("input", input, registry.Schemas...))
	}
	return p.runForLua(ctx, start, registry, runOptions{})
}

// callFunction implements call(tool, [parameters]) in Lua.
func (p *prompt) callFunction(ctx context.Context, tool string, parameters map[string]any) (any, string, error) {
	registry := p.app.host.Generation().Registry()
	request, err := newCallRequest(p.app, registry, tool, parameters)
	if err != nil {
		return nil, "", err
	}
	return p.runForLua(ctx, engine.Start{Request: request}, registry, runOptions{singleCall: true})
}

// runForLua runs a plan and returns its output, or nil and the status if it is not done. It prints
// how the run ended as the command does.
func (p *prompt) runForLua(ctx context.Context, start engine.Start, registry *plan.Registry, o runOptions) (output any, why string, err error) {
	err = p.withLog(func() error {
		outcome, err := runToRest(ctx, p.app, start, registry, o)
		if err != nil {
			return err
		}
		explainOutcome(p.app, outcome)
		if output = outcome.Output; outcome.Status != journal.RunDone {
			output, why = nil, string(outcome.Status)
		}
		return nil
	})
	return output, why, err
}

// canTypeLines reports whether a person can type lines at the terminal.
func (a *app) canTypeLines() bool {
	in, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(in) && a.term.OutTTY
}

// onTerminal runs a session with a person.
func (p *prompt) onTerminal(ctx context.Context) error {
	history := ""
	if p.app.found {
		history = filepath.Join(p.app.dir, ".obelus", "history")
	}
	lines, err := term.OpenTypedLines(p.app.term, history, p.complete, p.app.finishInterrupt)
	if err != nil {
		return err
	}
	defer lines.Close()
	p.greet()
	err = p.session(ctx, lines)
	if status := exit.Status(0); err == nil || errors.As(err, &status) {
		fmt.Fprintln(p.app.term.Err) // the shell's prompt is to begin a line
	}
	return err
}

func (p *prompt) greet() {
	where := p.app.dir
	if !p.app.found {
		where = "no project"
	}
	p.app.term.Infof("obelus %s, %s\n=expr prints, †path reads, run PLAN and call TOOL run\nhelp says more, Ctrl-D leaves", version, where)
}
