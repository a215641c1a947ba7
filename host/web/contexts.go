package web

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// lists answers requests for lists of contexts and of what waits in them.
type lists struct{ *Server }

func (s lists) listContexts(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	limit, filter := q.seq("limit"), store.ContextFilter{Prefix: q.text("prefix")}
	if q.err != nil {
		return q.err
	}
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		var infos []store.ContextInfo
		for info, err := range s.log.Contexts(ctx, filter) {
			if err != nil {
				return nil, err
			}
			if infos = append(infos, info); int64(len(infos)) == limit {
				break
			}
		}
		return listOf(infos, func(info store.ContextInfo) (any, error) { return s.waiting.Summarize(ctx, info) })
	})
}

// runPage is a page of a list of runs.
type runPage struct {
	Runs []history.Summary `json:"runs"`
	Next string            `json:"next,omitempty"` // the cursor of the next page; empty for the last
}

func (s lists) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f, statuses := q.listed()
	limit := q.limit(defaultPage)
	if f.After = q.cursor(); q.err != nil {
		return q.err
	}
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		page := runPage{Runs: []history.Summary{}}
		var last store.ContextMark
		for info, err := range history.List(ctx, s.log, f, statuses) {
			if err != nil {
				return nil, err
			}
			if int64(len(page.Runs)) == limit {
				page.Next = cursorOf(last)
				break
			}
			line, err := s.waiting.Summarize(ctx, info)
			if err != nil {
				return nil, err
			}
			page.Runs, last = append(page.Runs, line), info.Mark()
		}
		return page, nil
	})
}

func (s lists) countRuns(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f, statuses := q.listed()
	if q.err != nil {
		return q.err
	}
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		all, err := history.Count(ctx, s.log, f)
		counts, total := map[string]int64{}, int64(0)
		for status, n := range all {
			if len(statuses) == 0 || slices.Contains(statuses, status) {
				counts[string(status)] = n
				total += n
			}
		}
		return map[string]any{"total": total, "status": counts}, err
	})
}

// getInbox lists what waits for a person in all contexts.
func (s lists) getInbox(w http.ResponseWriter, r *http.Request) error {
	held, err := s.waiting.Look(r.Context())
	if err != nil {
		return err
	}
	waiting, begun := held.Contexts, false
	return s.respondInPieces(w, r, func(ctx context.Context) (text []byte, sent func() bool, err error) {
		l, rest := list{begun: begun}, waiting
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
func (s lists) addWaiting(ctx context.Context, l *list, in *history.Inbox) error {
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
	Output any    `json:"output"`
	Error  any    `json:"error"`
	Stuck  string `json:"stuck,omitempty"` // the reason why the server can't go on with it
}

func (s *Server) getContext(w http.ResponseWriter, r *http.Request) error {
	return s.respond(w, r, func(ctx context.Context) (any, error) { return s.contextDetail(ctx, r.PathValue("context")) })
}

func (s *Server) contextDetail(ctx context.Context, name string) (any, error) {
	info, err := s.log.Info(ctx, name)
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
	body := contextDetail{Summary: line}
	var damaged *journal.DamagedError
	switch {
	case errors.As(err, &damaged):
		body.Status, body.Error = "", map[string]any{"code": "damaged", "message": damaged.Error()}
	case err != nil:
		return nil, err
	default:
		body.Status, body.Stopped, body.Output, body.Error = outcome.Status, outcome.Stopped, outcome.Output, errorBody(outcome)
	}
	if body.Status == journal.RunRunning || body.Status == journal.RunWaiting || body.Stopped {
		body.Stuck, _ = s.supervisor.Stuck(info.Context)
	}
	return body, nil
}

// existingContext returns the context that a request names. It is an error if there is none.
func (s *Server) existingContext(r *http.Request) (string, error) {
	name := r.PathValue("context")
	_, err := s.log.Head(r.Context(), name)
	return name, err
}

func (s lists) getApprovals(w http.ResponseWriter, r *http.Request) error {
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		var in history.Inbox
		if in.Plans, err = journal.In(s.log, name).Lazy(ctx); err != nil {
			return nil, err
		}
		if in.Calls, err = journal.In(s.log, name).Holds(ctx); err != nil {
			return nil, err
		}
		var l list
		err = s.addWaiting(ctx, &l, &in)
		return l.end(), err
	})
}

// forkBody is the body of POST …/fork.
type forkBody struct {
	Context *string `json:"context" jsonschema:"The name of the fork; a new one unless it is given."`
	At      *int64  `json:"at" kind:"integer" jsonschema:"The seq up to which the log is shared; the newest unless it is given."`
}

func (s *Server) postFork(w http.ResponseWriter, r *http.Request) error {
	var asked forkBody
	if err := read(r, &asked); err != nil {
		return err
	}
	from, err := s.existingContext(r)
	if err != nil {
		return err
	}
	fork, err := contextFor(asked.Context)
	if err != nil {
		return err
	}
	at := int64(0) // 0 is the newest
	if asked.At != nil {
		if at = *asked.At; at < 1 {
			return wrong("at %d: it must be a whole number above 0", at)
		}
	}
	at, err = journal.Fork(r.Context(), s.log, from, at, fork)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{"context": fork, "parent": from, "at": at})
}

func (s *Server) postMessages(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("context")
	if err := store.CheckContext(name); err != nil {
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
	appended, err := s.supervisor.Append(r.Context(), name, messages)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{"context": name, "seq": appended.Seq, "messages": len(messages)})
}
