package web

import (
	"context"
	"net/http"

	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/host/web/internal/api"
	"obelus/store"
)

func contextOperations() []operation {
	return tagged("contexts",
		answering(operation{
			ID: "listContexts", Route: "GET /v1/contexts", Summary: "List contexts, delegates' too, the one that was appended to last first.", Answer: "Contexts.",
		}, (*Server).listContexts),
		answering(operation{
			ID: "getContext", Route: "GET /v1/contexts/{context}", Summary: "Get a context, with the output and the error of its newest run.", Answer: "The context.",
		}, (*Server).getContext),
		handling(operation{
			ID: "getLog", Route: "GET /v1/contexts/{context}/log", Summary: "List the messages of a context.",
			Example: "?newest=true&limit=10", Answer: "Messages.", Schema: func() api.Schema { return api.List(messageSchema()) },
		}, (*Server).getLog),
		answering(operation{
			ID: "getLogs", Route: "GET /v1/contexts/{context}/logs", Summary: "List the lines that scripts printed and logged, oldest first.",
			Example: "?call=1.2", Answer: "A page of lines.", Schema: linesSchema,
			Detail: "A page has 100 of them, or as many as limit says, up to 1,000. Of each call the newest are kept, as the setting logs says; a gap in the numbers of lines shows where others were. With newest there is one page, of the newest first.",
		}, (*Server).getLogs),
		answering(operation{
			ID: "getCalls", Route: "GET /v1/contexts/{context}/calls", Summary: "List the calls of a context as they stand, or stood.", Example: "?status=failed", Answer: "Records of calls.",
		}, (*Server).getCalls),
		answering(operation{
			ID: "getApprovals", Route: "GET /v1/contexts/{context}/approvals", Summary: "List the decisions that wait for a person in a context and its delegates.",
			Answer: "Held calls, and lazy plans to release.", Schema: waitingSchema,
		}, (*Server).getApprovals),
		answering(operation{
			ID: "getValue", Route: "GET /v1/contexts/{context}/get", Summary: "Get the value of a reference, or of all kinds.", Example: "?ref=state.user", Answer: "The value.",
		}, (*Server).getValue),
		answering(operation{
			ID: "explain", Route: "GET /v1/contexts/{context}/why", Summary: "Explain where a value comes from.", Example: "?ref=state.user", Answer: "The value with its origin.", Schema: whySchema,
			Detail: "Each element of from is a message that the value is made of, with the call that wrote it and the values that the call read, and so on back.",
		}, (*Server).getWhy),
		handling(operation{
			ID: "follow", Route: "GET /v1/contexts/{context}/events", Summary: "Follow a context by server-sent events.", Type: "text/event-stream", Answer: "Events without an end.",
			Detail: "Events are message, call and run, with data as the lists have them, from the beginning or after the id in the header Last-Event-ID; model events, without an id, have the text that a model is writing.",
		}, (*Server).getEvents),
	)
}

func messageSchema() api.Schema {
	return api.Object(api.Schema{
		"seq": api.Positive(), "context?": api.Text(), "date": api.Text(), "type": api.Text(), "kind?": api.Text(), "_instance?": api.Text(), "path?": api.Text(),
		"data?": api.Any(), "message?": api.Any(), "plan?": api.Any(), "tool?": api.Any(), "text?": api.Any(), "schema?": api.Any(), "description?": api.Text(), "mode?": api.Text(),
		"_call?": api.Any(), "_date?": api.Text(), "_outputMethod?": api.Text(), "call?": api.Text(),
	})
}

func whySchema() api.Schema {
	return api.Object(api.Schema{
		"ref": api.Text(), "context?": api.Text(), "value": api.Any(), "missing?": api.Boolean(), "again?": api.Boolean(),
		"from?": api.List(api.Schema{"type": "object", "required": []any{"seq", "path", "data"}}),
	})
}

