package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

// Defaults of [Config].
const (
	DefaultBatch     = 16
	DefaultRepairs   = 2
	DefaultMaxTokens = 8192
)

// Model answers latent calls and makes plans by asking a provider. It is safe for concurrent use if
// its [Asker] is.
type Model struct {
	config Config
	asker  Asker
	said   int // the window by the server; 0 where the settings have it, or it is not known
}

// The interfaces that a model implements.
var (
	_ plan.Batcher   = (*Model)(nil)
	_ plan.PlanModel = (*Model)(nil)
	_ plan.Timed     = (*Model)(nil)
)

// New makes a model that asks by an asker.
func New(c Config, asker Asker) *Model {
	if c.MaxTokens == 0 {
		c.MaxTokens = DefaultMaxTokens
	}
	if c.Window == 0 {
		c.Window = presets[c.Provider].window
	}
	return &Model{config: c, asker: asker}
}

// Config returns the settings of the model, with those defaults that its requests hold.
func (m *Model) Config() Config { return m.config }

// Timeout implements [plan.Timed].
func (m *Model) Timeout() time.Duration {
	if m.config.Timeout > 0 {
		return m.config.Timeout
	}
	return plan.DefaultModelTimeout
}

// Batch implements [plan.Batcher].
func (m *Model) Batch() (limit int, acrossInstances bool) {
	if limit = m.config.Batch; limit <= 0 {
		limit = DefaultBatch
	}
	return limit, m.config.AcrossInstances
}

// repairs returns how often a model is asked again about an answer that breaks the schema.
func (m *Model) repairs() int {
	switch {
	case m.config.Repairs < 0:
		return 0
	case m.config.Repairs == 0:
		return DefaultRepairs
	}
	return m.config.Repairs
}

// AnswerRequest returns the request that asks for the answers to latent calls, at least one. It
// asks nothing.
func (m *Model) AnswerRequest(questions []plan.Question) *Request {
	return m.fitted(func(s *shower) *Request {
		common, calls := answerBlocks(questions, s)
		return &Request{
			Version: RequestVersion, Window: m.said, Purpose: "answer", Model: m.config.Name, Params: m.config.Params, Key: questions[0].Key,
			System: systemText(answerRules(questions, m.config.Think, len(s.cut) > 0), questions[0].Prose),
			Blocks: append(common, calls...), Stable: len(common),
			Schema: answersSchema(questions, m.config),
		}
	}, false)
}

// PlanRequest returns the request that asks for a plan. It asks nothing.
func (m *Model) PlanRequest(p plan.Proposal) *Request {
	r := m.planRequest(p, false)
	if len(p.Tools) > 0 {
		r.Loose = m.planRequest(p, true)
	}
	return r
}

func (m *Model) planRequest(p plan.Proposal, loose bool) *Request {
	compose := exactSchema
	if loose {
		compose = looseSchema
	}
	schema, offers := compose(p, m.config)
	build := func(s *shower) *Request {
		blocks, stable := planBlocks(p, loose, s, m.ledger())
		return &Request{
			Version: RequestVersion, Window: m.said, Purpose: "plan", Model: m.config.Name, Params: m.config.Params, Key: p.Key,
			System: systemText(planRules(p, loose, offers && len(p.Tools) > 0, m.config.Think, len(s.cut) > 0, blocks), p.Prose),
			Blocks: blocks, Stable: stable, Schema: schema,
		}
	}
	if !slices.ContainsFunc(p.Tools, canRefer) { // nothing could make use of the whole
		return build(&shower{planning: true})
	}
	return m.fitted(build, true)
}

// ledger returns how many bytes the calls so far may take in a prompt: an eighth of its bound.
func (m *Model) ledger() int {
	if m.bound() <= 0 {
		return maxLedger
	}
	return min(maxLedger, m.bound()*bytesPerToken/8)
}

// bytesPerToken is how many bytes are taken for a token: fewer than most models need on average.
const bytesPerToken = 3

// Tokens estimates how many tokens the prompt of a request has: the bytes of its texts and its
// schema, divided by three, which is more than most models count.
func (r *Request) Tokens() int {
	n := len(r.System) + len(jsonText(r.Schema))
	for _, block := range r.Blocks {
		n += len(block)
	}
	return (n + bytesPerToken - 1) / bytesPerToken
}

