package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/host"
	"obelus/host/luatest"
	"obelus/host/model"
)

func testCommand(a *app) *cobra.Command {
	var o testOptions
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
  test.model(function(question) return … end)   test.cassette("refund")

No model is asked. test.model answers for it; test.cassette has it answer as recorded
in tests/cassettes/NAME.json, and what is not recorded fails the test. --record asks
for that, and records it; --record=all asks for everything anew; --prune drops what
no test has used.

What goes wrong in such a function of test.http fails the test, and what it answers
is not followed elsewhere, as a redirect is otherwise.

Assertions; each takes a message behind its arguments, and "not":

  assert(value, message)   assert.is_not_nil(value)   assert.is_true(value)
  assert.equal(expected, actual)   by ==     assert.same(…)   all the way down
  assert.near(expected, actual, tolerance)   assert.matches(pattern, text)
  assert.has_error(fn, raised)   assert.is_table(value), is_string, is_number, …

Exit status: 0, or 1 if a test failed.`,
		Example: `  obelus test
  obelus test tests/pay_test.lua --run 'refuses .* twice'`,
		RunE: func(c *cobra.Command, args []string) error { return runTests(c.Context(), a, args, o) },
		Args: cobra.ArbitraryArgs,
	}
	c.Flags().StringVar(&o.pattern, "run", "", "only tests whose name matches `PATTERN`, a regular expression")
	c.Flags().StringVar(&o.record, "record", "", "ask models for what cassettes lack, or with =all for `ALL` that tests ask")
	c.Flags().Lookup("record").NoOptDefVal = "missing"
	c.Flags().BoolVar(&o.prune, "prune", false, "drop the recorded answers that no test has used")
	a.allow.register(c)
	return c
}

// testOptions holds the flags of test.
type testOptions struct {
	pattern string
	record  string
	prune   bool
}

// recording is what --record says.
func (o testOptions) recording() (model.Recording, error) {
	switch o.record {
	case "":
		return model.ReplayOnly, nil
	case "missing":
		return model.RecordMissing, nil
	case "all":
		return model.RecordAll, nil
	}
	return 0, exit.Usagef("--record=%s: it is --record, or --record=all", o.record)
}

// runTests runs the tests of files whose names match a pattern.
func runTests(ctx context.Context, a *app, files []string, o testOptions) error {
	wanted, err := regexp.Compile(o.pattern)
	if err != nil {
		return exit.Usagef("--run %s: it is no regular expression", o.pattern)
	}
	recording, err := o.recording()
	if err != nil {
		return err
	}
	if o.prune && (o.pattern != "" || len(files) > 0) {
		return exit.Usage("--prune drops what no test has used: run all tests, without names and --run")
	}
	tests, err := openTests(a, files)
	if err != nil {
		return err
	}
	tests.Record(recording)
	files, named, err := testFiles(a, tests, files)
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
			tally.reportBrokenFile(file, err)
			continue
		}
		if len(found) == 0 && slices.Contains(named, file) {
			tally.emptyFiles = append(tally.emptyFiles, file)
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
	if err := saveCassettes(a, tests, o, tally.failed == 0 && o.pattern == "" && len(named) == 0); err != nil {
		return err
	}
	return tally.end(o.pattern)
}

// saveCassettes writes what was recorded. complete says that all tests ran and passed, so that
// what none has used is of no use.
func saveCassettes(a *app, tests *luatest.Tests, o testOptions, complete bool) error {
	cassettes := tests.Cassettes()
	for _, name := range slices.Sorted(maps.Keys(cassettes)) {
		c := cassettes[name]
		switch unused := c.Unused(); {
		case len(unused) == 0 || !complete:
		case o.prune:
			a.term.Infof("%s: dropped %s", c.Name, human.Count(c.Prune(), "answer"))
		default:
			a.term.Noticef("%s: no test has used %s (--prune drops them)", c.Name, strings.Join(unused, ", "))
		}
		if err := c.Save(); err != nil {
			return err
		}
	}
	return nil
}

// openTests loads the project that the test files are in.
func openTests(a *app, files []string) (*luatest.Tests, error) {
	first := ""
	if len(files) > 0 {
		first = files[0]
		// It may be the project's folder itself.
		if info, err := os.Stat(first); err == nil && info.IsDir() {
			first = filepath.Join(first, host.SettingsFile)
		}
	}
	config, err := a.projectConfig(first)
	if err != nil {
		return nil, err
	}
	return luatest.Open(config)
}

// testFiles returns the files to run, and named, the files among them that arguments name.
func testFiles(a *app, tests *luatest.Tests, args []string) (files, named []string, err error) {
	if len(args) == 0 {
		files, err = tests.Files()
		if err == nil && len(files) == 0 {
			err = exit.Usagef("%s has no tests: they are files tests/NAME_test.lua", a.dir)
		}
		return files, nil, err
	}
	for _, file := range args {
		if _, err := os.Stat(file); err != nil && a.projectFlag == "" {
			return nil, nil, exit.Usagef("can't read %s: %s", file, cli.PlainError(err))
		}
		name, err := a.nameInProject(file)
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
			return nil, nil, exit.Usagef("%s has no tests: they are files NAME_test.lua", file)
		}
		files = append(files, below...)
	}
	return unique(files), named, nil
}

// unique removes repeated names, and keeps the order. A file may be named, and lie in a named
// folder.
func unique(names []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// tally counts how tests end, and prints each.
type tally struct {
	app                     *app
	file                    string // the file of the test that was printed last
	passed, failed, pending int
	emptyFiles              []string // files without tests
	writeError              error    // the first error of writing a line
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

// run runs a test, counts and prints it.
func (t *tally) run(ctx context.Context, tests *luatest.Tests, test luatest.Test) {
	line := testLine{File: test.File, Name: test.Name, Line: test.Line, Status: "pending"}
	if test.Pending {
		t.pending++
		t.report(line, nil)
		return
	}
	began := time.Now()
	err := tests.Run(ctx, test)
	line.Duration = float64(time.Since(began).Microseconds()) / 1000
	line.Status = "passed"
	if err == nil {
		t.passed++
		t.report(line, nil)
		return
	}
	t.failed++
	line.Status = "failed"
	t.report(line, err)
}

// reportBrokenFile prints the error of a file whose tests can't be listed.
func (t *tally) reportBrokenFile(file string, err error) {
	t.failed++
	t.report(testLine{File: file, Status: "failed"}, err)
}

func (t *tally) report(line testLine, err error) {
	out := t.app.term
	var failure *luatest.Failure
	if errors.As(err, &failure) && strings.Contains(failure.Expected+failure.Actual, "\n") {
		line.Diff = strings.TrimPrefix(udiff.Unified("expected", "actual", failure.Expected+"\n", failure.Actual+"\n"), "--- expected\n+++ actual\n")
	}
	if err != nil {
		line.Error = err.Error()
	}
	if t.app.json {
		t.writeError = cmp.Or(t.writeError, out.NDJSON(line))
		return
	}
	if t.file != line.File {
		t.file = line.File
		out.Infof("%s", line.File)
	}
	mark := map[string]string{"passed": out.Paint(human.Green, "✓"), "failed": out.Paint(human.Red, "✗"), "pending": out.Paint(human.Yellow, "…")}[line.Status]
	if line.Status == "pending" {
		out.Infof("  %s %s", mark, line.Name)
		return
	}
	if line.Status != "failed" {
		out.Infof("  %s %s %s", mark, line.Name, out.Paint(human.Grey, human.Duration(time.Duration(line.Duration*float64(time.Millisecond)))))
		return
	}
	out.Noticef("  %s %s\n      %s", mark, line.Name, strings.ReplaceAll(line.Error, "\n", "\n      "))
	t.showMore(line, failure)
}

// showMore prints the diff of a failed test, and its traceback under -v.
func (t *tally) showMore(line testLine, failure *luatest.Failure) {
	out := t.app.term
	for text := range strings.Lines(line.Diff) {
		text = strings.TrimRight(text, "\n")
		switch {
		case strings.HasPrefix(text, "@@"):
			continue
		case strings.HasPrefix(text, "-"):
			text = out.Paint(human.Green, text)
		case strings.HasPrefix(text, "+"):
			text = out.Paint(human.Red, text)
		}
		out.Noticef("        %s", text)
	}
	if line.Diff != "" {
		out.Noticef("        %s", out.Paint(human.Grey, "(- expected, + got)"))
	}
	if t.app.verbose && failure != nil && failure.Trace() != "" {
		out.Noticef("      %s", strings.ReplaceAll(failure.Trace(), "\n", "\n      "))
	}
}

func (t *tally) end(pattern string) error {
	if pattern != "" && t.passed+t.failed+t.pending == 0 {
		return exit.Usagef("--run %s: no test has such a name", pattern)
	}
	text := fmt.Sprintf("%d passed, %d failed", t.passed, t.failed)
	if t.pending > 0 {
		text += fmt.Sprintf(", %d pending", t.pending)
	}
	if !t.app.json {
		t.app.term.Infof("%s", text)
	}
	for _, file := range t.emptyFiles {
		t.app.term.Error(exit.Usage(file + ": it holds no tests: describe and it define them"))
	}
	switch {
	case t.writeError != nil:
		return t.writeError
	case t.failed > 0:
		return exit.Failed
	case len(t.emptyFiles) > 0:
		return exit.Refused
	}
	return nil
}
