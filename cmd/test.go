package cmd

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/testreport"
	"obelus/cmd/internal/usage"
	"obelus/host"
	"obelus/host/luatest"
	"obelus/host/model"
	"obelus/store"
)

func testCommand(a *app) *cobra.Command {
	var o testOptions
	c := &cobra.Command{
		Use:   "test [FILE|DIR…]",
		Short: "run Lua tests",
		Long: `Run the project's tests, tests/**/*_test.lua, or the files that are named, and
those in folders that are. They are written in busted's vocabulary: describe, it,
before_each, after_each, setup, teardown, finally, pending, assert, spy and stub.
Each test runs in a state of its own, for at most the setting timeout. By require "test" it runs an activity or a
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
  assert.spy(s).was_called(times), was_called_with(…), was_not_called()

Exit status: 0, or 1 if a test failed.`,
		Example: `  obelus test
  obelus test tests/pay_test.lua --run 'refuses .* twice'
  obelus test --exclude-tags slow --output junit > tests.xml`,
		RunE: func(c *cobra.Command, args []string) error {
			if o.watch {
				return watchTests(c.Context(), a, args, o)
			}
			return runTests(c.Context(), a, args, o)
		},
		Args: cobra.ArbitraryArgs,
	}
	c.Flags().StringVar(&o.pattern, "run", "", "only tests whose name matches `PATTERN`, a regular expression")
	c.Flags().StringVar(&o.pattern, "filter", "", "the same as --run `PATTERN`")
	c.Flags().StringSliceVar(&o.filter.Tags, "tags", nil, "only tests with one of these `TAGS`: words with # in their name, as in #slow")
	c.Flags().StringSliceVar(&o.filter.Excluded, "exclude-tags", nil, "only tests without any of these `TAGS`")
	c.Flags().StringVar(&o.format, "output", "", "print all tests in a `FORMAT` for other programs: junit or tap")
	c.Flags().StringVar(&o.record, "record", "", "ask models for what cassettes lack, or with =all for `ALL` that tests ask")
	c.Flags().Lookup("record").NoOptDefVal = "missing"
	c.Flags().BoolVar(&o.watch, "watch", false, "run the tests again whenever a script, a plan or a test changes")
	c.Flags().BoolVar(&o.prune, "prune", false, "drop the recorded answers that no test has used")
	a.allow.Register(c)
	return c
}

// testOptions holds the flags of test.
type testOptions struct {
	pattern string
	record  string
	prune   bool
	watch   bool
	format  string
	filter  testreport.Filter
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

// watchTests runs tests, and again whenever a file changes that they may use, until ctx is done.
func watchTests(ctx context.Context, a *app, files []string, o testOptions) error {
	if o.format != "" {
		return exit.Usage("--watch goes on until it is interrupted, and --output is a report of one run: give one of them")
	}
	config, err := testConfig(a, files)
	if err != nil {
		return err
	}
	config.Show = func(store.LogLine) {} // the tests load the scripts too, and show what those print
	if a.host, err = host.Open(config); err != nil {
		return err
	}
	defer a.host.Close()
	further := []string{"tests", "plans"}
	for _, file := range files {
		if name, err := a.nameInProject(file); err == nil && name != "." {
			further = append(further, name)
		}
	}
	return runOnChange(ctx, a, func() error { return runTests(ctx, a, files, o) }, further...)
}

// runTests runs the tests of files whose names match a pattern.
func runTests(ctx context.Context, a *app, files []string, o testOptions) error {
	var err error
	if o.filter.Pattern, err = regexp.Compile(o.pattern); err != nil {
		return exit.Usagef("--run %s: it is no regular expression", o.pattern)
	}
	recording, err := o.recording()
	if err != nil {
		return err
	}
	if o.prune && (o.filter.IsPartial() || len(files) > 0) {
		return exit.Usage("--prune drops what no test has used: run all tests, without names, --run and --tags")
	}
	if o.format != "" {
		if err := usage.CheckWords("output", []string{o.format}, testreport.Formats...); err != nil {
			return err
		}
		if a.json {
			return exit.Usage("--output and --json are two formats: give one")
		}
	}
	config, err := testConfig(a, files)
	if err != nil {
		return err
	}
	tests, err := luatest.Open(config)
	if err != nil {
		return err
	}
	tests.Record(recording)
	files, named, err := testFiles(a, tests, files)
	if err != nil {
		return err
	}
	report := &testreport.Report{Terminal: a.term, JSON: a.json, Format: o.format, Verbose: a.verbose}
	all, err := listTests(ctx, tests, report, files, named)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	if report.Passed() && len(all) > 0 { // the tags of a broken file are not known
		if err := o.filter.CheckTags(names); err != nil {
			return err
		}
	}
	for _, t := range all {
		if o.filter.Picks(t.Name) {
			report.Run(ctx, tests, t)
		}
		if ctx.Err() != nil {
			return context.Canceled
		}
	}
	if err := saveCassettes(a, tests, o, report.Passed() && !o.filter.IsPartial() && len(named) == 0); err != nil {
		return err
	}
	return report.End(&o.filter)
}

// listTests returns the tests of files. Broken files go into the report, and those that are named
// and have no tests.
func listTests(ctx context.Context, tests *luatest.Tests, report *testreport.Report, files, named []string) (all []luatest.Test, err error) {
	for _, file := range files {
		found, err := tests.List(ctx, file)
		if ctx.Err() != nil {
			return nil, context.Canceled
		}
		if err != nil {
			report.BrokenFile(file, err)
			continue
		}
		if len(found) == 0 && slices.Contains(named, file) {
			report.EmptyFile(file)
		}
		all = append(all, found...)
	}
	return all, nil
}

// saveCassettes writes the cassettes that the tests used. complete says that all tests ran and
// passed, so that what none has used is of no use.
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

// testConfig returns how the project is to be loaded that the test files are in.
func testConfig(a *app, files []string) (host.Config, error) {
	first := ""
	if len(files) > 0 {
		first = files[0]
		// It may be the project's folder itself.
		if info, err := os.Stat(first); err == nil && info.IsDir() {
			first = filepath.Join(first, host.SettingsFile)
		}
	}
	return a.projectConfig(first)
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
	return cli.Unique(files), named, nil
}
