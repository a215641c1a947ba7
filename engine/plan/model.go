package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"obelus/engine/internal/crash"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// Model answers latent calls: those that no activity runs. It is called from
// several goroutines at once. It may also be a [Batcher], a [PlanModel] and [Timed].
type Model interface {
	// Answer returns a call's result, which is checked against the question's schema; it takes the
	// types of the value of a [Result], and a [Result] itself, which may name the branch. Its error
	// is a [*Failure] where a plan may handle it. It is asked once, and ctx is done after the time
	// that the model is given ([Timed]): any later answer is a timeout, which is a failure, and has
	// the text of a [LateError]. Retries within that time are up to the model.
	Answer(ctx context.Context, q Question) (any, error)
}

// LateError says why a model has not answered in its time. To [errors.Is] it is
// [context.DeadlineExceeded].
type LateError struct{ Message string }

func (e *LateError) Error() string { return e.Message }

// Is implements the interface of [errors.Is].
func (*LateError) Is(target error) bool { return target == context.DeadlineExceeded }

// Batcher is a model that answers several latent calls by one request.
type Batcher interface {
	Model

	// Batch returns how many questions one request may hold, and whether questions of different
	// instances may be joined, so that the model sees what each of them may see.
	Batch() (limit int, acrossInstances bool)

	// AnswerAll answers questions about calls that begin together, in the order of their plan. It
	// returns one reply for each.
	AnswerAll(ctx context.Context, questions []Question) []Reply
}

// AnswerAll asks a model several questions at once. Its error is about all of them: the model broke
// down, or lost replies.
func AnswerAll(ctx context.Context, model Batcher, questions []Question) (replies []Reply, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = crash.PanicError("the model broke down", panicked)
		}
	}()
	replies = model.AnswerAll(ctx, questions)
	if len(replies) != len(questions) {
		return nil, fmt.Errorf("the model gave %d answers to %d questions", len(replies), len(questions))
	}
	return replies, nil
}

// Reply is the answer to one question of several.
type Reply struct {
	Result Result
	Err    error // a [*Failure] where a plan may handle it
	Chosen bool  // Err is the model's answer: it chose the failure

	Request string   // hash of the request that was answered, as in [Usage]; empty if it is not known
	Cut     []string // references to values that the request showed in part
}

// PlanModel is a model that plans: it is asked for the calls of a request that has neither calls
// nor a planner (protocol §7).
type PlanModel interface {
	Model

	// Propose returns the calls of the next tick, and the output once the task is done. A
	// [*PlanError] becomes error messages, and the model is asked again; any other error ends the
	// run. The solution is compiled, and refused like any planner's.
	Propose(ctx context.Context, p Proposal) (*Solution, error)
}

// Timed is a model that says how long a question to it may take. Others have
// [DefaultModelTimeout].
type Timed interface{ Timeout() time.Duration }

// DefaultModelTimeout is how long a model may take for one question.
const DefaultModelTimeout = 2 * time.Minute

// TimeoutOf returns how long a model may take for one question.
func TimeoutOf(m Model) time.Duration {
	if timed, ok := m.(Timed); ok && timed.Timeout() > 0 {
		return timed.Timeout()
	}
	return DefaultModelTimeout
}

// ModelNamed finds a model by its name; the default one, which may be nil, by the empty name.
func (r *Registry) ModelNamed(name string) (Model, error) {
	if name == "" {
		return r.Model, nil
	}
	if m, ok := r.Models[name]; ok {
		return m, nil
	}
	if len(r.Models) == 0 {
		return nil, fmt.Errorf("unknown model %q: no models are set", name)
	}
	names := slices.Sorted(maps.Keys(r.Models))
	return nil, fmt.Errorf("unknown model %q%s: there are %s", name, spell.DidYouMean(name, names), strings.Join(names, ", "))
}

// ModelFunc makes a model of a Go function.
type ModelFunc func(ctx context.Context, q Question) (any, error)

// Answer calls f.
func (f ModelFunc) Answer(ctx context.Context, q Question) (any, error) {
	if f == nil {
		return nil, errors.New("the model is a nil function")
	}
	return f(ctx, q)
}

// Shown is a kind of a context as a model sees it: all its messages folded into one value.
type Shown struct {
	Kind        string
	Instance    string         // empty for the values of no instance
	Value       store.Optional // not set where a schema is declared and no value written
	Schema      any            // the schema that was declared last, or nil
	Description string         // the newest
	Seq         int64          // of the newest message of the kind
	Rank        int            // in the order in which the kinds were written last
	Scoped      bool           // the call's scopes name it, or something in it
}

