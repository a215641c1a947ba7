package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/host/ops"
	"obelus/host/web/internal/api"
	"obelus/store"
)

func runOperations() []operation {
	return tagged("runs",
		handling(operation{
			ID: "startRun", Route: "POST /v1/runs", Summary: "Run a plan.", Example: `{"plan": "plans/refund.lua", "input": {"customer": "c-1042"}, "wait": true}`, Answers: runAnswers("The run is in the log."),
			Detail: "A run that is accepted is in the log: if the process dies, the next server resumes it. With once, or a key in the header Idempotency-Key, a request that comes again makes no second run. An approve other than always, and the mode eager for a lazy plan, need the role decide.",
		}, (*Server).postRun),
		answering(operation{
			ID: "listRuns", Route: "GET /v1/runs", Summary: "List runs, the one that was appended to last first.", Example: "?status=waiting,failed&limit=20", Answer: "A page of contexts with runs.",
			Detail: "A page has 100 runs, or as many as limit says, up to 1,000.",
		}, (*Server).listRuns),
		answering(operation{ID: "countRuns", Route: "GET /v1/runs/counts", Summary: "Count runs by status.", Answer: "The numbers of runs."}, (*Server).countRuns),
		handling(operation{
			ID: "cancelRun", Route: "DELETE /v1/runs/{context}", Summary: "Cancel the run of a context.", Answer: "The run's outcome.", Schema: api.Of[outcomeAnswer],
			Detail: "It waits until running calls have ended, as long as the setting drain lets them.",
		}, (*Server).deleteRun),
		handling(operation{
			ID: "listApprovals", Route: "GET /v1/approvals", Summary: "List the decisions that wait for a person, in all contexts.", Answer: "Held calls, and lazy plans to release.", Schema: waitingSchema,
		}, (*Server).getInbox),
		handling(operation{
			ID: "followAll", Route: "GET /v1/events", Summary: "Follow all contexts by server-sent events.", Example: "?inbox", Type: "text/event-stream", Answer: "Events without an end.",
			Detail: "Events are context, with data as a list of contexts has them, whenever that has changed; with inbox they are inbox, with {\"waiting\":3}. Changes are gathered for 200 ms. The header Last-Event-ID continues a stream; some events may come twice.",
		}, (*Server).getFeed),
	)
}

// waitingSchema returns the schema of a list of what waits for a person.
func waitingSchema() api.Schema {
	return api.List(api.Schema{"anyOf": []any{api.Of[journal.Approval](), api.Of[history.ShownPlan]()}})
}

// nameIn is the name of a context.
type nameIn struct {
	Context string `path:"context" kind:"name" example:"order-7" jsonschema:"The name of a context."`
}

// contextIn names a context that there must be.
type contextIn struct{ nameIn }

// existing returns its name. A request for another one is refused before its body is read.
func (in contextIn) existing() string { return in.Context }

// noIn is a request that says nothing by itself.
type noIn struct{}

// contextsIn asks for contexts.
type contextsIn struct {
	history.ContextFilter
	Prefix string `query:"prefix" jsonschema:"Contexts whose names begin so."`
	Limit  int64  `query:"limit" jsonschema:"At most so many."`
}

func (s *Server) listContexts(ctx context.Context, in contextsIn) (all list[history.Summary], err error) {
	f, statuses, err := in.Contexts()
	if err != nil {
		return all, err
	}
	f.Prefix = in.Prefix
	var infos []store.ContextInfo
	for info, err := range history.List(ctx, s.log, f, statuses) {
		if err != nil {
			return all, err
		}
		if infos = append(infos, info); int64(len(infos)) == in.Limit {
			break
		}
	}
	return s.summarize(ctx, infos)
}

// summarize describes contexts.
func (s *Server) summarize(ctx context.Context, infos []store.ContextInfo) (all list[history.Summary], err error) {
	for _, info := range infos {
		line, err := s.waiting.Summarize(ctx, info)
		if err != nil {
			return all, err
		}
		all.add(line)
	}
	return all, nil
}

// A list is given in pages of defaultPage elements, or as many as are asked for, up to maxPage.
const (
	defaultPage = 100
	maxPage     = 1000
)

// runsIn asks for a page of runs.
type runsIn struct {
	history.RunFilter
	Cursor store.ContextMark `query:"cursor" kind:"cursor" jsonschema:"The next of the page before."`
	Limit  int64             `query:"limit" kind:"page" jsonschema:"At most so many."`
}

// runPage is a page of a list of runs.
type runPage struct {
	Runs []history.Summary `json:"runs"`
	Next string            `json:"next,omitempty"` // the cursor of the next page; empty for the last
}

