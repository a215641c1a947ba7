package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"obelus/host"
	"obelus/host/luatest"
)

func (a *app) testCommand() *cobra.Command {
	pattern := ""
	c := &cobra.Command{
		Use:   "test [FILE|DIR…]",
		Short: "run Lua tests",
		Long: `Run the project's tests, tests/**/*_test.lua, or the files that are named, and
those in folders that are. They are written in busted's vocabulary: describe, it,
before_each, after_each, pending and assert. Each test runs in a state of its
own, for at most the setting timeout. By require "test" it runs an activity or a
plan, sets the clock, and answers requests:

  test.activity("pay", { amount = 3 }, { state = { … } })
  test.plan("plans/pay.lua", { input = { … }, tools = { pay = function(call) … end } })
  test.clock(1700000000)   test.http(function(request) return { body = { … } } end)

What goes wrong in such a function of test.http fails the test, and what it answers
is not followed elsewhere, as a redirect is otherwise.

Assertions, any of which takes a message behind its arguments, and "not":

  assert(value, message)   assert.is_not_nil(value)   assert.is_true(value)
  assert.equal(expected, actual)   by ==     assert.same(…)   all the way down
  assert.near(expected, actual, tolerance)   assert.matches(pattern, text)
  assert.has_error(fn, raised)   assert.is_table(value), is_string, is_number, …

Exit status: 0, or 1 if a test failed.`,
		Example: `  obelus test
  obelus test tests/pay_test.lua --run 'refuses .* twice'`,
		RunE: func(c *cobra.Command, args []string) error { return a.test(c.Context(), args, pattern) },
		Args: cobra.ArbitraryArgs,
	}
	c.Flags().StringVar(&pattern, "run", "", "only tests whose name matches `PATTERN`, a regular expression")
	a.allow.register(c)
	return c
}

func (a *app) test(ctx context.Context, files []string, pattern string) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return &usageError{fmt.Sprintf("--run %s: it is no regular expression", pattern)}
	}
	tests, err := a.openTests(files)
	if err != nil {
		return err
	}
	files, named, err := a.testFiles(tests, files)
	if err != nil {
		return err
	}
	tally := &tally{app: a}
	for _, file := range files {
		found, err := tests.List(ctx, file)
		if ctx.Err() != nil {
			return context.Canceled
		}
		if err != nil {
			tally.broken(file, err)
			continue
		}
		if len(found) == 0 && slices.Contains(named, file) {
			tally.empty = append(tally.empty, file)
		}
		for _, t := range found {
			if wanted.MatchString(t.Name) {
				tally.run(ctx, tests, t)
			}
			if ctx.Err() != nil {
				return context.Canceled
			}
		}
	}
	return tally.end(pattern)
}

// openTests loads the project that the files of tests are in.
func (a *app) openTests(files []string) (*luatest.Tests, error) {
	first := ""
	if len(files) > 0 {
		first = files[0]
		if info, err := os.Stat(first); err == nil && info.IsDir() { // it may be the project's own
			first = filepath.Join(first, host.SettingsFile)
		}
	}
	config, err := a.projectConfig(first)
	if err != nil {
		return nil, err
	}
	return luatest.Open(config)
}

// testFiles are the files to run, and those of them that arguments name.
func (a *app) testFiles(tests *luatest.Tests, args []string) (files, named []string, err error) {
	if len(args) == 0 {
		files, err = tests.Files()
		if err == nil && len(files) == 0 {
			err = &usageError{fmt.Sprintf("%s has no tests: they are files tests/NAME_test.lua", a.dir)}
		}
		return files, nil, err
	}
	for _, file := range args {
		if _, err := os.Stat(file); err != nil && a.projectFlag == "" {
			return nil, nil, &usageError{fmt.Sprintf("can't read %s: %s", file, plainError(err))}
		}
		name, err := a.inProject(file)
		if err != nil {
			return nil, nil, err
		}
		if info, err := os.Stat(filepath.Join(a.dir, filepath.FromSlash(name))); err != nil || !info.IsDir() {
			files, named = append(files, name), append(named, name)
			continue
		}
		below, err := tests.FilesIn(name)
		if err != nil {
			return nil, nil, err
		}
		if len(below) == 0 {
			return nil, nil, &usageError{fmt.Sprintf("%s has no tests: they are files NAME_test.lua", file)}
		}
		files = append(files, below...)
	}
	return once(files), named, nil
}