// Prose is a message of a context that is text for a model.
type Prose struct {
	System bool // a system message; else a text message
	Text   string
}

// Question is a latent call as put to a model (protocol §5). Its values are those of an
// [Invocation], shared, and must not be changed: a model that does not send all of them sends
// copies.
type Question struct {
	// Messages is the model's view of the log as the tick began, and of the writes since of calls
	// that this one depends on; see [ModelView].
	Messages []map[string]any

	// Kinds and Prose are the same messages: the kinds each once, in the order of their last
	// messages, scoped ones last; and the texts.
	Kinds []Shown
	Prose []Prose

	// Thoughts are the latent calls without an output path before this one in
	// its tick: {"call": …, "output": …}, output only where there is one.
	Thoughts []map[string]any

	Call   map[string]any // every parameter resolved; of meta-properties _tool and _instance
	Tool   any            // the tool's schema
	Schema any            // that the answer must fit, or nil
	// Schemas are the options of all schemas of the run.
	Schemas []schema.Option
	Key     string // context/tick.position
	ID      string // tick.position

	// Alternatives of the call's output path, such as "†state.a && †log.a": a Result that names
	// a path of one chooses it. One or none leaves no choice.
	Alternatives []string

	// Scopes are the call's, as paths: those to use above all.
	Scopes []store.Path

	// Meter counts the model's usage, and may stop it. It may be nil.
	Meter *Meter
}

// Proposal is the question to a model that plans. Its values are shared, and must not be changed.
type Proposal struct {
	Context string // its name
	Tick    int    // the tick that is to be planned
	Key     string // context/tick: the same if it is asked again after a crash

	Kinds     []Shown // in the order of their last messages; those that the request's scopes grant
	Prose     []Prose
	Instances []string // of the context, without the empty one
	Tools     []Offer  // that calls may name, sorted by name
	Schema    any      // of the final output, or nil
	Outcomes  []string // see [Request]
	Mode      string   // [ModeEager] or [ModeLazy]

	// Plan has the calls of the newest plan in the context that the run has not made; nil for none.
	Plan any

	SoFar    []PastCall       // the calls of the run's earlier ticks, the oldest first
	Refused  any              // the solution of the tick before, if it was refused; else nil
	Errors   []map[string]any // data of the error messages of the tick before, in order
	Warnings []string         // about the plan of the tick before
	Repeats  string           // says which tick the one before repeats; empty for none

	// CheckOutput returns the problem with a solution's output, as far as it can be known before the
	// calls run; nil for none. Its error is the log's, and ends the question.
	CheckOutput func(*Solution) (problem, err error)

	Meter *Meter // counts the model's usage; may be nil
}

// Offer is a tool that a model may plan with.
type Offer struct {
	Name   string
	Schema map[string]any // the tool's; an empty one takes anything

	// Latent reports that neither an activity nor a delegate runs its calls: the model that plans
	// gives their results, in mode eager with the call.
	Latent bool
}

// PastCall is a call of an earlier tick, as it ended; or a plan or an output that was refused.
type PastCall struct {
	Call   string // tick.position, or the tick of a plan or an output
	Tick   int
	Tool   string
	Issued map[string]any // the call as issued
	Status string         // done, failed, skipped, waiting …
	Wrote  []string       // the paths that it wrote
	Value  store.Optional // that it wrote, or, of a thought, its result
	Reason string         // of a failure or a skip

	SetAside string // why an answer that the model gave with its plan does not count; else empty
}

// asking is the activity of latent calls that a model answers.
type asking struct{ model Model }

// Run implements [Activity].
func (a asking) Run(ctx context.Context, in Invocation) (Result, error) {
	v, err := a.model.Answer(ctx, *in.Question)
	if result, ok := v.(Result); ok {
		return result, err
	}
	return Result{Value: v}, err
}

// ModelView returns the messages of a context for a model: without those hidden from models, and
// with those that touch the scopes last, marked as "scoped", the ones to use. Within an instance,
// messages of other instances are left out.
func ModelView(messages []*store.Message, scopes []store.Path, instance string) []map[string]any {
	var view, marked []map[string]any
	for _, m := range messages {
		if !VisibleToModel(m.Instance, instance) {
			continue
		}
		shown := forModel(m)
		if (m.Instance == "" || m.Instance == instance) && touches(m, scopes) {
			shown["scoped"] = true
			marked = append(marked, shown)
			continue
		}
		view = append(view, shown)
	}
	return append(view, marked...)
}