// logIn picks messages of a context.
type logIn struct {
	contextIn
	history.LogFilter
	After  int64 `query:"after" kind:"count" jsonschema:"Messages after this seq."`
	At     int64 `query:"at" jsonschema:"Messages up to this seq."`
	Newest bool  `query:"newest" jsonschema:"true begins at the end."`
	Limit  int64 `query:"limit" jsonschema:"At most so many."`
}

// logPage is a part of a log that is still to be sent.
type logPage struct {
	filter store.Filter
	picks  func(*store.Message) bool
	left   int64 // number of messages; 0 for all
	begun  bool
	over   bool
}

func (s *Server) getLog(w http.ResponseWriter, r *http.Request, in logIn) error {
	p := logPage{filter: in.Messages(in.Context), picks: in.Picks, left: in.Limit}
	p.filter.After, p.filter.At, p.filter.Newest = in.After, in.At, in.Newest
	head, err := s.log.Head(r.Context(), in.Context)
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
func (s *Server) readLog(r *http.Request, p logPage) ([]byte, logPage, error) {
	l, rest := list[*store.Message]{begun: p.begun}, p
	rest.begun = true
	if p.over {
		return l.end(), rest, nil
	}
	for m, err := range s.log.Messages(r.Context(), p.filter) {
		if err != nil {
			return nil, rest, err
		}
		if !p.picks(m) {
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

// callsIn picks calls of a context.
type callsIn struct {
	contextIn
	At int64 `query:"at" jsonschema:"The seq as of which to answer; the newest unless it is given."`
	history.CallFilter
	Cursor string `query:"cursor" kind:"call" jsonschema:"The calls after this one, such as 1.2."`
	Limit  int64  `query:"limit" jsonschema:"At most so many."`
}

func (s *Server) getCalls(ctx context.Context, in callsIn) (l list[journal.Record], err error) {
	if err := in.Check(); err != nil {
		return l, err
	}
	tick, position, _ := splitCall(in.Cursor)
	picks := func(l *journal.Line) bool {
		isBehind := l.Tick > tick || l.Tick == tick && l.Position > position
		return isBehind && in.Picks(l)
	}
	for record, err := range s.runs.Calls(ctx, in.Context, in.At, in.Limit, picks) {
		if err != nil {
			return l, err
		}
		l.add(record)
	}
	return l, nil
}

// refIn refers to a value of a context.
type refIn struct {
	At       int64  `query:"at" jsonschema:"The seq as of which to answer; the newest unless it is given."`
	Instance string `query:"instance" jsonschema:"The instance whose values count; the global ones unless it is given."`
}

// valueIn asks for a value.
type valueIn struct {
	contextIn
	Ref string `query:"ref" jsonschema:"A path such as state.user, or an expression; all kinds unless it is given."`
	refIn
	Depth int64 `query:"depth" jsonschema:"How many levels of objects and arrays to show; all unless it is given. Instead of one that is deeper and not empty stands {\"…\": \"array\", \"entries\": 12}."`
}

func (s *Server) getValue(ctx context.Context, in valueIn) (value any, err error) {
	if in.Ref == "" {
		value, err = s.runs.Values(ctx, in.Context, in.At, in.Instance)
		return toDepth(value, in.Depth), err
	}
	var ref *expr.Expr
	if ref, err = history.ParseRef(in.Ref); err == nil {
		value, err = history.Get(ctx, journal.In(s.log, in.Context), ref, in.At, in.Instance)
	}
	return toDepth(value, in.Depth), err
}

// whyIn asks where a value comes from.
type whyIn struct {
	contextIn
	Ref string `query:"ref" required:"a reference: ?ref=state.user" jsonschema:"A path such as state.user, or an expression."`
	refIn
}

func (s *Server) getWhy(ctx context.Context, in whyIn) (*history.Why, error) {
	ref, err := history.ParseRef(in.Ref)
	if err != nil {
		return nil, err
	}
	return history.Explain(ctx, journal.In(s.log, in.Context), ref, in.At, in.Instance)
}
