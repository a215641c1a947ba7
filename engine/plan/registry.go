package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"obelus/engine/schema"
	"obelus/store"
)

// Activity does the work of calls. A Lua function, a Go function and a model
// are activities. Run is called from several goroutines at once.
type Activity interface {
	// Run does one call. It gives up when ctx is done. Its error is a
	// [*Failure] where the work was done and came to nothing, which a plan
	// may count on; any other error is a fault of the machine, which is never
	// taken for an outcome (protocol §5).
	Run(ctx context.Context, in Invocation) (Result, error)
}

// Speculative is an activity that may do a call before the log has that it has begun: then
// its outcome tells that too. It may do one, too, before the log has what that reads: where
// no other call runs, so that the run commits several at once that follow one on the other,
// and while what it reads is being written. This is asked only of calls that may run twice.
type Speculative interface {
	Activity

	// RunAhead does one call as Run does, as long as nobody can tell. Before anything of
	// it could be seen outside, or when ctx is done before it has ended, it gives up,
	// leaves nothing behind, and tells that it has not run: then Run does the call from
	// the beginning, once the log has what is missing, and calls of the activity do not
	// run ahead for a while, the longer the oftener they give up. What it has done may
	// come to nothing, and be done again. ctx is done after a millisecond, and nothing
	// else of the run may happen meanwhile: what takes long must heed it, and no goroutine
	// be ended. It is called from several goroutines at once.
	Speculate(ctx context.Context, in Invocation) (res Result, ran bool, err error)
}

// ActivityFunc makes an activity of a Go function.
type ActivityFunc func(ctx context.Context, in Invocation) (Result, error)

// Run calls f.
func (f ActivityFunc) Run(ctx context.Context, in Invocation) (Result, error) { return f(ctx, in) }

// Invocation is what an activity receives. Its values are JSON's as package store
// has them, wherever they come from: nil, bool, string, [json.Number], []any and
// map[string]any. A number is a [json.Number] with the text that it was written
// with, so an integer that a Go activity gave back as an int is one too. The values
// are shared and must not be changed; whoever hands them to a script makes a copy.
type Invocation struct {
	Call    map[string]any // every parameter resolved, and the meta-properties
	Context map[string]any // what the call's scopes grant, by kind
	Tool    any            // the tool's schema
	Key     string         // context/tick.position: the same at every attempt, of whichever process

	// Attempt is 1 for the first try since the call was begun or gone on with, and
	// grows as it is retried. A process that died may have tried before, and so may
	// the call that a person has run again: whether something has been done already
	// is told by Key alone.
	Attempt int

	Question *Question // of a latent call that a model answers
}

// Result is what an activity gives back.
type Result struct {
	// Value goes to the first alternative of the output path. It may be anything
	// that encoding/json writes: a struct with its tags, a map or slice of any
	// type, a number of any, [time.Time], a [json.Marshaler]; [store.FromGo] makes
	// JSON of it before anybody reads it. What JSON doesn't have (NaN, a channel,
	// text that is not UTF-8) fails the call, whatever its alternatives. What is
	// JSON already is not copied, and must not be changed any more.
	Value any
	// To, if it is set, names a path: Value goes to the first alternative that
	// holds it.
	To string
	// Message, if it is not nil, chooses the alternative by what it contains,
	// and Value and To count for nothing. It is a data message as a script
	// writes it: "type", "data" and perhaps "kind". What it holds may be what
	// Value may be.
	Message map[string]any
	// Unseen tells that nothing of the call could be seen outside, and that it may run
	// again: then it may be recorded together with calls that follow it. This is believed
	// of a [Speculative] alone.
	Pure bool
	// Loose tells that an empty object in it may be an empty array, as in Lua:
	// what the schemas say that hold at its place decides ([schema.Schema.Lists]).
	Loose bool
}

// Failure is an outcome: the activity ran and says no. Fields become the value
// that goes to the last of several alternatives; "message" is among them, and the
// others may be what the value of a [Result] may be. "retry" is false where to try
// again is of no use. Of text that is not valid UTF-8 the bytes that are not become
// U+FFFD; what else JSON doesn't have fails the call, whatever its alternatives. An
// error may wrap one.
type Failure struct {
	Fields map[string]any
	Loose  bool // as of a [Result]
}

// NewFailure is a failure with a message and nothing else.
func NewFailure(format string, args ...any) *Failure {
	return &Failure{Fields: map[string]any{"message": fmt.Sprintf(format, args...)}}
}

func (f *Failure) Error() string {
	if message, ok := f.Fields["message"].(string); ok {
		return message
	}
	return string(store.EncodeJSON(f.Fields))
}

// Registered is an activity under its name, with how it wants to be run.
type Registered struct {
	Name     string // in a list; in a [Registry] it has the name that it is found by
	Activity Activity

	// Timeout is how long one attempt may take; 0 for DefaultTimeout. Then its
	// context is done, and the attempt has failed of it, whatever it gives back
	// later. A goroutine can't be ended from outside: an activity in Go that does
	// not heed its context is waited for, keeps its place among those that run at
	// once, and is tried again, or fails, only once it has returned. Where its run
	// is stopped it is left behind; see [engine.Runner.Run].
	Timeout time.Duration

	Retries       int           // further attempts after a failure
	Backoff       time.Duration // before the second attempt, doubled for each one after; 0 for DefaultBackoff
	NotIdempotent bool          // in doubt after a crash, instead of run again
	Concurrency   int           // how many calls of it one run, with its delegates, makes at once; 0 for no limit of its own
	StandIn       bool          // it runs its tool's calls also where that names another activity, or they have a delegate by name: in a test

	ReturnsNothing bool // it ends without a value where it does not fail, so that its calls write null: check warns of them

	Script string      // the file that registered it, below the project; empty for Go
	SHA256 string      // of that file
	Code   *store.Code // what its calls run, that file among it; nil for Go

	// Latest gives the registry that was loaded last, where scripts are loaded
	// anew while runs go on; nil for an activity that stays as it is. A call
	// begins with the newest version of its activity, as long as its tool is
	// still the one that its plan was checked by.
	Latest func() *Registry

	skipped, backoff int32 // see staysBehind; by way of sync/atomic
}