// once are names in their order without those that have come before: a file may
// be named and be in a folder that is.
func once(names []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// tally counts how tests end, and tells of each.
type tally struct {
	app                     *app
	file                    string // of which a test was told last
	passed, failed, pending int
	empty                   []string // files without tests
	unwritten               error    // why a line could not be written
}

// testLine is a test as test --json prints it.
type testLine struct {
	File     string  `json:"file"`
	Name     string  `json:"name,omitempty"`
	Line     int     `json:"line,omitempty"`
	Status   string  `json:"status"` // passed, failed or pending
	Duration float64 `json:"duration_ms"`
	Error    string  `json:"error,omitempty"`
	Diff     string  `json:"diff,omitempty"`
}

func (t *tally) run(ctx context.Context, tests *luatest.Tests, test luatest.Test) {
	line := testLine{File: test.File, Name: test.Name, Line: test.Line, Status: "pending"}
	if test.Pending {
		t.pending++
		t.tell(line, nil)
		return
	}
	began := time.Now()
	err := tests.Run(ctx, test)
	line.Duration = float64(time.Since(began).Microseconds()) / 1000
	line.Status = "passed"
	if err == nil {
		t.passed++
		t.tell(line, nil)
		return
	}
	t.failed++
	line.Status = "failed"
	t.tell(line, err)
}

// broken tells of a file whose tests can't be found.
func (t *tally) broken(file string, err error) {
	t.failed++
	t.tell(testLine{File: file, Status: "failed"}, err)
}

func (t *tally) tell(line testLine, err error) {
	term := t.app.term
	var failure *luatest.Failure
	if errors.As(err, &failure) && strings.Contains(failure.Expected+failure.Actual, "\n") {
		line.Diff = strings.TrimPrefix(udiff.Unified("expected", "actual", failure.Expected+"\n", failure.Actual+"\n"), "--- expected\n+++ actual\n")
	}
	if err != nil {
		line.Error = err.Error()
	}
	if t.app.json {
		t.unwritten = cmp.Or(t.unwritten, term.ndjson(line))
		return
	}
	if t.file != line.File {
		t.file = line.File
		term.say("%s", line.File)
	}
	mark := map[string]string{"passed": term.paint(green, "✓"), "failed": term.paint(red, "✗"), "pending": term.paint(yellow, "…")}[line.Status]
	if line.Status == "pending" {
		term.say("  %s %s", mark, line.Name)
		return
	}
	if line.Status != "failed" {
		term.say("  %s %s %s", mark, line.Name, term.paint(grey, duration(time.Duration(line.Duration*float64(time.Millisecond)))))
		return
	}
	term.tell("  %s %s\n      %s", mark, line.Name, strings.ReplaceAll(line.Error, "\n", "\n      "))
	t.showMore(line, failure)
}

// showMore shows the diff of a failed test, and with -v where it was.
func (t *tally) showMore(line testLine, failure *luatest.Failure) {
	term := t.app.term
	for text := range strings.Lines(line.Diff) {
		text = strings.TrimRight(text, "\n")
		switch {
		case strings.HasPrefix(text, "@@"):
			continue
		case strings.HasPrefix(text, "-"):
			text = term.paint(green, text)
		case strings.HasPrefix(text, "+"):
			text = term.paint(red, text)
		}
		term.tell("        %s", text)
	}
	if line.Diff != "" {
		term.tell("        %s", term.paint(grey, "(- expected, + got)"))
	}
	if t.app.verbose && failure != nil && failure.Trace() != "" {
		term.tell("      %s", strings.ReplaceAll(failure.Trace(), "\n", "\n      "))
	}
}

func (t *tally) end(pattern string) error {
	if pattern != "" && t.passed+t.failed+t.pending == 0 {
		return &usageError{fmt.Sprintf("--run %s: no test has such a name", pattern)}
	}
	text := fmt.Sprintf("%d passed, %d failed", t.passed, t.failed)
	if t.pending > 0 {
		text += fmt.Sprintf(", %d pending", t.pending)
	}
	if !t.app.json {
		t.app.term.say("%s", text)
	}
	for _, file := range t.empty {
		t.app.term.fail(&usageError{file + ": it holds no tests: describe and it define them"})
	}
	switch {
	case t.unwritten != nil:
		return t.unwritten
	case t.failed > 0:
		return statusError(exitFailed)
	case len(t.empty) > 0:
		return statusError(exitUsage)
	}
	return nil
}
