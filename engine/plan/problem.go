package plan

import (
	"fmt"
	"strings"

	"obelus/store"
)

// Severities of problems.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityNote    = "note" // nothing is wrong: what check lists
)

// Codes of problems, as check prints them.
const (
	CodeCycle       = "cycle"
	CodeUnknownTool = "unknown-tool"
	CodeExpression  = "bad-expression"
	CodeSchema      = "schema"
	CodeScope       = "scope"
	CodeUnresolved  = "unresolved"
	CodeUnordered   = "unordered-writes"
	CodeSyntax      = "syntax"
	CodePermission  = "permission"
	CodeTypes       = "types"
)

// Problem is one thing that is wrong with a plan, found before it runs.
type Problem struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Call     int    `json:"call,omitempty"` // position in the plan, from 1
	Tool     string `json:"tool,omitempty"`
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

// Error is the problem on one line for people, as far as its message is one:
// "plans/refund.lua:12: call 3 (confirmOrder): …".
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Call > 0 {
		fmt.Fprintf(&b, "call %d", p.Call)
		if p.Tool != "" {
			fmt.Fprintf(&b, " (%s)", p.Tool)
		}
		b.WriteString(": ")
	}
	return b.String() + p.Message
}

// PlanError is a plan that is refused whole, with all of its faults. From [Compile] and
// [obelus/engine.Runner.Check] warnings follow the errors; Error names errors alone.
type PlanError struct{ Problems []Problem }

// maxTold is how many problems a text names: what writes plans makes some mistakes in
// every call.
const maxTold = 20

func (e *PlanError) Error() string {
	var lines []string
	for _, err := range e.Unwrap() {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns what Error names, each an error of its own.
func (e *PlanError) Unwrap() []error {
	if e == nil {
		return nil
	}
	var told []error
	for _, p := range e.Problems {
		if p.Severity != SeverityWarning {
			told = append(told, p)
		}
	}
	if more := len(told) - maxTold; more > 0 {
		told = append(told[:maxTold], fmt.Errorf("and %d more", more))
	}
	return told
}

// Class implements the interface of [store.ClassOf].
func (e *PlanError) Class() store.Class { return store.Refused }

// Fault is something wrong with a call, with the code that check gives it.
type Fault struct {
	Code string
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }

func (f *Fault) Unwrap() error { return f.Err }

// Faultf returns a [*Fault] whose error is made as by [fmt.Errorf].
func Faultf(code, format string, args ...any) error {
	return &Fault{code, fmt.Errorf(format, args...)}
}
