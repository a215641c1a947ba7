package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	// Run does one call. It gives up when ctx is done. Its error is a [*Failure] where the work was
	// done without success, which a plan may handle; any other error is a fault of the machine,
	// which is never taken for an outcome (protocol §5).
	Run(ctx context.Context, in Invocation) (Result, error)
}

// Described is an activity that knows its tool, such as one that engine.Typed makes.
type Described interface {
	Activity

	// Tool returns the JSON Schema of the activity's tool, for [NewTool].
	Tool() (any, error)
}

// Speculative is an activity that can do a call before the log has the call's start: its outcome
// then records the start too. It may also do a call before the log has the values that the call
// reads: where no other call runs, so that the run commits several calls in a row at once, and
// while those values are being written. This is asked only of calls that may run twice.
type Speculative interface {
	Activity

	// Speculate does one call as Run does, as long as no effect of it can be seen outside. Before a
	// visible effect, or when ctx is done before the call has ended, it gives up, leaves nothing
	// behind, and reports that the call has not run: Run then does the call from the beginning,
	// once the log has its start, and calls of the activity are not speculated on for a while, the
	// longer the more often they give up. A speculated result may be dropped, and the call done
	// again. ctx is done after a millisecond, and nothing else of the run happens meanwhile: a long
	// call must heed ctx, and must not end its goroutine. It is called from several goroutines at
	// once.
	Speculate(ctx context.Context, in Invocation) (res Result, ran bool, err error)
}

// ActivityFunc makes an activity of a Go function.
type ActivityFunc func(ctx context.Context, in Invocation) (Result, error)

// Run calls f.
func (f ActivityFunc) Run(ctx context.Context, in Invocation) (Result, error) { return f(ctx, in) }

// Invocation is the input of an activity. Its values are JSON as package store has it, wherever
// they come from: nil, bool, string, [json.Number], []any and map[string]any. A number is a
// json.Number with the text that it was written with, so an integer that a Go activity returned
// as an int is one too. The values are shared and must not be changed; an adapter to scripts makes
// copies.
type Invocation struct {
	Call    map[string]any // every parameter resolved, and the meta-properties
	Context map[string]any // values that the call's scopes grant, by kind
	Tool    any            // the tool's schema
	Allows  []any          // permissions that the tool leaves its calls, all of which bound them
	Key     string         // context/tick.position: the same at every attempt, in any process

	// Attempt is 1 for the first try since the call was begun or resumed, and grows as it is
	// retried. A process that died may have tried before, and so may a call that a person runs
	// again: only Key identifies the work that was done.
	Attempt int

	// Before is the number of attempts before those that Attempt counts.
	Before int

	// Timeout is how long the attempt may take; 0 for DefaultTimeout.
	Timeout time.Duration

	Question *Question // for a latent call that a model answers

	// Models are for an activity that asks models itself; nil where the run has none.
	Models *Models

	// Logs keeps the lines that the call prints and logs; nil where none are kept.
	Logs Logs
}

// Place returns the context and the call that the invocation is for, as its Key names them.
func (in *Invocation) Place() (context, call string) {
	i := strings.LastIndexByte(in.Key, '/')
	return in.Key[:max(i, 0)], in.Key[i+1:]
}

// Logs keeps the lines that calls print and log. Its methods may be called from several goroutines
// at once.
type Logs interface {
	// Keep keeps a line. It does not wait for the log.
	Keep(line store.LogLine)
	// Flush waits until the lines that were kept are in the log, or are lost with its error.
	Flush()
}

// Models are the models of a run, as one of its calls may ask them. Nothing is asked by a run that
// is replayed, or resumed behind the call: its outcome is in the log.
type Models struct {
	Registry *Registry // see [Registry.ModelNamed]
	Meter    *Meter    // counts for the call and its run, and may stop it; hand it to the model
}

// WithInvocation returns a context from which [InvocationOf] gives an invocation.
func WithInvocation(ctx context.Context, in Invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, in)
}

// InvocationOf returns the invocation that a function runs for, where it receives only its
// parameters: see engine.Typed. It is the zero Invocation in any other context.
func InvocationOf(ctx context.Context) Invocation {
	in, _ := ctx.Value(invocationKey{}).(Invocation)
	return in
}

type invocationKey struct{}

