package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/host/prompts"
	"obelus/host/web/internal/api"
	"obelus/store"
)

// timelineOperations are those about the course of a context's runs.
func timelineOperations() []operation {
	return tagged("contexts",
		answering(operation{
			ID: "getGraph", Route: "GET /v1/contexts/{context}/graph", Summary: "Get the data flow of the newest run: its calls, and which reads from which.", Answer: "A graph for each tick.",
		}, (*Server).getGraph),
		answering(operation{
			ID: "getTicks", Route: "GET /v1/contexts/{context}/ticks", Summary: "List the ticks of all runs of a context, with their plans.", Answer: "Ticks.",
		}, (*Server).getTicks),
		answering(operation{
			ID: "getSteps", Route: "GET /v1/contexts/{context}/steps", Summary: "List the events of a context's journal, each with its seq.",
			Detail: "A page has 64 of them, or as many as limit says, up to 1,000.", Answer: "A page of steps.",
		}, (*Server).getSteps),
		answering(operation{
			ID: "getKinds", Route: "GET /v1/contexts/{context}/kinds", Summary: "List the kinds that have data, and the instances that hold it.", Answer: "Kinds.",
		}, (*Server).getKinds),
		answering(operation{
			ID: "getDownstream", Route: "GET /v1/contexts/{context}/downstream", Summary: "List the calls that run again in a fork if one is resumed from.",
			Example: "?call=1.2", Answer: "The call itself, and those downstream of it.",
		}, (*Server).getDownstream),
		answering(operation{
			ID: "getPrompt", Route: "GET /v1/contexts/{context}/prompt", Summary: "Get what a model was sent about a call or for a plan, and its answers where they are kept.",
			Example: "?call=1.2", Answer: "The request.", Once: true,
			Detail: "A request that the log keeps, as the setting keep of its model says, is given as it was sent. Any other is computed, by the scripts and settings as they are now: its state says whether it is what was sent, and it has no recorded hash where the log has no request as sent. Two are computed at once, from a copy of the context in memory, and others wait, each for up to 10 seconds with its wait (503 prompt), from up to 32 MB of messages and journals (422 prompt).",
		}, (*Server).getPrompt),
		answering(operation{
			ID: "getChildren", Route: "GET /v1/contexts/{context}/children", Summary: "List the contexts of a context's delegates, and its forks.", Answer: "Contexts.",
		}, (*Server).getChildren),
		answering(operation{
			ID: "diff", Route: "GET /v1/diff", Summary: "Compare two contexts, or two points of one.",
			Example: "?a=order-7&a_at=3&b_at=12", Schema: func() api.Schema { return api.List(changeSchema()) },
			Answer: "The paths whose values differ, the calls that stand otherwise, and the scripts that they ran with in another version.",
		}, (*Server).getDiff),
		answering(operation{
			ID: "replay", Route: "POST /v1/contexts/{context}/replay", Summary: "Check that the newest run comes out as it is recorded.",
			Detail: "A function that planned it is asked again for each tick. No activity runs and nothing is written.", Answer: "The differences.",
		}, (*Server).postReplay),
	)
}

func changeSchema() api.Schema {
	value := api.Object(api.Schema{"path": api.Text(), "instance?": api.Text(), "old?": api.Any(), "new?": api.Any()})
	return api.Schema{"anyOf": []any{value, api.Of[history.CallChange](), api.Of[history.ScriptChange]()}}
}

// graphAnswer has the graph of each tick of a run.
type graphAnswer struct {
	Ticks []history.Graph `json:"ticks"`
}

// graphIn asks for the graphs of a run.
type graphIn struct {
	contextIn
	Tick int64 `query:"tick" jsonschema:"The tick; all of them unless it is given."`
	At   int64 `query:"at" jsonschema:"The seq as of which the calls are shown; the newest unless it is given."`
}

func (s *Server) getGraph(ctx context.Context, in graphIn) (answer graphAnswer, err error) {
	answer.Ticks, err = s.runs.Graphs(ctx, in.Context, in.Tick, in.At)
	if err == nil && in.Tick != 0 && len(answer.Ticks) == 0 {
		err = &problem{status: http.StatusNotFound, code: "no-tick", message: fmt.Sprintf("the newest run of context %s has no tick %d: GET /v1/contexts/%[1]s/ticks lists them", in.Context, in.Tick)}
	}
	return answer, err
}

