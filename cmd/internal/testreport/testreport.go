// Package testreport prints how Lua tests end, for the command test.
package testreport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/term"
	"obelus/host/luatest"
)

// Report counts how tests end, and prints each.
type Report struct {
	Terminal *term.Terminal
	JSON     bool   // print a line of JSON for each test
	Format   string // of Formats, to print all tests in at the end; empty for none
	Verbose  bool   // print the traceback of a failure

	lines []testLine // for Format

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

// Run runs a test, counts and prints it.
func (r *Report) Run(ctx context.Context, tests *luatest.Tests, test luatest.Test) {
	line := testLine{File: test.File, Name: test.Name, Line: test.Line, Status: "pending"}
	if test.Pending {
		r.pending++
		r.report(line, nil)
		return
	}
	began := time.Now()
	err := tests.Run(ctx, test)
	line.Duration = float64(time.Since(began).Microseconds()) / 1000
	line.Status = "passed"
	if err == nil {
		r.passed++
		r.report(line, nil)
		return
	}
	r.failed++
	line.Status = "failed"
	r.report(line, err)
}

// BrokenFile prints the error of a file whose tests can't be listed.
func (r *Report) BrokenFile(file string, err error) {
	r.failed++
	r.report(testLine{File: file, Status: "failed"}, err)
}

// report prints a test.
func (r *Report) report(line testLine, err error) {
	out := r.Terminal
	var failure *luatest.Failure
	if errors.As(err, &failure) && strings.Contains(failure.Expected+failure.Actual, "\n") {
		line.Diff = strings.TrimPrefix(udiff.Unified("expected", "actual", failure.Expected+"\n", failure.Actual+"\n"), "--- expected\n+++ actual\n")
	}
	if err != nil {
		line.Error = err.Error()
	}
	if r.lines = append(r.lines, line); r.JSON {
		r.writeError = cmp.Or(r.writeError, out.NDJSON(line))
		return
	}
	if r.file != line.File {
		r.file = line.File
		out.Infof("%s", line.File)
	}
	mark := map[string]term.Painted{"passed": out.Paint(human.Green, "✓"), "failed": out.Paint(human.Red, "✗"), "pending": out.Paint(human.Yellow, "…")}[line.Status]
	if line.Status == "pending" {
		out.Infof("  %s %s", mark, line.Name)
		return
	}
	if line.Status != "failed" {
		out.Infof("  %s %s %s", mark, line.Name, out.Paint(human.Grey, human.Duration(time.Duration(line.Duration*float64(time.Millisecond)))))
		return
	}
	out.Noticef("  %s %s\n      %s", mark, line.Name, strings.ReplaceAll(line.Error, "\n", "\n      "))
	r.showMore(line, failure)
}

// showMore prints the diff of a failed test, and its traceback under -v.
func (r *Report) showMore(line testLine, failure *luatest.Failure) {
	out := r.Terminal
	for text := range strings.Lines(line.Diff) {
		text = strings.TrimRight(text, "\n")
		var shown any = text
		switch {
		case strings.HasPrefix(text, "@@"):
			continue
		case strings.HasPrefix(text, "-"):
			shown = out.Paint(human.Green, text)
		case strings.HasPrefix(text, "+"):
			shown = out.Paint(human.Red, text)
		}
		out.Noticef("        %s", shown)
	}
	if line.Diff != "" {
		out.Noticef("        %s", out.Paint(human.Grey, "(- expected, + got)"))
	}
	if r.Verbose && failure != nil && failure.Trace() != "" {
		out.Noticef("      %s", strings.ReplaceAll(failure.Trace(), "\n", "\n      "))
	}
}

// EmptyFile notes that a file which an argument names has no tests.
func (r *Report) EmptyFile(file string) { r.emptyFiles = append(r.emptyFiles, file) }

// Passed reports whether no test has failed so far.
func (r *Report) Passed() bool { return r.failed == 0 }

// End prints how many tests passed and failed, and returns the error that the command ends with.
func (r *Report) End(filter *Filter) error {
	if filter.IsPartial() && r.passed+r.failed+r.pending+len(r.emptyFiles) == 0 {
		return filter.errNothing()
	}
	text := fmt.Sprintf("%d passed, %d failed", r.passed, r.failed)
	if r.pending > 0 {
		text += fmt.Sprintf(", %d pending", r.pending)
	}
	if r.Format != "" {
		r.writeError = cmp.Or(r.writeError, r.write())
	}
	if !r.JSON {
		r.Terminal.Infof("%s", text)
	}
	for _, file := range r.emptyFiles {
		r.Terminal.Error(exit.Usage(file + ": it holds no tests: describe and it define them"))
	}
	switch {
	case r.writeError != nil:
		return r.writeError
	case r.failed > 0:
		return exit.Failed
	case len(r.emptyFiles) > 0:
		return exit.Refused
	}
	return nil
}