// Result is the result of an activity.
type Result struct {
	// Value goes to the first alternative of the output path. It may be anything that encoding/json
	// writes: a struct with its tags, a map or slice of any type, a number of any, [time.Time], a
	// [json.Marshaler]; [store.FromGo] makes JSON of it before it is read. A value that JSON lacks
	// (NaN, a channel, text that is not UTF-8) fails the call, whatever its alternatives. A value
	// that is JSON already is not copied, and must not be changed any more.
	Value any
	// To, if it is set, names an alternative as [Call.Alternatives] has it, or a path: Value
	// goes to the first alternative that holds that.
	To string
	// Message, if it is not nil, chooses the alternative by its content, and Value and To are
	// ignored. It is a data message as a script writes it: "type", "data" and perhaps "kind". Its
	// values may be of the types of Value.
	Message map[string]any
	// Pure reports that the call had no effect that can be seen outside, and that it may run again:
	// it may then be recorded together with calls that follow it. Only a [Speculative] activity may
	// set it.
	Pure bool
	// Loose reports that an empty object in the value may be an empty array, as in Lua: the schemas
	// at its place decide ([schema.Schema.Lists]).
	Loose bool
}

// Failure is an outcome: the activity ran and reports failure. Fields become the value that goes to
// the last of several alternatives; "message" is among them, and the others may be of the types of
// the value of a [Result]. "retry" is false where another attempt is of no use. Bytes that are not
// valid UTF-8 become U+FFFD; any other value that JSON lacks fails the call, whatever its
// alternatives. An error may wrap one.
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

// Registered is an activity under its name, with the options by which its calls are run.
type Registered struct {
	Name     string // for lists; in a [Registry] its key is its name
	Activity Activity

	// Timeout is how long one attempt may take; 0 for DefaultTimeout. After that its context is
	// done, and the attempt has failed, whatever it returns. A goroutine can't be ended from
	// outside: an activity in Go that does not heed its context still counts as one of the calls
	// that run at once, and the call is retried, or fails, only when it has returned. If its run is
	// stopped, it is not waited for; see [obelus/engine.Runner.Run].
	Timeout time.Duration

	Retries int // further attempts after a failure
	// Pause before the second attempt, doubled for each one after; 0 for DefaultBackoff.
	Backoff       time.Duration
	NotIdempotent bool // in doubt after a crash, instead of run again
	// How many calls of it one run, with its delegates, makes at once; 0 for no limit of its own.
	Concurrency int
	// For tests: it runs the calls of the tool of its name, even if the tool has another activity,
	// or the call a delegate.
	StandIn bool

	// It never returns a value, so its calls write null: check warns of a call with an output path.
	ReturnsNothing bool

	Script string      // the file that registered it, below the project; empty for Go
	SHA256 string      // of that file
	Code   *store.Code // the scripts that its calls run, that file among them; nil for Go

	// Latest returns the registry that was loaded last, if scripts are loaded anew while runs go
	// on; nil for an activity that never changes. A call begins with the newest version of its
	// activity, as long as the schema of its tool is still the one that its plan was checked with.
	Latest func() *Registry

	skipped, backoff int32 // see SkipsSpeculation; accessed by sync/atomic
}

// Defaults of [Registered].
const (
	DefaultTimeout = 30 * time.Second
	DefaultBackoff = time.Second
)

// Registry holds the tools, activities and delegates that a plan's calls may name. It is not
// changed once it is used.
type Registry struct {
	Tools      map[string]*Tool
	Activities map[string]*Registered
	Delegates  map[string]*Delegate

	// File reads the delegate in a file below the project, such as "lib/sum.lua"; nil without a
	// project.
	File func(name string) (*Delegate, error)

	// Model answers latent calls and plans, where neither a call nor a request names one of Models;
	// nil where there is none.
	Model Model

	// Models are those that a call names as its _model, and a request as its model.
	Models map[string]Model

	// Schemas are the options of all schemas of a run: of tools, of messages that it reads and
	// writes, and of its output.
	Schemas []schema.Option

	// CheckAllow returns an error for a tool's _allow that can't be read; nil accepts all.
	CheckAllow func(allow any) error

	base *Registry // without the tools that a context or a request brings; nil if it is that itself
}

// NewRegistry is an empty registry.
func NewRegistry() *Registry {
	return &Registry{Tools: map[string]*Tool{}, Activities: map[string]*Registered{}, Delegates: map[string]*Delegate{}}
}