// tickAnswer describes a tick of a context, of its newest run or of one before.
type tickAnswer struct {
	ByModel bool        `json:"by_model"` // a model made its plan
	Calls   int         `json:"calls"`
	Date    string      `json:"date"`
	First   int         `json:"first"` // the first tick of its run
	Mode    string      `json:"mode,omitempty"`
	Model   *plan.Usage `json:"model,omitempty"` // used for the plan
	Plan    string      `json:"plan"`
	Planner bool        `json:"planner"` // its plan is a function, or a model's
	Refused bool        `json:"refused"` // the solution of the planner was
	Seq     int64       `json:"seq"`     // of the plan message; 0 for a refused one
	Tick    int         `json:"tick"`
}

func (s *Server) getTicks(ctx context.Context, in contextIn) (l list[tickAnswer], err error) {
	for entry, err := range s.log.Journal(ctx, store.JournalFilter{Context: in.Context, Event: journal.EventPlan}) {
		if err != nil {
			return l, err
		}
		e, err := journal.ReadPlanEvent(entry)
		if err != nil {
			return l, err
		}
		l.add(tickAnswer{
			Tick: e.Tick, First: e.First, Seq: e.Seq, Date: store.FormatDate(entry.Date), Plan: e.Plan, Calls: e.Calls, Mode: e.Mode,
			Planner: e.Planner, ByModel: e.ByModel, Refused: e.Refused != nil, Model: e.Model,
		})
	}
	return l, nil
}

// kindAnswer is a kind that has data, and the instance that it is of.
type kindAnswer struct {
	Instance string `json:"instance,omitempty"`
	Kind     string `json:"kind"`
}

// atIn names a context as of a seq.
type atIn struct {
	contextIn
	At int64 `query:"at" jsonschema:"The seq as of which to answer; the newest unless it is given."`
}

func (s *Server) getKinds(ctx context.Context, in atIn) (l list[kindAnswer], err error) {
	kinds, err := s.runs.Kinds(ctx, in.Context, in.At)
	for _, k := range kinds {
		l.add(kindAnswer{Instance: k.Instance, Kind: k.Kind})
	}
	return l, err
}

// step is an entry of the journal, as the steps of a context list it.
type step struct {
	Call  string `json:"call,omitempty"` // that it concerns
	Date  string `json:"date"`
	Event string `json:"event"` // a status of the call, or plan, run, append, decision, fork
	N     int64  `json:"n"`     // its position in the journal
	Seq   int64  `json:"seq"`   // of the message that it follows
}

// stepPage is a page of steps.
type stepPage struct {
	Next  int64  `json:"next,omitempty"` // the value of after for the next page; 0 for the last
	Steps []step `json:"steps"`
}

// defaultSteps is the number of steps in a page, if the request does not say.
const defaultSteps = 64

// stepsIn asks for a page of steps.
type stepsIn struct {
	contextIn
	After int64 `query:"after" kind:"count" jsonschema:"The next of the page before."`
	Limit int64 `query:"limit" kind:"page" jsonschema:"At most so many."`
}

func (s *Server) getSteps(ctx context.Context, in stepsIn) (page stepPage, err error) {
	limit := cmp.Or(in.Limit, defaultSteps)
	page.Steps = []step{}
	for e, err := range s.log.Journal(ctx, store.JournalFilter{Context: in.Context, After: in.After}) {
		if err != nil {
			return page, err
		}
		if int64(len(page.Steps)) == limit {
			page.Next = page.Steps[limit-1].N
			break
		}
		page.Steps = append(page.Steps, step{Call: e.Call, Date: store.FormatDate(e.Date), Event: e.Event, N: e.N, Seq: e.Seq})
	}
	return page, nil
}

// downstreamIn names a call.
type downstreamIn struct {
	contextIn
	Call string `query:"call" required:"the number of a call: ?call=1.2" jsonschema:"The number of a call, such as 1.2."`
}

// downstreamAnswer lists the calls that run again if one does.
type downstreamAnswer struct {
	Call  string   `json:"call"`
	Calls []string `json:"calls"` // the call itself first
	// The seq at which the context is to be forked, for a call of an earlier tick.
	At int64 `json:"at,omitempty"`
}