// Defaults of [Registered].
const (
	DefaultTimeout = 30 * time.Second
	DefaultBackoff = time.Second
)

// Registry is what a plan's calls may name. It is not changed once it is used.
type Registry struct {
	Tools      map[string]*Tool
	Activities map[string]*Registered
	Delegates  map[string]*Delegate

	// File reads the delegate in a file below the project, "lib/sum.lua"; nil
	// where there are no files.
	File func(name string) (*Delegate, error)

	// Model answers latent calls; nil where there is none.
	Model Model

	// Schemas are the options of all schemas that a run meets: of tools, of what it
	// reads and writes, and of its output.
	Schemas []schema.Option

	base *Registry // without the tools that a context or a request brings; nil if it is that itself
}

// NewRegistry is an empty registry.
func NewRegistry() *Registry {
	return &Registry{Tools: map[string]*Tool{}, Activities: map[string]*Registered{}, Delegates: map[string]*Delegate{}}
}

// With is the registry with further tools, which win over tools of the same
// name.
func (r *Registry) With(tools map[string]*Tool) *Registry {
	if len(tools) == 0 {
		return r
	}
	joined := *r
	joined.base = cmp.Or(r.base, r)
	joined.Tools = map[string]*Tool{}
	for _, from := range []map[string]*Tool{r.Tools, tools} {
		for name, tool := range from {
			joined.Tools[name] = tool
		}
	}
	return &joined
}

// WithoutFormats is a registry for calls that were accepted, maybe by an older version, which
// looked at no formats: their tools do not either.
func (r *Registry) WithoutFormats(calls []any) (*Registry, error) {
	lenient := map[string]*Tool{}
	for _, call := range calls {
		given, _ := call.(map[string]any)
		name, _ := given["_tool"].(string)
		tool, known := r.Tool(name)
		if !known || lenient[name] != nil || !hasKey(tool.Schema, "format") {
			continue
		}
		again, err := NewTool(name, tool.Schema, append(slices.Clip(r.Schemas), schema.IgnoreFormats)...)
		if err != nil {
			return nil, err
		}
		lenient[name] = again
	}
	return r.With(lenient), nil
}

// hasKey reports whether an object in a value has a key.
func hasKey(v any, key string) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if name == key || hasKey(e, key) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return hasKey(e, key) })
	}
	return false
}

// Check tells what is wrong with how an activity is registered, as whoever runs a
// plan with a call of it is told.
func (r *Registered) Check() error {
	nothing := errors.New("it has nothing to run: give it a function")
	if r == nil {
		return nothing
	}
	fn, isFunc := r.Activity.(ActivityFunc)
	switch {
	case r.Activity == nil, isFunc && fn == nil:
		return nothing
	case r.Timeout < 0:
		return fmt.Errorf("its timeout must not be negative: %s", r.Timeout)
	case r.Backoff < 0:
		return fmt.Errorf("its backoff must not be negative: %s", r.Backoff)
	case r.Retries < 0, r.Concurrency < 0:
		return errors.New("neither its retries nor its concurrency may be negative")
	}
	return nil
}

// Current is the activity of a name as a call to it begins now.
func (r *Registered) Current(name string, tool *Tool) *Registered {
	if r.Latest == nil {
		return r
	}
	now := r.Latest()
	next, ok := now.Activities[name]
	if !ok || next == r {
		return r
	}
	if same, ok := now.Tool(tool.Name); ok && same != nil && (same == tool || reflect.DeepEqual(same.Schema, tool.Schema)) {
		return next
	}
	return r
}

// Tool finds a tool: one that was registered, or the tool {} of an activity
// without one.
func (r *Registry) Tool(name string) (*Tool, bool) {
	if tool, ok := r.Tools[name]; ok {
		return tool, true
	}
	if _, ok := r.Activities[name]; ok {
		return &Tool{Name: name, Schema: map[string]any{}, made: true}, true
	}
	return nil, false
}

// Names lists what a call may name as its tool, sorted.
func (r *Registry) Names() []string {
	var names []string
	for name := range r.Tools {
		names = append(names, name)
	}
	for name := range r.Activities {
		if _, ok := r.Tools[name]; !ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// maxSkipped is how many calls of an activity do not run ahead after one that would have been
// seen: its work was in vain. After one that was late it is one, and more with each that
// is, less with each that is not: it may have waited for a processor.
const maxSkipped = 127

// SkipsSpeculation tells whether the next call of the activity is not to run ahead.
func (r *Registered) SkipsSpeculation() bool {
	return atomic.LoadInt32(&r.skipped) > 0 && atomic.AddInt32(&r.skipped, -1) >= 0
}

// NoteSpeculation notes what became of a call that was to run ahead.
func (r *Registered) NoteSpeculation(ran, late bool) {
	n := atomic.LoadInt32(&r.backoff)
	switch {
	case ran:
		atomic.StoreInt32(&r.backoff, n/2)
		return
	case late:
		n = min(2*n+1, maxSkipped)
	default:
		n = maxSkipped
	}
	atomic.StoreInt32(&r.backoff, n)
	atomic.StoreInt32(&r.skipped, n)
}
