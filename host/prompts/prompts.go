// Package prompts finds the requests that models were sent, or would be sent, and their
// answers. It sends nothing, and writes nothing to a log: where a log does not keep a request
// (the setting keep of a model), a copy of the context is run in memory up to the question.
package prompts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/numeral"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/model"
	"obelus/store"
	"obelus/store/memory"
)

// State says where a request comes from.
type State string

// The states of a request.
const (
	Sent     State = "sent"     // as it was sent: the log keeps it
	Computed State = "computed" // made anew; it was sent like this if Recorded is set, else nothing is on record
	Differs  State = "differs"  // made anew, and not as it was sent: scripts, settings or the log have changed
	Next     State = "next"     // not sent yet
)

// Prompt is a request to a model.
type Prompt struct {
	Context  string   `json:"context,omitempty"`
	Tick     int      `json:"tick,omitempty"`
	Calls    []string `json:"calls,omitempty"` // that it is about; none for a plan
	State    State    `json:"state"`
	Hash     string   `json:"hash"`               // of the request
	Recorded string   `json:"recorded,omitempty"` // the hash of the request that was sent; empty if none is on record

	Request *model.Request `json:"request"`
	Answers []Answer       `json:"answers,omitempty"` // that the log keeps, in their order

	// Config has the settings of the model; zero if the project has no such model any more.
	Config model.Config `json:"-"`
}

// Answer is an answer to a request, or to one that asked again about the answer before.
type Answer struct {
	Hash  string          `json:"hash"`            // of its request
	Added []string        `json:"added,omitempty"` // blocks that its request has and the first one has not
	Text  string          `json:"text,omitempty"`  // as it came
	Size  int64           `json:"size"`            // of the text in bytes, also of one that is not kept, see [store.WhyNotKept]
	Error string          `json:"error,omitempty"` // why none came
	Usage json.RawMessage `json:"usage,omitempty"`
}

// Source is where requests are looked for.
type Source struct {
	Generation *host.Generation
	Log        store.Reader // nil for an empty one

	// Timeout bounds the time in which a request is computed, with the wait for Admit; 0 for no bound.
	Timeout time.Duration

	// MaxBytes bounds the size of the messages and the journals that are copied to compute a request;
	// 0 for no bound.
	MaxBytes int64

	// Admit, if it is set, is called before a request is computed, which costs processor time. It may
	// wait. It returns a function that is called afterwards, or an error, which is the result then.
	Admit func(ctx context.Context) (leave func(), err error)
}

// ErrNoModels is the error for a project without models.
var ErrNoModels = store.NewError(store.Usage, "no models are set: obelus.lua names them, see obelus help models")

// TooLargeError is a context that is too large to compute a request from.
type TooLargeError struct {
	Context string
	Max     int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("to compute the request, context %s has to be copied, with those that it needs, and they have more than %s: obelus prompt has no such bound",
		e.Context, numeral.Size(e.Max))
}

// Class implements the interface of [store.ClassOf].
func (e *TooLargeError) Class() store.Class { return store.Refused }

// SlowError is a request that takes longer to compute than it may.
type SlowError struct{ Max time.Duration }

func (e *SlowError) Error() string {
	return fmt.Sprintf("the request is not computed within %s: obelus prompt has no such bound", e.Max)
}

// About returns the request about a call of a context, such as "1.2", or for the plan of a tick,
// such as "2"; the latest one for an empty text. For a call that a fork shares it is the one in the
// context where the call was made. Its error may be a [*NotFoundError], where no model is asked,
// [ErrNoModels], a [*TooLargeError] or a [*SlowError].
func (s Source) About(ctx context.Context, name, call string) (*Prompt, error) {
	if _, err := s.Log.Head(ctx, name); err != nil {
		return nil, err
	}
	q, err := find(ctx, s.Log, name, call)
	if err != nil {
		return nil, err
	}
	p := &Prompt{Context: q.context, Tick: q.tick, Calls: q.calls, Recorded: q.hash}
	kept, err := q.kept(ctx, s.Log)
	if err != nil {
		return nil, err
	}
	if err := p.addKept(kept); err != nil {
		return nil, err
	}
	if p.Request != nil {
		p.Config = s.config(p.Request.Model)
		return p, nil
	}
	if q.script {
		return nil, notFound("the script of call %s has asked a model, in words that only the log of a model with keep = true has", q.calls[0])
	}
	if waits := q.waits(); waits != "" {
		return nil, notFound("call %s has not been made yet: it %s", q.open.Call, waits)
	}
	if err := s.compute(ctx, q, p); err != nil {
		return nil, err
	}
	if p.State = Computed; p.Recorded != "" && p.Recorded != p.Hash {
		p.State = Differs
	}
	return p, nil
}

// setRequest sets the request, which knows its calls best: some of those that were asked about
// together may have been asked about again since.
func (p *Prompt) setRequest(r *model.Request) {
	p.Request = r
	if calls := r.Calls(); calls != nil {
		p.Calls = calls
	}
}

// addKept adds the exchanges that the log keeps.
func (p *Prompt) addKept(kept []store.Exchange) error {
	for i, x := range kept {
		a := Answer{Hash: x.Hash, Text: x.Answer, Size: x.AnswerSize, Error: x.Error, Usage: json.RawMessage(x.Usage)}
		if x.Request != "" {
			r, err := model.ParseRequest([]byte(x.Request))
			if err != nil {
				return err
			}
			if i == 0 {
				p.setRequest(r)
				p.State, p.Hash, p.Recorded = Sent, x.Hash, x.Hash
			} else if p.Request != nil {
				a.Added = slices.DeleteFunc(slices.Clone(r.Blocks), func(b string) bool { return slices.Contains(p.Request.Blocks, b) })
			}
		}
		p.Answers = append(p.Answers, a)
	}
	return nil
}