// VisibleToModel reports whether a model that is asked for an instance, or for none, sees the
// messages of another.
func VisibleToModel(whose, instance string) bool {
	return instance == "" || whose == "" || whose == instance
}

// InFocus returns the messages that a model sees whose call shows its scopes alone: those that
// touch them, or declare their kinds, and what the system says.
func InFocus(messages []*store.Message, scopes []store.Path) []*store.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m *store.Message) bool {
		declares := !m.Data.Set && slices.ContainsFunc(scopes, func(path store.Path) bool { return path.Kind() == m.Kind })
		return m.Type != store.TypeSystem && !declares && !touches(m, scopes)
	})
}

func touches(m *store.Message, scopes []store.Path) bool {
	op, ok := m.Op()
	return ok && slices.ContainsFunc(op.Touches(), func(path store.Path) bool { return slices.ContainsFunc(scopes, path.Overlaps) })
}

// forModel is a message as a model sees it: its content and its instance. The call that wrote it,
// and its date, are the host's business.
func forModel(m *store.Message) map[string]any {
	shown := map[string]any{"type": string(m.Type)}
	text := func(name, v string) {
		if v != "" {
			shown[name] = v
		}
	}
	text("kind", m.Kind)
	text("_instance", m.Instance)
	text("description", m.Description)
	text("mode", m.Mode)
	if m.Data.Set {
		shown[m.Type.Content()] = m.Data.Value
	}
	if m.Schema != nil {
		shown["schema"] = m.Schema
	}
	return shown
}

// ForModel is the call as a model may see it.
func (c *Call) ForModel(resolved map[string]any) map[string]any {
	shown := map[string]any{}
	for name, v := range resolved {
		if !strings.HasPrefix(name, "_") || name == "_tool" || name == "_instance" {
			shown[name] = v
		}
	}
	return shown
}

// wireThoughts puts latent calls in the order of the plan: a thought is shown
// to those after it. Those that come before it anyway do not wait.
func (g *graph) wireThoughts() {
	reach := reachability{g: g}
	var last []int // thoughts that a later one does not wait for in any case
	for j, call := range g.calls {
		if call.IsThought() || call.AsksModel {
			for _, i := range last {
				if !g.backward || !reach.from(j)[i] {
					g.add(Edge{i, j, store.Path{}, ThoughtEdge})
					reach.seen = nil
				}
			}
		}
		if call.IsThought() {
			if call.If == nil {
				last = last[:0]
			}
			last = append(last, j)
		}
	}
}

// groupLatent puts latent calls together that one request answers: calls of one [Batcher] that wait
// for the same calls, and so become ready together whatever else happens. A group holds the calls
// of one instance, unless the model joins instances, and at most as many as one of its requests may
// hold. A call that bounds its attempts or has a time is asked alone.
func (p *Plan) groupLatent() {
	open := map[string]int{} // group that is not full, by what its calls have in common
	for i, call := range p.Calls {
		batcher, ok := call.Model.(Batcher)
		if !call.AsksModel || !ok || call.IsThought() || call.attempts != nil || call.Schedule != nil {
			continue
		}
		limit, across := batcher.Batch()
		key := fmt.Sprintf("%q %v", call.Issued["_model"], p.Graph.waitsFor(i))
		if !across {
			key += " " + call.Instance
		}
		if call.SeesScopesAlone() {
			key += fmt.Sprint(" alone ", call.ScopePaths)
		}
		n, ok := open[key]
		if !ok || len(p.groups[n-1]) >= limit {
			p.groups = append(p.groups, nil)
			n = len(p.groups)
			open[key] = n
		}
		p.groups[n-1] = append(p.groups[n-1], i)
		call.group = n
	}
}