func (s *Server) getDownstream(ctx context.Context, in downstreamIn) (downstreamAnswer, error) {
	calls, at, err := s.runs.Downstream(ctx, in.Context, in.Call)
	return downstreamAnswer{Call: in.Call, Calls: calls, At: at}, err
}

// promptIn names a request to a model.
type promptIn struct {
	contextIn
	Call string `query:"call" kind:"call" jsonschema:"The number of a call, such as 1.2."`
	Tick int64  `query:"tick" jsonschema:"The number of the tick whose plan a model made; without call and tick it is the latest request."`
}

// getPrompt answers with the request to a model about a call, or for the plan of a tick.
func (s *Server) getPrompt(ctx context.Context, in promptIn) (*prompts.Prompt, error) {
	about := in.Call
	switch {
	case in.Call != "" && in.Tick > 0:
		return nil, wrong("give call, for a call, or tick, for the plan of a tick; the latest request is that without either")
	case in.Tick > 0:
		about = strconv.FormatInt(in.Tick, 10)
	}
	return s.runs.Prompt(ctx, in.Context, about)
}

// diffIn names two moments.
type diffIn struct {
	A   string `query:"a" required:"the context to compare: ?a=order-7&a_at=12&b=what-if" jsonschema:"The context to compare."`
	AAt int64  `query:"a_at" jsonschema:"The seq as of which a counts; the newest unless it is given."`
	B   string `query:"b" jsonschema:"The context to compare with; a unless it is given."`
	BAt int64  `query:"b_at" jsonschema:"The seq as of which b counts; the newest unless it is given."`
}

func (s *Server) getDiff(ctx context.Context, in diffIn) (l list[any], err error) {
	a := history.Moment{Context: in.A, At: in.AAt}
	b := history.Moment{Context: cmp.Or(in.B, in.A), At: in.BAt}
	for _, m := range []history.Moment{a, b} {
		if err := s.checkContext(ctx, m.Context); err != nil {
			return l, err
		}
	}
	compared, err := history.Compare(ctx, s.log, a, b)
	if err != nil {
		return l, err
	}
	for _, change := range compared.Lines() {
		l.add(change)
	}
	return l, nil
}

// checkContext returns an error where there is no context of a name that the query or the body has.
func (s *Server) checkContext(ctx context.Context, name string) error {
	_, err := s.log.Head(ctx, name)
	if errors.Is(err, store.ErrNoContext) {
		return &problem{status: http.StatusNotFound, code: "no-context", message: "there is no context " + name}
	}
	return err
}

// childrenIn asks for the contexts that belong to one.
type childrenIn struct {
	contextIn
	Limit int64 `query:"limit" kind:"page" jsonschema:"At most so many."`
}

// getChildren lists the contexts of a context's delegates, and then its forks, each newest first.
func (s *Server) getChildren(ctx context.Context, in childrenIn) (all list[history.Summary], err error) {
	children, err := s.runs.Children(ctx, in.Context, cmp.Or(in.Limit, defaultPage))
	if err != nil {
		return all, err
	}
	return s.summarize(ctx, children)
}

// replayAnswer is how a replay differs from the log.
type replayAnswer struct {
	Calls       int                 `json:"calls"` // that were compared
	Context     string              `json:"context"`
	Differences []replay.Difference `json:"differences"`
	Same        bool                `json:"same"`
}

func (s *Server) postReplay(ctx context.Context, in contextIn) (answer replayAnswer, err error) {
	leave, err := s.trial()
	if err != nil {
		return answer, err
	}
	defer leave()
	runner, request, unread, err := s.runs.LastRun(ctx, in.Context)
	if err != nil {
		return answer, err
	}
	last, err := journal.In(s.log, in.Context).LastRun(ctx)
	switch {
	case err != nil:
		return answer, err
	case last.Tick == 0:
		return answer, &problem{status: http.StatusNotFound, code: "no-run", message: fmt.Sprintf("nothing has run in context %s", in.Context)}
	case last.Planner && request == nil && unread != nil:
		return answer, unread
	}
	replayed, err := replay.Run(ctx, runner, in.Context, request)
	if err != nil {
		return answer, err
	}
	return replayAnswer{
		Calls: replayed.Calls, Context: in.Context, Same: len(replayed.Differences) == 0,
		Differences: append([]replay.Difference{}, replayed.Differences...),
	}, nil
}