// config returns the settings of a model.
func (s Source) config(name string) model.Config {
	for _, c := range s.Generation.Settings().Models {
		if c.Name == name {
			return c
		}
	}
	return model.Config{}
}

// compute makes a request anew, within the bounds.
func (s Source) compute(ctx context.Context, q *question, p *Prompt) error {
	if s.Timeout > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, s.Timeout, &SlowError{s.Timeout})
		defer end()
	}
	err := s.admitted(ctx, func() error { return s.runAgain(ctx, q, p) })
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// admitted calls a function once that is admitted.
func (s Source) admitted(ctx context.Context, do func() error) error {
	if s.Admit != nil {
		leave, err := s.Admit(ctx)
		if err != nil {
			return err
		}
		defer leave()
	}
	return do()
}

// runAgain runs a copy of the context up to the question.
func (s Source) runAgain(ctx context.Context, q *question, p *Prompt) error {
	source, err := journal.In(s.Log, q.context).RootPlan(ctx)
	if err != nil {
		return err
	}
	request, registry, unread := s.Generation.PlanOf(source)
	if unread != nil {
		return unread
	}
	log, err := s.copy(ctx, q.context)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	fork := freeName(ctx, log)
	if !q.fresh {
		if _, err := journal.Fork(ctx, log, q.context, q.seq, fork); err != nil {
			return err
		}
	}
	return s.run(ctx, log, registry, p, q.name(), func(c *capture, runner *engine.Runner) error {
		runner.Approve = plan.Policy{Never: true}
		return q.ask(ctx, c, runner, fork, request)
	})
}

// freeName returns the name of a context that a log lacks.
func freeName(ctx context.Context, log store.Reader) string {
	for i := 1; ; i++ {
		name := "prompt-" + strconv.Itoa(i)
		if _, err := log.Head(ctx, name); err != nil {
			return name
		}
	}
}

// Next returns the first request of a run that has not been started, in a context of the log or in
// one that it lacks. No activity runs.
func (s Source) Next(ctx context.Context, start engine.Start, registry *plan.Registry) (*Prompt, error) {
	log, err := s.copy(ctx, start.Context)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	request := *start.Request
	request.Mode, start.Request = "", &request
	p := &Prompt{State: Next}
	err = s.run(ctx, log, registry, p, request.Name, func(c *capture, runner *engine.Runner) error {
		within, end := c.begin(ctx, subject{})
		defer end()
		_, err := runner.Run(within, start)
		return err
	})
	return p, err
}

// run has a function run something over a copy of a log until a model is asked, and adds that
// request to the prompt. about names the question.
func (s Source) run(ctx context.Context, log store.Log, registry *plan.Registry, p *Prompt, about string, do func(*capture, *engine.Runner) error) error {
	if !registry.HasModel() {
		return ErrNoModels
	}
	c := &capture{}
	runner := s.Generation.Settings().Runner(log, registry.WithoutActivities(c.model))
	runner.Drain, runner.Logs, runner.Rehearsal = -1, nil, true
	err := do(c, runner)
	switch r := c.captured(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case r != nil:
		p.setRequest(r)
		p.Hash, p.Config = r.Hash(), c.config
		return nil
	case err != nil:
		return err
	case p.State == Next:
		return notFound("%s asks no model before one of its activities has run", about)
	}
	return notFound("no model is asked about %s: its answer came with it, or what it reads is missing", about)
}

// copy copies a context into memory, with the others that a run in it looks at.
func (s Source) copy(ctx context.Context, name string) (*memory.Log, error) {
	if s.Log == nil || name == "" {
		return memory.New(), nil
	}
	needed, err := s.needed(ctx, name)
	if err != nil {
		return nil, err
	}
	from := s.Log
	if s.MaxBytes > 0 {
		from = &boundedReader{Reader: s.Log, context: name, max: s.MaxBytes}
	}
	return memory.Copy(ctx, from, needed...)
}

// needed names the contexts that a run in a context looks at: that one, those it was forked from,
// the contexts of the calls around it, and its delegates' contexts, however deep.
func (s Source) needed(ctx context.Context, name string) (names []string, err error) {
	seen := map[string]bool{}
	add := func(name string) (store.Origin, error) {
		info, err := s.Log.Info(ctx, name)
		if store.ClassOf(err) == store.NotFound {
			return store.Origin{}, nil
		}
		names = append(names, name)
		return info.Origin, err
	}
	for up := []string{name}; len(up) > 0; up = up[1:] {
		if up[0] == "" || seen[up[0]] {
			continue
		}
		seen[up[0]] = true
		origin, err := add(up[0])
		if err != nil {
			return nil, err
		}
		up = append(up, origin.Fork, origin.Parent)
	}
	for down := []string{name}; len(down) > 0; down = down[1:] {
		records, err := journal.In(s.Log, down[0]).Records(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.Child == "" || seen[r.Child] {
				continue
			}
			seen[r.Child] = true
			if _, err := add(r.Child); err != nil {
				return nil, err
			}
			down = append(down, r.Child)
		}
	}
	return names, nil
}
