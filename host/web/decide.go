package web

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/web/internal/api"
	"obelus/store"
)

func decisionOperations() []operation {
	const decided = "The decision is in the log."
	return tagged("decisions",
		handling(operation{
			ID: "append", Route: "POST /v1/contexts/{context}/messages", Summary: "Append messages: one, an array of them, or one a line.",
			Body: api.Schema{"type": []any{"object", "array"}}, Example: `{"type": "input", "receipt": "r-77"}`,
			Answer: "They are in the log.", Schema: api.Of[appendedAnswer],
		}, (*Server).postMessages),
		answering(operation{
			ID: "approvePlan", Route: "POST /v1/contexts/{context}/approve", Role: host.MayDecide, Summary: "Release a lazy plan, perhaps with corrections or without some of its calls.",
			Example: `{"hash": "4be1c0d9a277", "set": {"1.2.amount": 1}, "without": ["1.3"]}`, Answer: decided,
			Detail: "The hash is that of the plan in the list of approvals: where another plan waits by then the request is refused. With preview nothing is decided, and effects says what would then wait, or read what is there.",
		}, (*Server).postApprovePlan),
		answering(operation{
			ID: "rejectPlan", Route: "POST /v1/contexts/{context}/reject", Role: host.MayDecide, Summary: "Reject a lazy plan: its planner is asked for another one.",
			Example: `{"hash": "4be1c0d9a277", "reason": "too dear"}`, Answer: decided,
		}, (*Server).postRejectPlan),
		answering(operation{
			ID: "approve", Route: "POST /v1/contexts/{context}/calls/{call}/approve", Role: host.MayDecide, Summary: "Approve a held call, perhaps with corrected arguments.",
			Example: `{"set": {"lines.0.amount": 5}}`, Answer: decided,
		}, (*Server).postApprove),
		answering(operation{
			ID: "reject", Route: "POST /v1/contexts/{context}/calls/{call}/reject", Role: host.MayDecide, Summary: "Reject a held call, which then fails with the reason.",
			Example: `{"reason": "no receipt"}`, Answer: decided,
		}, (*Server).postReject),
		handling(operation{
			ID: "resume", Route: "POST /v1/contexts/{context}/resume", Summary: "Go on with a run: retry, skip or give results of calls, or run again from one in a fork.",
			Example: `{"retry": ["1.2"], "wait": true}`, Answers: runAnswers("The run goes on."),
			Detail: "With more than wait and by it needs the role decide.",
		}, (*Server).postResume),
		answering(operation{
			ID: "fork", Route: "POST /v1/contexts/{context}/fork", Summary: "Make a context that shares the log up to a seq.", Example: `{"context": "what-if", "at": 12}`, Answer: "The fork.",
		}, (*Server).postFork),
		operation{
			ID: "deliver", Route: "POST /v1/hooks/{hook}", Open: true, Summary: "Deliver a request of another program to a hook.",
			Detail: "A hook that verifies requests wants a signature in place of a token.", Body: api.Any(), BodyType: "*/*",
			Answers: func() []api.Answer {
				return []api.Answer{
					{Status: http.StatusAccepted, About: "It is in the log.", Schema: api.Of[deliveredAnswer]()},
					{Status: http.StatusOK, About: "The same delivery has come before.", Schema: api.Of[deliveredAnswer]()},
				}
			},
			in: reflect.TypeFor[hookIn](), handle: (*Server).postHook, // any query is the other program's
		},
	)
}

// callIn names a call of a context.
type callIn struct {
	contextIn
	Call string `path:"call" example:"1.2" jsonschema:"The number of a call: its tick and its position, such as 1.2."`
}

// byIn is the author of a decision.
type byIn struct {
	By string `json:"by" jsonschema:"The name that the client gives itself; recorded as claimed."`
}

// approveIn approves a call.
type approveIn struct {
	callIn
	Set map[string]any `json:"set" jsonschema:"Arguments by name, each of which replaces the present one; dots lead inside."`
	byIn
}

func (s *Server) postApprove(ctx context.Context, in approveIn) (*decidedAnswer, error) {
	return s.decide(ctx, in.callIn, in.By, func(record journal.Record, d *journal.Decision) (err error) {
		if d.Arguments, err = record.Hold.With(in.Set); err != nil {
			err = &journal.CorrectionError{Call: record.Call, Err: err}
		}
		return err
	})
}

// rejectIn rejects a call.
type rejectIn struct {
	callIn
	Reason string `json:"reason" kind:"filled" required:"a reason, with which the call fails: {\"reason\": \"no receipt\"}" jsonschema:"The text with which the call fails."`
	byIn
}

func (s *Server) postReject(ctx context.Context, in rejectIn) (*decidedAnswer, error) {
	return s.decide(ctx, in.callIn, in.By, func(_ journal.Record, d *journal.Decision) error {
		d.Reject, d.Reason = true, in.Reason
		return nil
	})
}

// decidedAnswer is a decision that is in the log, or the preview of one.
type decidedAnswer struct {
	Call     string            `json:"call,omitempty"` // none for a plan
	Context  string            `json:"context"`
	Decision string            `json:"decision,omitempty"`
	Effects  []string          `json:"effects,omitzero"` // of a preview
	Hash     string            `json:"hash,omitempty"`   // of a plan
	Status   journal.RunStatus `json:"status,omitempty"` // of a run that was cancelled: it does not go on by itself
}