func (s *Server) listRuns(ctx context.Context, in runsIn) (page runPage, err error) {
	f, statuses, err := in.Contexts()
	if err != nil {
		return page, err
	}
	f.After = in.Cursor
	limit := cmp.Or(in.Limit, defaultPage)
	page.Runs = []history.Summary{}
	var last store.ContextMark
	for info, err := range history.List(ctx, s.log, f, statuses) {
		if err != nil {
			return page, err
		}
		if int64(len(page.Runs)) == limit {
			page.Next = ops.Cursor(last)
			break
		}
		line, err := s.waiting.Summarize(ctx, info)
		if err != nil {
			return page, err
		}
		page.Runs, last = append(page.Runs, line), info.Mark()
	}
	return page, nil
}

// countAnswer has the numbers of runs.
type countAnswer struct {
	Status map[journal.RunStatus]int64 `json:"status"`
	Total  int64                       `json:"total"`
}

func (s *Server) countRuns(ctx context.Context, in history.RunFilter) (answer countAnswer, err error) {
	f, statuses, err := in.Contexts()
	if err != nil {
		return answer, err
	}
	all, err := history.Count(ctx, s.log, f)
	answer.Status = map[journal.RunStatus]int64{}
	for status, n := range all {
		if len(statuses) == 0 || slices.Contains(statuses, status) {
			answer.Status[status] = n
			answer.Total += n
		}
	}
	return answer, err
}

// getInbox lists what waits for a person in all contexts.
func (s *Server) getInbox(w http.ResponseWriter, r *http.Request, _ noIn) error {
	held, err := s.waiting.Look(r.Context())
	if err != nil {
		return err
	}
	waiting, begun := held.Contexts, false
	return s.respondInPieces(w, r, func(ctx context.Context) (text []byte, sent func() bool, err error) {
		l, rest := list[any]{begun: begun}, waiting
		for ; len(rest) > 0 && len(l.text) < portion; rest = rest[1:] {
			var in history.Inbox
			if err := in.Add(ctx, s.log, rest[0]); err != nil {
				return nil, nil, err
			}
			if err := s.addWaiting(ctx, &l, &in); err != nil {
				return nil, nil, err
			}
		}
		if text = l.text; len(rest) == 0 {
			text = l.end()
		}
		more := len(rest) > 0
		return text, func() bool { waiting, begun = rest, l.begun; return more }, nil
	})
}

// addWaiting adds what waits for a person.
func (s *Server) addWaiting(ctx context.Context, l *list[any], in *history.Inbox) error {
	for _, waiting := range in.Plans {
		shown, err := s.supervisor.ShowPlan(ctx, waiting.Context)
		switch {
		case is[*journal.NoSuchCallError](err): // it was decided meanwhile
		case err != nil:
			return err
		default:
			l.add(shown)
		}
	}
	for i := range in.Calls {
		l.add(in.Calls[i].Approval())
	}
	return nil
}

// contextDetail is one context: its summary, and the outcome of its newest run.
type contextDetail struct {
	history.Summary
	Output any          `json:"output"`
	Error  *errorAnswer `json:"error"`
	Stuck  string       `json:"stuck,omitempty"` // the reason why the server can't go on with it
}

func (s *Server) getContext(ctx context.Context, in contextIn) (*contextDetail, error) {
	info, err := s.log.Info(ctx, in.Context)
	if err != nil {
		return nil, err
	}
	outcome, err := engine.ReadOutcome(ctx, s.log, info.Context)
	if err != nil && !is[*journal.DamagedError](err) {
		return nil, err
	}
	line, unread := s.waiting.Summarize(ctx, info)
	if unread != nil {
		return nil, unread
	}
	body := &contextDetail{Summary: line}
	var damaged *journal.DamagedError
	switch {
	case errors.As(err, &damaged):
		body.Status, body.Error = "", &errorAnswer{Code: "damaged", Message: damaged.Error()}
	case err != nil:
		return nil, err
	default:
		body.Status, body.Stopped, body.Output, body.Error = outcome.Status, outcome.Stopped, outcome.Output, errorOf(outcome)
	}
	if body.Status == journal.RunRunning || body.Status == journal.RunWaiting || body.Stopped {
		body.Stuck, _ = s.supervisor.Stuck(info.Context)
	}
	return body, nil
}

func (s *Server) getApprovals(ctx context.Context, in contextIn) (l list[any], err error) {
	inbox, err := s.runs.Inbox(ctx, in.Context)
	if err != nil {
		return l, err
	}
	err = s.addWaiting(ctx, &l, inbox)
	return l, err
}