// WithoutActivities returns a registry whose activities, and those of its delegates, do nothing and
// fail: a run comes as far as it does without them. In the place of each model stands another.
func (r *Registry) WithoutActivities(replace func(Model) Model) *Registry {
	return r.withoutActivities(replace, map[*Registry]*Registry{})
}

func (r *Registry) withoutActivities(replace func(Model) Model, made map[*Registry]*Registry) *Registry {
	if r == nil || made[r] != nil {
		return made[r]
	}
	out := *r
	made[r] = &out
	out.base = r.base.withoutActivities(replace, made)
	if r.Model != nil {
		out.Model = replace(r.Model)
	}
	out.Models = map[string]Model{}
	for name, m := range r.Models {
		out.Models[name] = replace(m)
	}
	out.Activities = map[string]*Registered{}
	for name, a := range r.Activities {
		out.Activities[name] = &Registered{Name: a.Name, Activity: ActivityFunc(func(context.Context, Invocation) (Result, error) {
			return Result{}, errors.New("no activity is run here")
		})}
	}
	disarm := func(d *Delegate) *Delegate {
		return &Delegate{Request: d.Request, Registry: d.Registry.withoutActivities(replace, made)}
	}
	out.Delegates = map[string]*Delegate{}
	for name, d := range r.Delegates {
		out.Delegates[name] = disarm(d)
	}
	if r.File != nil {
		out.File = func(name string) (*Delegate, error) {
			d, err := r.File(name)
			if err != nil || d == nil {
				return d, err
			}
			return disarm(d), nil
		}
	}
	return &out
}

// HasModel reports whether a call or a plan may ask a model.
func (r *Registry) HasModel() bool { return r.Model != nil || len(r.Models) > 0 }

// With is the registry with further tools, which win over tools of the same name. Where one of
// these has an _allow, that stays.
func (r *Registry) With(tools map[string]*Tool) *Registry {
	if len(tools) == 0 {
		return r
	}
	joined := *r
	joined.base = cmp.Or(r.base, r)
	joined.Tools = map[string]*Tool{}
	maps.Copy(joined.Tools, r.Tools)
	for name, tool := range tools {
		joined.Tools[name] = tool.replacing(r.Tools[name])
	}
	return &joined
}

// ReadTools adds the tools that a message defines to those that earlier ones have defined.
func (r *Registry) ReadTools(m *store.Message, tools map[string]*Tool) (err error) {
	definitions, _ := m.Data.Value.(map[string]any)
	for name, schema := range definitions {
		if tools[name], err = NewBroughtTool(name, schema, r.Schemas...); err != nil {
			return err
		}
	}
	return nil
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

var errNothingToRun = errors.New("it has nothing to run: give it a function")

// Check reports why the registration of an activity is invalid, in the words for the person who
// runs a plan with a call of it.
func (r *Registered) Check() error {
	if r == nil {
		return errNothingToRun
	}
	fn, isFunc := r.Activity.(ActivityFunc)
	switch {
	case r.Activity == nil, isFunc && fn == nil:
		return errNothingToRun
	case r.Timeout < 0:
		return fmt.Errorf("its timeout must not be negative: %s", r.Timeout)
	case r.Backoff < 0:
		return fmt.Errorf("its backoff must not be negative: %s", r.Backoff)
	case r.Retries < 0, r.Concurrency < 0:
		return errors.New("neither its retries nor its concurrency may be negative")
	}
	if d, ok := r.Activity.(Described); ok {
		_, err := d.Tool()
		return err
	}
	return nil
}

// AttemptsOf returns the bounds on the attempts of a call of the activity. The call's own win.
func (r *Registered) AttemptsOf(c *Call) Attempts {
	return c.attempts.over(Attempts{r.Timeout, r.Retries, r.Backoff})
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

// Names lists the names that a call may have as its tool, sorted.
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

// maxSkipped is the number of calls of an activity that are not speculated on after a speculation
// gave up before a visible effect. After one that took too long, perhaps since it waited for a
// processor, it is one call, and the number doubles with each further one, up to this bound; every
// success halves it.
const maxSkipped = 127

// SkipsSpeculation reports whether the next call of the activity is not speculated on.
func (r *Registered) SkipsSpeculation() bool {
	return atomic.LoadInt32(&r.skipped) > 0 && atomic.AddInt32(&r.skipped, -1) >= 0
}

// NoteSpeculation records the outcome of a speculation: whether the call ran to its end, and if
// not, whether it took too long.
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