// maxNamed is how many kinds an error names.
const maxNamed = 3

// fitsWindow refuses a request whose prompt is larger than the model's window.
func (m *Model) fitsWindow(r *Request, kinds []plan.Shown, planning bool) error {
	tokens := r.Tokens()
	if m.bound() <= 0 || tokens <= m.bound() {
		return nil
	}
	type sized struct {
		name string
		size int
	}
	var sizes []sized
	for _, kind := range kinds {
		name := strings.TrimSpace(store.Dagger + kind.Kind + " " + kind.Instance)
		sizes = append(sizes, sized{name, len(dataBlock(kind, &shower{planning: planning}))})
	}
	slices.SortStableFunc(sizes, func(a, b sized) int { return b.size - a.size })
	var named []string
	for _, s := range sizes[:min(len(sizes), maxNamed)] {
		named = append(named, fmt.Sprintf("%s with %s", s.name, byteSize(s.size)))
	}
	text := fmt.Sprintf("the prompt has about %d tokens (its bytes divided by 3), and may have %d: the window of the model, %d, less the room for its answer", tokens, m.bound(), m.config.Window)
	if len(named) > 0 {
		text += ": the largest kinds are " + strings.Join(named, ", ")
	}
	return plan.Faultf(codeWindow, "%s: keep less in the context, or raise window if the model takes more", text)
}

// Fault codes of answers.
const (
	codeRefused   = "refused"
	codeWindow    = "window"
	codeMaxTokens = "max_tokens"
)

// refused returns the failure for an answer in which the model refuses.
func refused(answer *Answer) error {
	return &plan.Failure{Fields: map[string]any{"message": "the model refused: " + plan.ValidText(answer.Refusal), "code": codeRefused}}
}

// cutOff returns the fault for an answer that ended at the limit of tokens.
func (m *Model) cutOff() error {
	return plan.Faultf(codeMaxTokens, "the model's answer was cut off at max_tokens = %d: raise max_tokens, or ask for less at once", m.config.MaxTokens)
}

// maxShown bounds, in bytes, how much of an answer an error holds.
const maxShown = 2 << 10

// unfit returns the text for an answer that breaks the schema to the end.
func unfit(problem error, last string, repairs int) string {
	again := ""
	if repairs > 0 {
		again = fmt.Sprintf(", also when it was asked again (%d of %d repairs)", repairs, repairs)
	}
	return fmt.Sprintf("the model's answer is not what was asked for%s: %s; its last answer: %s", again, problem, cutText(plan.ValidText(last), maxShown))
}

// problemOf returns the reason why an answer has no value.
func problemOf(answer *Answer) string {
	if answer.Problem != "" {
		return answer.Problem
	}
	return "the answer is not JSON"
}

// repairBlock returns a block of a prompt with the model's last answer and the reason why it was
// refused.
func repairBlock(heading, last string, problem error) string {
	return heading + "\n" + cutText(last, maxShown) + "\nIt was refused: " + problem.Error() + "\nAnswer again, so that it is right."
}

// ask asks until an answer can be read, or there are no more repairs. problem is the reason why the
// last answer, last, was refused; nil if it was not.
func (m *Model) ask(ctx context.Context, r *Request, meter *plan.Meter, read func(*Answer) error) (last string, problem, err error) {
	given := r
	for round := 0; ; round++ {
		answer, err := m.asker.Ask(ctx, r, meter)
		switch {
		case err != nil:
			return "", nil, err
		case answer.Refusal != "":
			return "", nil, refused(answer)
		case answer.CutOff:
			return "", nil, m.cutOff()
		}
		if problem = read(answer); problem == nil {
			return "", nil, nil
		}
		if last = answer.Text; last == "" {
			last = jsonText(answer.Value.Value)
		}
		if round >= m.repairs() {
			return last, problem, nil
		}
		r = given.with(repairBlock("## Your last answer", last, problem))
	}
}

// with returns the request with a further block.
func (r *Request) with(block string) *Request {
	made := *r
	made.Blocks = append(slices.Clone(r.Blocks), block)
	if r.Loose != nil {
		made.Loose = r.Loose.with(block)
	}
	return &made
}
