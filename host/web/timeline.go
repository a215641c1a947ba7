package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
)

// timeline answers questions about the course of a context's runs.
type timeline struct{ *Server }

// graphAnswer has the graph of each tick of a run.
type graphAnswer struct {
	Ticks []history.Graph `json:"ticks"`
}

func (s timeline) getGraph(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	tick, at := q.seq("tick"), q.seq("at")
	if q.err != nil {
		return q.err
	}
	name := r.PathValue("context")
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		ticks, err := s.runs.Ticks(ctx, name, at)
		if err != nil {
			return nil, err
		}
		lines, err := s.runs.Lines(ctx, name, at)
		if err != nil {
			return nil, err
		}
		answer := graphAnswer{Ticks: []history.Graph{}}
		for _, one := range ticks {
			if tick != 0 && int64(one.Tick) != tick {
				continue
			}
			calls, err := s.runs.Records(ctx, name, history.OfTick(lines, one.Tick))
			if err != nil {
				return nil, err
			}
			answer.Ticks = append(answer.Ticks, history.GraphOf(one.Plan, calls, one.Tick))
		}
		if tick != 0 && len(answer.Ticks) == 0 {
			return nil, &problem{status: http.StatusNotFound, code: "no-tick", message: fmt.Sprintf("the newest run of context %s has no tick %d: GET /v1/contexts/%[1]s/ticks lists them", name, tick)}
		}
		return answer, nil
	})
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

func (s timeline) getTicks(w http.ResponseWriter, r *http.Request) error {
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		var l list
		for entry, err := range s.log.Journal(ctx, store.JournalFilter{Context: name, Event: journal.EventPlan}) {
			if err != nil {
				return nil, err
			}
			e, err := journal.ReadPlanEvent(entry)
			if err != nil {
				return nil, err
			}
			l.add(tickAnswer{
				Tick: e.Tick, First: e.First, Seq: e.Seq, Date: store.FormatDate(entry.Date), Plan: e.Plan, Calls: e.Calls, Mode: e.Mode,
				Planner: e.Planner, ByModel: e.ByModel, Refused: e.Refused != nil, Model: e.Model,
			})
		}
		return l.end(), nil
	})
}

// kindAnswer is a kind that has data, and the instance that it is of.
type kindAnswer struct {
	Instance string `json:"instance,omitempty"`
	Kind     string `json:"kind"`
}

func (s timeline) getKinds(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	at := q.seq("at")
	if q.err != nil {
		return q.err
	}
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		kinds, err := s.runs.Kinds(ctx, name, at)
		if err != nil {
			return nil, err
		}
		return listOf(kinds, func(k store.KindOf) (any, error) { return kindAnswer{Instance: k.Instance, Kind: k.Kind}, nil })
	})
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

func (s timeline) getSteps(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	after, limit := q.after(), q.limit(defaultSteps)
	if q.err != nil {
		return q.err
	}
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		page := stepPage{Steps: []step{}}
		for e, err := range s.log.Journal(ctx, store.JournalFilter{Context: name, After: after}) {
			if err != nil {
				return nil, err
			}
			if int64(len(page.Steps)) == limit {
				page.Next = page.Steps[limit-1].N
				break
			}
			page.Steps = append(page.Steps, step{Call: e.Call, Date: store.FormatDate(e.Date), Event: e.Event, N: e.N, Seq: e.Seq})
		}
		return page, nil
	})
}

// downstreamAnswer lists the calls that run again if one does.
type downstreamAnswer struct {
	Call  string   `json:"call"`
	Calls []string `json:"calls"` // the call itself first
}

func (s timeline) getDownstream(w http.ResponseWriter, r *http.Request) error {
	call := r.URL.Query().Get("call")
	if call == "" {
		return wrong("say of which call: ?call=1.2")
	}
	name := r.PathValue("context")
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		last, records, err := s.runs.LastTick(ctx, name)
		if err != nil {
			return nil, err
		}
		calls, err := history.Downstream(ctx, journal.In(s.log, name), last, records, call)
		return downstreamAnswer{Call: call, Calls: calls}, err
	})
}

// getPrompt answers with the request to a model about a call, or for the plan of a tick.
func (s timeline) getPrompt(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	_, position := q.call("call")
	about, tick := q.text("call"), q.seq("tick")
	switch {
	case q.err != nil:
		return q.err
	case position > 0 && tick > 0:
		return wrong("give call, for a call, or tick, for the plan of a tick; the latest request is that without either")
	case tick > 0:
		about = strconv.FormatInt(tick, 10)
	}
	p, err := s.runs.Prompt(r.Context(), r.PathValue("context"), about)
	if err != nil {
		return err
	}
	return s.respond(w, r, func(context.Context) (any, error) { return p, nil })
}

func (s timeline) getDiff(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	a := history.Moment{Context: q.text("a"), At: q.seq("a_at")}
	b := history.Moment{Context: q.text("b"), At: q.seq("b_at")}
	if q.err != nil {
		return q.err
	}
	if a.Context == "" {
		return wrong("say what to compare: ?a=order-7&a_at=12&b=what-if; b is the same context unless it is given")
	}
	if b.Context == "" {
		b.Context = a.Context
	}
	for _, m := range []history.Moment{a, b} {
		if _, err := s.log.Head(r.Context(), m.Context); errors.Is(err, store.ErrNoContext) {
			return &problem{status: http.StatusNotFound, code: "no-context", message: "there is no context " + m.Context}
		} else if err != nil {
			return err
		}
	}
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		compared, err := history.Compare(ctx, s.log, a, b)
		if err != nil {
			return nil, err
		}
		return listOf(compared.Lines(), func(change any) (any, error) { return change, nil })
	})
}

// getChildren lists the contexts of a context's delegates, and then its forks, each newest first.
func (s timeline) getChildren(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	limit := q.limit(defaultPage)
	if q.err != nil {
		return q.err
	}
	name := r.PathValue("context")
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		children, err := s.runs.Children(ctx, name, limit)
		if err != nil {
			return nil, err
		}
		return listOf(children, func(info store.ContextInfo) (any, error) { return s.waiting.Summarize(ctx, info) })
	})
}

// replayAnswer is how a replay differs from the log.
type replayAnswer struct {
	Calls       int                 `json:"calls"` // that were compared
	Context     string              `json:"context"`
	Differences []replay.Difference `json:"differences"`
	Same        bool                `json:"same"`
}

func (s timeline) postReplay(w http.ResponseWriter, r *http.Request) error {
	if err := read(r, &struct{}{}); err != nil {
		return err
	}
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	leave, err := s.trial()
	if err != nil {
		return err
	}
	defer leave()
	runner, request, unread, err := s.runs.LastRun(r.Context(), name)
	if err != nil {
		return err
	}
	last, err := journal.In(s.log, name).LastRun(r.Context())
	switch {
	case err != nil:
		return err
	case last.Tick == 0:
		return &problem{status: http.StatusNotFound, code: "no-run", message: fmt.Sprintf("nothing has run in context %s", name)}
	case last.Planner && request == nil && unread != nil:
		return unread
	}
	replayed, err := replay.Run(r.Context(), runner, name, request)
	if err != nil {
		return err
	}
	return s.respond(w, r, func(context.Context) (any, error) {
		return replayAnswer{
			Calls: replayed.Calls, Context: name, Same: len(replayed.Differences) == 0,
			Differences: append([]replay.Difference{}, replayed.Differences...),
		}, nil
	})
}
