package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/store"
)

// Answer implements [plan.Model].
func (m *Model) Answer(ctx context.Context, q plan.Question) (any, error) {
	reply := m.AnswerAll(ctx, []plan.Question{q})[0]
	if reply.Err != nil {
		return nil, reply.Err
	}
	return reply.Result, nil
}

// AnswerAll implements [plan.Batcher]: it asks for all answers at once, and again for those that
// break their schemas. Where the model refuses several questions together, or its answer to them is
// cut off, it asks one by one. All is counted by the meter of the first question.
func (m *Model) AnswerAll(ctx context.Context, questions []plan.Question) []plan.Reply {
	if len(questions) == 0 {
		return nil
	}
	b := &batch{Model: m.Knowing(ctx), meter: questions[0].Meter, replies: make([]plan.Reply, len(questions))}
	for i, q := range questions {
		b.open = append(b.open, asked{Question: q, at: i})
	}
	b.run(ctx)
	return b.replies
}

// batch is a group of questions that are answered together.
type batch struct {
	*Model
	meter   *plan.Meter
	replies []plan.Reply
	open    []asked  // questions without a reply
	first   string   // hash of the first request
	cut     []string // references to what the last request showed in part
}

// asked is an open question, with its last answer and the reason why that was refused.
type asked struct {
	plan.Question
	at      int // its place among all
	last    string
	problem error
}

func (b *batch) run(ctx context.Context) {
	for round := 0; len(b.open) > 0; round++ {
		answer, err := b.askOpen(ctx)
		if fault, ok := errors.AsType[*plan.Fault](err); ok && fault.Code == codeWindow && len(b.open) > 1 {
			b.runAlone(ctx)
			return
		}
		if err != nil {
			first := b.open[0].ID
			b.fail(func(a asked) error {
				if a.ID != first {
					return inShort(err, first)
				}
				return err
			})
			return
		}
		if len(b.open) > 1 && (answer.Refusal != "" || answer.CutOff) {
			b.runAlone(ctx)
			return
		}
		switch {
		case answer.Refusal != "":
			b.fail(func(asked) error { return refused(answer) })
		case answer.CutOff:
			b.fail(func(asked) error { return b.cutOff() })
		default:
			b.read(answer)
		}
		if round >= b.repairs() {
			b.fail(func(a asked) error { return plan.Faultf(plan.CodeSchema, "%s", unfit(a.problem, a.last, round)) })
		}
	}
}

// runAlone asks the open questions one by one.
func (b *batch) runAlone(ctx context.Context) {
	for _, a := range b.open {
		alone := &batch{Model: b.Model, meter: b.meter, replies: b.replies, open: []asked{a}}
		alone.run(ctx)
	}
	b.open = nil
}

// fail gives the open questions errors for replies.
func (b *batch) fail(err func(asked) error) {
	for _, a := range b.open {
		b.replies[a.at].Err = err(a)
	}
	b.open = nil
}

// inShort returns an error of several lines as the first of them, for a call that shares it with
// another, which has all of it. A failure keeps what it says to a plan.
func inShort(err error, whole string) error {
	text, _, long := strings.Cut(err.Error(), "\n")
	if !long {
		return err
	}
	text += fmt.Sprintf(" (call %s has all of it)", whole)
	if failure, ok := err.(*plan.Failure); ok {
		fields := maps.Clone(failure.Fields)
		fields["message"] = text
		return &plan.Failure{Fields: fields}
	}
	return errors.New(text)
}

// askOpen asks the open questions.
func (b *batch) askOpen(ctx context.Context) (*Answer, error) {
	r := b.request(b.open)
	questions := make([]plan.Question, len(b.open))
	for i, a := range b.open {
		questions[i] = a.Question
	}
	if err := b.fitsWindow(r, joinedKinds(questions), false); err != nil {
		return nil, err
	}
	if b.cut = r.Cut; b.first == "" {
		b.first = r.Hash()
	}
	return b.asker.Ask(ctx, r, b.meter)
}

// request returns the request for some questions. Each that has been answered before shows that
// answer and the reason why it was refused.
func (m *Model) request(open []asked) *Request {
	questions := make([]plan.Question, len(open))
	for i, a := range open {
		questions[i] = a.Question
	}
	r := m.AnswerRequest(questions)
	blocks := slices.Clone(r.Blocks[:r.Stable])
	for i, a := range open {
		blocks = append(blocks, r.Blocks[r.Stable+i])
		if a.problem != nil {
			blocks = append(blocks, repairBlock("## Your last answer to "+a.ID, a.last, a.problem))
		}
	}
	r.Blocks = blocks
	return r
}

// read replies to each open question whose answer fits.
func (b *batch) read(answer *Answer) {
	values, isObject := answer.Value.Value.(map[string]any)
	var left []asked
	for _, a := range b.open {
		given, ok := values[a.ID]
		switch {
		case !answer.Value.Set:
			a.last, a.problem = answer.Text, errors.New(problemOf(answer))
		case !isObject:
			a.last, a.problem = answer.Text, fmt.Errorf("expected an object with a member for each call, found %s", store.Describe(answer.Value.Value))
		case !ok:
			a.last, a.problem = answer.Text, fmt.Errorf("there is no answer for call %s", a.ID)
		default:
			result, wrong, err := resultOf(a.Question, given)
			if wrong == nil {
				b.replies[a.at] = plan.Reply{Result: result, Err: err, Chosen: err != nil, Request: b.first, Cut: b.cut}
				continue
			}
			a.last, a.problem = jsonText(given), wrong
		}
		left = append(left, a)
	}
	b.open = left
}

// resultOf reads the answer to a question. wrong is the reason why it does not fit the question;
// err is the failure that it reports.
func resultOf(q plan.Question, given any) (result plan.Result, wrong, err error) {
	if len(q.Alternatives) < 2 {
		return plan.Result{Value: given}, breaks(q.Schema, given, "the answer", q.Schemas), nil
	}
	result, failure, wrong := plan.ReadOutcome(q.Alternatives, given)
	switch {
	case wrong != nil:
		return plan.Result{}, wrong, nil
	case failure != nil:
		return plan.Result{}, nil, failure
	}
	return result, breaks(q.Schema, result.Value, "value", q.Schemas), nil
}
