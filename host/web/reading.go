package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// reading answers questions about the messages, calls and values of a context.
type reading struct{ *Server }

// logPage is a part of a log that is still to be sent.
type logPage struct {
	filter store.Filter
	text   string // in lower case, that the JSON of a message has; empty for all
	left   int64  // number of messages; 0 for all
	begun  bool
	over   bool
}

func (s reading) getLog(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	p := logPage{
		filter: store.Filter{Kind: q.text("kind"), Path: q.path("path"), Since: q.time("since"), After: q.after(), At: q.seq("at"), Newest: q.flag("newest")},
		text:   strings.ToLower(q.text("q")), left: q.seq("limit"),
	}
	if q.err != nil {
		return q.err
	}
	p.filter.Context = r.PathValue("context")
	head, err := s.log.Head(r.Context(), p.filter.Context)
	if err != nil {
		return err
	}
	if p.filter.At == 0 {
		p.filter.At = head // the answer ends here, though the log goes on
	}
	p.over = head == 0
	return s.respondInPieces(w, r, func(context.Context) (text []byte, sent func() (more bool), err error) {
		text, rest, err := s.readLog(r, p)
		return text, func() bool { p = rest; return !p.over }, err
	})
}

// readLog returns the text of a portion of a log, and the rest. No read of the log is open while
// the client takes it.
func (s reading) readLog(r *http.Request, p logPage) ([]byte, logPage, error) {
	l, rest := list{begun: p.begun}, p
	rest.begun = true
	if p.over {
		return l.end(), rest, nil
	}
	for m, err := range s.log.Messages(r.Context(), p.filter) {
		if err != nil {
			return nil, rest, err
		}
		if p.text != "" && !strings.Contains(strings.ToLower(string(store.EncodeJSON(m))), p.text) {
			continue
		}
		l.add(m)
		if rest.left--; rest.left == 0 {
			break
		}
		if len(l.text) < portion {
			continue
		}
		if rest.filter.After = m.Seq; p.filter.Newest {
			rest.filter.After, rest.filter.At = p.filter.After, m.Seq-1
			rest.over = m.Seq == 1 // there is nothing before it
		}
		if rest.over {
			break
		}
		return l.text, rest, nil
	}
	rest.over = true
	return l.end(), rest, nil
}

// callFilter picks calls.
type callFilter struct {
	statuses       []string
	tool           string
	limit          int64 // 0 for all
	tick, position int   // only calls after this one
}

func (f *callFilter) picks(l *history.Line) bool {
	behind := l.Tick > f.tick || l.Tick == f.tick && l.Position > f.position
	return behind && l.Is(f.statuses) && (f.tool == "" || l.Tool == f.tool)
}

// recordsAtOnce is how many records of calls are in memory at once.
const recordsAtOnce = 500

func (s reading) getCalls(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	at, f := q.seq("at"), callFilter{statuses: q.outcomes("status"), tool: q.text("tool"), limit: q.seq("limit")}
	if f.tick, f.position = q.call("cursor"); q.err != nil {
		return q.err
	}
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	return s.respondText(w, r, func(ctx context.Context) ([]byte, error) {
		lines, err := s.runs.Lines(ctx, name, at)
		if err != nil {
			return nil, err
		}
		lines = history.Pick(lines, f.picks)
		if f.limit > 0 && int64(len(lines)) > f.limit {
			lines = lines[:f.limit]
		}
		var l list
		for part := range slices.Chunk(lines, recordsAtOnce) {
			records, err := s.runs.Records(ctx, name, part)
			if err != nil {
				return nil, err
			}
			for _, r := range records {
				l.add(r)
			}
		}
		return l.end(), nil
	})
}

// call reads the number of a call, such as 1.2. It returns zeros for none.
func (q *query) call(name string) (tick, position int) {
	text := q.text(name)
	if text == "" {
		return 0, 0
	}
	before, after, ok := strings.Cut(text, ".")
	tick, wrongTick := strconv.Atoi(before)
	position, wrongPosition := strconv.Atoi(after)
	if !ok || errors.Join(wrongTick, wrongPosition) != nil || tick < 1 || position < 1 {
		q.err = wrong("%s=%s: it must be the number of a call, such as 1.2", name, text)
	}
	return tick, position
}

// asked returns the parameters of get and why. The expression is nil without a reference.
func asked(r *http.Request) (expr *expr.Expr, at int64, instance string, err error) {
	q := queryOf(r)
	if at = q.seq("at"); q.err != nil {
		return nil, 0, "", q.err
	}
	if q.text("ref") != "" {
		expr, err = history.ParseRef(q.text("ref"))
	}
	return expr, at, q.text("instance"), err
}

func (s reading) getValue(w http.ResponseWriter, r *http.Request) error {
	expr, at, instance, err := asked(r)
	if err != nil {
		return err
	}
	q := queryOf(r)
	depth := q.seq("depth")
	if q.err != nil {
		return q.err
	}
	c := journal.In(s.log, r.PathValue("context"))
	return s.respond(w, r, func(ctx context.Context) (value any, err error) {
		if expr == nil {
			value, err = s.runs.Values(ctx, r.PathValue("context"), at, instance)
		} else {
			value, err = history.Get(ctx, c, expr, at, instance)
		}
		return toDepth(value, depth), err
	})
}

func (s reading) getWhy(w http.ResponseWriter, r *http.Request) error {
	expr, at, instance, err := asked(r)
	if err == nil && expr == nil {
		err = wrong("say of what: ?ref=state.user")
	}
	if err != nil {
		return err
	}
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		return history.Explain(ctx, journal.In(s.log, r.PathValue("context")), expr, at, instance)
	})
}