// waitsFor lists the calls that a call waits for, sorted, each once: as n for one whose outcome it
// waits for, as -n for one that it waits for until that has read.
func (g *graph) waitsFor(i int) []int {
	set := map[int]bool{}
	for _, e := range g.Into[i] {
		if e.Kind != ReadEdge {
			set[e.From+1] = true
		}
	}
	for _, e := range g.Into[i] {
		if !set[e.From+1] {
			set[-e.From-1] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Group returns the calls that one request answers together with call i, i among them, in the order
// of the plan; nil for a call that no such request answers.
func (p *Plan) Group(i int) []int {
	if n := p.Calls[i].group; n > 0 {
		return p.groups[n-1]
	}
	return nil
}

// Planning is the planner of a request that a model plans (protocol §7).
type Planning struct {
	Model    string   // its name among the registry's models; empty for the default one
	Offer    []string // the tools that it may plan with, by name; nil for all
	Refusals int      // solutions refused in a row that end the run; 0 for DefaultRefusals

	// Delegated is set for a delegate: beside the tools of Offer it plans with those that the request
	// brings and that messages of its context define, and with no others. [Delegate.Isolated] sets it.
	Delegated bool
}

// offers reports whether the model may plan with a tool.
func (p *Planning) offers(tool *Tool) bool {
	if p.Offer == nil && !p.Delegated {
		return true
	}
	return slices.Contains(p.Offer, tool.Name) || p.Delegated && tool.brought
}

// Defaults of requests that a model plans.
const (
	DefaultRefusals = 3  // solutions refused in a row that end the run
	DefaultTicks    = 20 // how often the model is asked in a run, unless the runner says otherwise
)

// IsModelPlanned reports whether a model plans the request.
func (r *Request) IsModelPlanned() bool {
	_, ok := r.Planner.(*Planning)
	return ok
}

// RefusalLimit returns how many solutions of the model that plans the request may be refused in a
// row. The request may be nil.
func (r *Request) RefusalLimit() int {
	if r != nil && r.IsModelPlanned() {
		return cmp.Or(r.Planner.(*Planning).Refusals, DefaultRefusals)
	}
	return DefaultRefusals
}

// Refuse returns the error of a request that is refused as a whole.
func (r *Request) Refuse(code string, err error) error {
	return &PlanError{[]Problem{{File: r.Name, Severity: SeverityError, Code: code, Message: err.Error()}}}
}

// Plan implements [Planner]: only a run asks a model, which it finds in its registry.
func (*Planning) Plan(context.Context, Ask) (*Solution, error) {
	return nil, errors.New("a model plans this request: only a run can ask it")
}

// ModelFor returns the model that plans, and what stands in its way if there is none.
func (p *Planning) ModelFor(registry *Registry) (PlanModel, error) {
	model, err := registry.ModelNamed(p.Model)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if model == nil {
		return nil, errors.New("a model is to plan it, as there are neither calls nor a function, and there is no model: give it calls, or set a model")
	}
	planner, ok := model.(PlanModel)
	if !ok {
		return nil, errors.New("a model is to plan it, as there are neither calls nor a function, and the model only answers calls: give it calls")
	}
	for _, name := range p.Offer {
		if _, ok := registry.Tool(name); !ok {
			return nil, fmt.Errorf("offer: unknown tool %q%s", name, spell.DidYouMean(name, registry.Names()))
		}
	}
	return planner, nil
}

// Offers returns the tools that a model plans with.
func (p *Planning) Offers(registry *Registry) []Offer {
	var offers []Offer
	for _, name := range registry.Names() {
		if tool, ok := registry.Tool(name); ok && p.offers(tool) {
			offers = append(offers, tool.offer(registry))
		}
	}
	return offers
}

// offer returns the tool as a model is shown it. A tool without parameters of its own whose
// delegate declares the schema of its input takes that one, and the delegate's schema for the
// result.
func (t *Tool) offer(registry *Registry) Offer {
	object, _ := t.Schema.(map[string]any)
	o := Offer{Name: t.Name, Schema: object}
	if o.Schema == nil {
		o.Schema = map[string]any{}
	}
	name, delegated := t.consts["_delegate"].(string)
	_, has := registry.Activities[cmp.Or(t.activity, t.Name)]
	o.Latent = !has && !delegated
	if !delegated || len(t.parameters()) > 0 {
		return o
	}
	if d, err := registry.Delegate(name); err == nil && name != Anonymous {
		o.Schema = d.Request.resolveOffer(object)
	}
	return o
}

// resolveOffer adds to a tool's schema the parameters that the request's messages declare as its
// input, and the schema of the request's output.
func (r *Request) resolveOffer(tool map[string]any) map[string]any {
	var input map[string]any
	for _, m := range r.Context {
		if declared, ok := m.Schema.(map[string]any); ok && m.Kind == "input" {
			input = declared
		}
	}
	_, metas := splitMeta(tool)
	out := maps.Clone(tool)
	delete(out, "properties")
	maps.Copy(out, input)
	maps.Copy(out, metas)
	if _, has := out["_output"]; !has && r.Schema != nil {
		out["_output"] = r.Schema
	}
	return out
}