// decide records a decision about a held call, and goes on with its run.
func (s *Server) decide(ctx context.Context, in callIn, by string, how func(journal.Record, *journal.Decision) error) (*decidedAnswer, error) {
	record, err := journal.In(s.log, in.Context).HeldCall(ctx, in.Call)
	if err != nil {
		return nil, err
	}
	d := journal.Decision{Context: record.Context, Call: record.Call}
	if d.Who, err = decider(ctx, by); err != nil {
		return nil, err
	}
	if err := how(record, &d); err != nil {
		return nil, err
	}
	if err := s.supervisor.Decide(ctx, d); err != nil {
		return nil, err
	}
	return &decidedAnswer{Context: d.Context, Call: d.Call, Decision: d.Word(), Status: s.unwanted(ctx, d.Context)}, nil
}

// unwanted returns the status of the run of a context if it was cancelled, since then the run does
// not go on by itself, else "".
func (s *Server) unwanted(ctx context.Context, name string) journal.RunStatus {
	root, err := journal.In(s.log, name).Root(ctx)
	if err != nil {
		return ""
	}
	last, err := journal.In(s.log, root).CurrentRun(ctx)
	if err != nil || !last.Unwanted() {
		return ""
	}
	return last.Status
}

// planIn names a plan that waits in a context.
type planIn struct {
	contextIn
	Hash string `json:"hash" required:"the hash of the plan, as GET /v1/contexts/{context}/approvals has it: {\"hash\": \"…\"}" jsonschema:"The hash of the plan, as the list of approvals has it."`
}

// approvePlanIn releases a plan.
type approvePlanIn struct {
	planIn
	Set     map[string]any `json:"set" jsonschema:"Corrections by call and place in it, such as 1.2.amount."`
	Without []string       `json:"without" jsonschema:"Calls that are dropped, such as 1.3."`
	Preview bool           `json:"preview" jsonschema:"Decide nothing, and say what would then wait or read what is there."`
	byIn
}

func (s *Server) postApprovePlan(ctx context.Context, in approvePlanIn) (*decidedAnswer, error) {
	d := journal.PlanDecision{Context: in.Context, Hash: in.Hash, Set: in.Set, Without: in.Without}
	if !in.Preview {
		return s.decidePlan(ctx, d, in.By)
	}
	effects, err := s.supervisor.PreviewPlan(ctx, d)
	return &decidedAnswer{Context: in.Context, Effects: append([]string{}, effects...)}, err
}

// rejectPlanIn rejects a plan.
type rejectPlanIn struct {
	planIn
	Reason string `json:"reason" kind:"filled" required:"a reason, which the planner is told: {\"hash\": \"…\", \"reason\": \"too dear\"}" jsonschema:"Why: its planner is told it, or the run fails with it."`
	byIn
}

func (s *Server) postRejectPlan(ctx context.Context, in rejectPlanIn) (*decidedAnswer, error) {
	return s.decidePlan(ctx, journal.PlanDecision{Context: in.Context, Hash: in.Hash, Reject: true, Reason: in.Reason}, in.By)
}

// decidePlan records a decision about a plan that waits, and goes on with its run. The plan is the
// one of the context, or of the delegate in it whose plan waits.
func (s *Server) decidePlan(ctx context.Context, d journal.PlanDecision, by string) (*decidedAnswer, error) {
	var err error
	if d.Who, err = decider(ctx, by); err != nil {
		return nil, err
	}
	name, err := s.supervisor.DecidePlan(ctx, d)
	if err != nil {
		return nil, err
	}
	decision := journal.Approved
	if d.Reject {
		decision = journal.Rejected
	}
	return &decidedAnswer{Context: name, Decision: decision, Hash: d.Hash, Status: s.unwanted(ctx, name)}, nil
}

// decider returns the name to record for a request's decision: that of its token, with the claimed
// name beside it.
func decider(ctx context.Context, claimed string) (journal.Who, error) {
	who := journal.Who{By: callerOf(ctx).name, Claimed: strings.TrimSpace(claimed)}
	if err := who.Check(); err != nil {
		return who, wrong("by: %s", err)
	}
	return who, nil
}

// forkIn forks a context.
type forkIn struct {
	contextIn
	As *string `json:"context" jsonschema:"The name of the fork; a new one unless it is given."`
	At *int64  `json:"at" kind:"integer" jsonschema:"The seq up to which the log is shared; the newest unless it is given."`
}

// forkAnswer is a fork.
type forkAnswer struct {
	At      int64  `json:"at"`
	Context string `json:"context"`
	Parent  string `json:"parent"`
}

func (s *Server) postFork(ctx context.Context, in forkIn) (answer forkAnswer, err error) {
	answer.Parent = in.Context
	if answer.Context, err = contextFor(in.As); err != nil {
		return answer, err
	}
	at := int64(0) // 0 is the newest
	if in.At != nil {
		if at = *in.At; at < 1 {
			return answer, wrong("at must be a whole number above 0, not %d", at)
		}
	}
	answer.At, err = journal.Fork(ctx, s.log, in.Context, at, answer.Context)
	return answer, err
}

// appendedAnswer says where messages are in the log.
type appendedAnswer struct {
	Context  string `json:"context"`
	Messages int    `json:"messages"`
	Seq      int64  `json:"seq"`
}

func (s *Server) postMessages(w http.ResponseWriter, r *http.Request, in nameIn) error {
	if err := store.CheckContext(in.Context); err != nil {
		return wrong("context %s", err)
	}
	text, err := readBody(r)
	if err != nil {
		return err
	}
	messages, err := store.ParseMessages(text)
	if err != nil {
		refused := plan.Problem{Severity: plan.SeverityError, Code: plan.CodeSchema, Message: err.Error()}
		return &problem{status: http.StatusUnprocessableEntity, code: "message", message: err.Error(), check: []plan.Problem{refused}}
	}
	appended, err := s.supervisor.Append(r.Context(), in.Context, messages)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, appendedAnswer{Context: in.Context, Messages: len(messages), Seq: appended.Seq})
}
