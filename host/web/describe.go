package web

import (
	"net/http"
	"strings"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/prompts"
	"obelus/host/web/internal/api"
)

// described returns the routes as clients are told of them.
func (s *Server) described() (routes []api.Route) {
	operations := operations()
	for _, r := range s.table() {
		method, path, _ := strings.Cut(r.pattern, " ")
		described := api.Route{Method: method, Path: path, Operation: operations[r.pattern]}
		if r.may != host.NoRole {
			described.Role = r.may.String()
		}
		if r.query != anyQuery {
			described.Query = strings.Fields(r.query)
		}
		routes = append(routes, described)
	}
	return routes
}

// Schemas of answers that several routes have, and of values that write themselves as JSON.

func contextSchema() api.Schema {
	return api.Object(api.Schema{"context": api.Text()})
}

func runErrorSchema() api.Schema {
	return api.Nullable(api.Object(api.Schema{"code": api.Text(), "message": api.Text()}))
}

func outcomeSchema() api.Schema {
	return api.Object(api.Schema{"context": api.Text(), "status": api.Text(), "output": api.Any(), "error": runErrorSchema(), "background?": api.Schema{"type": "integer"}})
}

func decidedSchema() api.Schema {
	return api.Object(api.Schema{
		"context": api.Text(), "call?": api.Text(), "hash?": api.Text(), "effects?": api.List(api.Text()), "decision?": api.Schema{"enum": []any{journal.Approved, journal.Rejected}}, "status?": api.Text(),
	})
}

func messageSchema() api.Schema {
	return api.Object(api.Schema{
		"seq": api.Positive(), "context?": api.Text(), "date": api.Text(), "type": api.Text(), "kind?": api.Text(), "_instance?": api.Text(), "path?": api.Text(),
		"data?": api.Any(), "message?": api.Any(), "plan?": api.Any(), "tool?": api.Any(), "text?": api.Any(), "schema?": api.Any(), "description?": api.Text(), "mode?": api.Text(),
		"_call?": api.Any(), "_date?": api.Text(), "_outputMethod?": api.Text(), "call?": api.Text(),
	})
}

func promptSchema() api.Schema {
	return api.Object(api.Schema{
		"context": api.Text(), "tick": api.Positive(), "calls?": api.List(api.Text()), "hash": api.Text(), "recorded?": api.Text(),
		"state": api.Schema{"enum": []any{prompts.Sent, prompts.Computed, prompts.Differs}},
		"request": api.Object(api.Schema{
			"version?": api.Positive(), "purpose": api.Text(), "model": api.Text(), "system": api.Text(), "blocks": api.List(api.Text()), "schema": api.Any(), "params": api.Any(),
		}),
		"answers?": api.List(api.Object(api.Schema{
			"hash": api.Text(), "added?": api.List(api.Text()), "text?": api.Text(), "size": api.Schema{"type": "integer"}, "error?": api.Text(), "usage?": api.Any(),
		})),
	})
}

func changeSchema() api.Schema {
	value := api.Object(api.Schema{"path": api.Text(), "instance?": api.Text(), "old?": api.Any(), "new?": api.Any()})
	return api.Schema{"anyOf": []any{value, api.Of[history.CallChange](), api.Of[history.ScriptChange]()}}
}

func waitingSchema() api.Schema {
	return api.List(api.Schema{"anyOf": []any{api.Of[journal.Approval](), api.Of[history.ShownPlan]()}})
}

func whySchema() api.Schema {
	return api.Object(api.Schema{
		"ref": api.Text(), "context?": api.Text(), "value": api.Any(), "missing?": api.Boolean(), "again?": api.Boolean(),
		"from?": api.List(api.Schema{"type": "object", "required": []any{"seq", "path", "data"}}),
	})
}

// detailSchema returns the schema of one context by itself: its summary with more.
func detailSchema() api.Schema {
	s := api.Of[history.Summary]()
	properties := s["properties"].(api.Schema)
	properties["output"], properties["error"], properties["stuck"] = api.Any(), runErrorSchema(), api.Text()
	return s
}

// scriptsSchema returns the schema of the answer of GET /v1/scripts.
func scriptsSchema() api.Schema {
	names := api.List(api.Text())
	return api.Object(api.Schema{
		"generation": api.Positive(), "digest": api.Text(), "loaded": api.Text(), "pending": names, "files": api.List(api.Of[scriptFile]()),
		"error": api.Nullable(api.Object(api.Schema{
			"code": api.Text(), "message": api.Text(), "check": api.List(api.Of[plan.Problem]()), "date": api.Text(), "added": names, "changed": names, "removed": names,
		})),
	})
}

// operations describes the routes of the table, by pattern.
func operations() map[string]api.Operation {
	all := map[string]api.Operation{}
	for _, some := range []map[string]api.Operation{runOperations(), contextOperations(), timelineOperations(), decisionOperations(), projectOperations(), serverOperations()} {
		for pattern, o := range some {
			all[pattern] = o
		}
	}
	return all
}

func runOperations() map[string]api.Operation {
	summary := api.Of[history.Summary]()
	outcome := api.Answer{Status: http.StatusOK, About: "With wait: the run's outcome, whatever it is.", Schema: outcomeSchema()}
	accepted := api.Answer{Status: http.StatusAccepted, About: "The run is in the log.", Schema: api.Object(api.Schema{"context": api.Text(), "status?": api.Text()})}
	return map[string]api.Operation{
		"POST /v1/runs": {
			ID: "startRun", Tag: "runs", Summary: "Run a plan.",
			Detail: "A run that is accepted is in the log: if the process dies, the next server resumes it. With once, or a key in the header Idempotency-Key, a request that comes again makes no second run. An approve other than always, and the mode eager for a lazy plan, need the role decide.",
			Body:   api.Body[runRequest]("plan"), Example: `{"plan": "plans/refund.lua", "input": {"customer": "c-1042"}, "wait": true}`,
			Answers: []api.Answer{outcome, accepted},
		},
		"GET /v1/runs": {
			ID: "listRuns", Tag: "runs", Summary: "List runs, the one that was appended to last first.", Example: "?status=waiting,failed&limit=20",
			Detail:  "A page has 100 runs, or as many as limit says, up to 1,000.",
			Answers: api.OK("A page of contexts with runs.", api.Object(api.Schema{"runs": api.List(summary), "next?": api.Text()})),
		},
		"GET /v1/runs/counts": {
			ID: "countRuns", Tag: "runs", Summary: "Count runs by status.",
			Answers: api.OK("The numbers of runs.", api.Object(api.Schema{"total": api.Schema{"type": "integer"}, "status": api.Schema{"type": "object", "additionalProperties": api.Positive()}})),
		},
		"DELETE /v1/runs/{context}": {
			ID: "cancelRun", Tag: "runs", Summary: "Cancel the run of a context.", Detail: "It waits until running calls have ended, as long as the setting drain lets them.",
			Answers: api.OK("The run's outcome.", outcomeSchema()),
		},
		"GET /v1/approvals": {
			ID: "listApprovals", Tag: "runs", Summary: "List the decisions that wait for a person, in all contexts.",
			Answers: api.OK("Held calls, and lazy plans to release.", waitingSchema()),
		},
		"GET /v1/events": {
			ID: "followAll", Tag: "runs", Summary: "Follow all contexts by server-sent events.", Example: "?inbox",
			Detail: "Events are context, with data as a list of contexts has them, whenever that has changed; with inbox they are inbox, with {\"waiting\":3}. Changes are gathered for 200 ms. The header Last-Event-ID continues a stream; some events may come twice.",
			Query:  map[string]string{"after": "The id of an event after which to begin, or 0 for all contexts; without it the stream begins now."}, Answers: api.Events("Events without an end."),
		},
	}
}

func contextOperations() map[string]api.Operation {
	summary := api.Of[history.Summary]()
	return map[string]api.Operation{
		"GET /v1/contexts": {
			ID: "listContexts", Tag: "contexts", Summary: "List contexts, delegates' too, the one that was appended to last first.", Answers: api.OK("Contexts.", api.List(summary)),
		},
		"GET /v1/contexts/{context}": {
			ID: "getContext", Tag: "contexts", Summary: "Get a context, with the output and the error of its newest run.", Answers: api.OK("The context.", detailSchema()),
		},
		"GET /v1/contexts/{context}/log": {
			ID: "getLog", Tag: "contexts", Summary: "List the messages of a context.", Example: "?newest=true&limit=10",
			Query: map[string]string{
				"at": "Messages up to this seq.", "after": "Messages after this seq.", "path": "Messages that touch this path.", "q": "Messages with this text in their JSON, in any case.",
			},
			Answers: api.OK("Messages.", api.List(messageSchema())),
		},
		"GET /v1/contexts/{context}/logs": {
			ID: "getLogs", Tag: "contexts", Summary: "List the lines that scripts printed and logged, oldest first.", Example: "?call=1.2",
			Detail:  "A page has 100 of them, or as many as limit says, up to 1,000. Of each call the newest are kept, as the setting logs says; a gap in the numbers of lines shows where others were. With newest there is one page, of the newest first.",
			Query:   map[string]string{"after": "The next of the page before.", "call": "Lines of this call, such as 1.2.", "level": "Lines from this level on: debug, info (also what was printed), warn or error."},
			Answers: api.OK("A page of lines.", api.Object(api.Schema{"lines": api.List(api.Of[logLine]()), "next?": api.Positive()})),
		},
		"GET /v1/contexts/{context}/calls": {
			ID: "getCalls", Tag: "contexts", Summary: "List the calls of a context as they stand, or stood.", Example: "?status=failed",
			Query:   map[string]string{"cursor": "The calls after this one, such as 1.2."},
			Answers: api.OK("Records of calls.", api.List(api.Of[journal.Record]())),
		},
		"GET /v1/contexts/{context}/approvals": {
			ID: "getApprovals", Tag: "contexts", Summary: "List the decisions that wait for a person in a context and its delegates.", Answers: api.OK("Held calls, and lazy plans to release.", waitingSchema()),
		},
		"GET /v1/contexts/{context}/get": {
			ID: "getValue", Tag: "contexts", Summary: "Get the value of a reference, or of all kinds.", Example: "?ref=state.user",
			Query: map[string]string{"ref": "A path such as state.user, or an expression; all kinds unless it is given."}, Answers: api.OK("The value.", api.Any()),
		},
		"GET /v1/contexts/{context}/why": {
			ID: "explain", Tag: "contexts", Summary: "Explain where a value comes from.", Example: "?ref=state.user",
			Detail: "Each element of from is a message that the value is made of, with the call that wrote it and the values that the call read, and so on back.", Answers: api.OK("The value with its origin.", whySchema()),
		},
		"GET /v1/contexts/{context}/events": {
			ID: "follow", Tag: "contexts", Summary: "Follow a context by server-sent events.",
			Detail: "Events are message, call and run, with data as the lists have them, from the beginning or after the id in the header Last-Event-ID; model events, without an id, have the text that a model is writing.",
			Query:  map[string]string{"after": "The id of an event after which to begin."}, Answers: api.Events("Events without an end."),
		},
	}
}

func timelineOperations() map[string]api.Operation {
	return map[string]api.Operation{
		"GET /v1/contexts/{context}/graph": {
			ID: "getGraph", Tag: "contexts", Summary: "Get the data flow of the newest run: its calls, and which reads from which.", Query: map[string]string{"at": "The seq as of which the calls are shown."},
			Answers: api.OK("A graph for each tick.", api.Of[graphAnswer]()),
		},
		"GET /v1/contexts/{context}/ticks": {
			ID: "getTicks", Tag: "contexts", Summary: "List the ticks of all runs of a context, with their plans.", Answers: api.OK("Ticks.", api.List(api.Of[tickAnswer]())),
		},
		"GET /v1/contexts/{context}/steps": {
			ID: "getSteps", Tag: "contexts", Summary: "List the events of a context's journal, each with its seq.", Detail: "A page has 64 of them, or as many as limit says, up to 1,000.",
			Query: map[string]string{"after": "The next of the page before."}, Answers: api.OK("A page of steps.", api.Of[stepPage]()),
		},
		"GET /v1/contexts/{context}/kinds": {
			ID: "getKinds", Tag: "contexts", Summary: "List the kinds that have data, and the instances that hold it.", Answers: api.OK("Kinds.", api.List(api.Of[kindAnswer]())),
		},
		"GET /v1/contexts/{context}/downstream": {
			ID: "getDownstream", Tag: "contexts", Summary: "List the calls that run again in a fork if one is resumed from.", Example: "?call=1.2",
			Query: map[string]string{"call": "The number of a call, such as 1.2; it must be given."}, Answers: api.OK("The call itself, and those downstream of it.", api.Of[downstreamAnswer]()),
		},
		"GET /v1/contexts/{context}/prompt": {
			ID: "getPrompt", Tag: "contexts", Summary: "Get what a model was sent about a call or for a plan, and its answers where they are kept.", Example: "?call=1.2",
			Detail:  "A request that the log keeps, as the setting keep of its model says, is given as it was sent. Any other is computed, by the scripts and settings as they are now: its state says whether it is what was sent, and it has no recorded hash where the log has no request as sent.",
			Query:   map[string]string{"call": "The number of a call, such as 1.2.", "tick": "The number of the tick whose plan a model made; without call and tick it is the latest request."},
			Answers: api.OK("The request.", promptSchema()),
		},
		"GET /v1/contexts/{context}/children": {
			ID: "getChildren", Tag: "contexts", Summary: "List the contexts of a context's delegates, and its forks.", Answers: api.OK("Contexts.", api.List(api.Of[history.Summary]())),
		},
		"GET /v1/diff": {
			ID: "diff", Tag: "contexts", Summary: "Compare two contexts, or two points of one.", Example: "?a=order-7&a_at=3&b_at=12",
			Query: map[string]string{"a": "The context to compare; it must be given."}, Answers: api.OK("The paths whose values differ, the calls that stand otherwise, and the scripts that they ran with in another version.", api.List(changeSchema())),
		},
		"POST /v1/contexts/{context}/replay": {
			ID: "replay", Tag: "contexts", Summary: "Check that the newest run comes out as it is recorded.", Detail: "A function that planned it is asked again for each tick. No activity runs and nothing is written.",
			Body: api.Body[struct{}](), Answers: api.OK("The differences.", api.Of[replayAnswer]()),
		},
	}
}

func decisionOperations() map[string]api.Operation {
	decided := api.OK("The decision is in the log.", decidedSchema())
	return map[string]api.Operation{
		"POST /v1/contexts/{context}/messages": {
			ID: "append", Tag: "decisions", Summary: "Append messages: one, an array of them, or one a line.", Body: api.Schema{"type": []any{"object", "array"}}, Example: `{"type": "input", "receipt": "r-77"}`,
			Answers: api.OK("They are in the log.", api.Object(api.Schema{"context": api.Text(), "seq": api.Positive(), "messages": api.Positive()})),
		},
		"POST /v1/contexts/{context}/approve": {
			ID: "approvePlan", Tag: "decisions", Summary: "Release a lazy plan, perhaps with corrections or without some of its calls.",
			Detail: "The hash is that of the plan in the list of approvals: where another plan waits by then the request is refused. With preview nothing is decided, and effects says what would then wait, or read what is there.",
			Body:   api.Body[approvePlanBody]("hash"), Example: `{"hash": "4be1c0d9a277", "set": {"1.2.amount": 1}, "without": ["1.3"]}`, Answers: decided,
		},
		"POST /v1/contexts/{context}/reject": {
			ID: "rejectPlan", Tag: "decisions", Summary: "Reject a lazy plan: its planner is asked for another one.", Body: api.Body[rejectPlanBody]("hash", "reason"),
			Example: `{"hash": "4be1c0d9a277", "reason": "too dear"}`, Answers: decided,
		},
		"POST /v1/contexts/{context}/calls/{call}/approve": {
			ID: "approve", Tag: "decisions", Summary: "Approve a held call, perhaps with corrected arguments.", Body: api.Body[approveBody](), Example: `{"set": {"lines.0.amount": 5}}`, Answers: decided,
		},
		"POST /v1/contexts/{context}/calls/{call}/reject": {
			ID: "reject", Tag: "decisions", Summary: "Reject a held call, which then fails with the reason.", Body: api.Body[rejectBody]("reason"), Example: `{"reason": "no receipt"}`, Answers: decided,
		},
		"POST /v1/contexts/{context}/resume": {
			ID: "resume", Tag: "decisions", Summary: "Go on with a run: retry, skip or give results of calls, or run again from one in a fork.",
			Detail: "With more than wait and by it needs the role decide.", Body: api.Body[resumeRequest](), Example: `{"retry": ["1.2"], "wait": true}`,
			Answers: []api.Answer{
				{Status: http.StatusOK, About: "With wait: the run's outcome, whatever it is.", Schema: outcomeSchema()},
				{Status: http.StatusAccepted, About: "The run goes on.", Schema: api.Object(api.Schema{"context": api.Text(), "status?": api.Text()})},
			},
		},
		"POST /v1/contexts/{context}/fork": {
			ID: "fork", Tag: "decisions", Summary: "Make a context that shares the log up to a seq.", Body: api.Body[forkBody](), Example: `{"context": "what-if", "at": 12}`,
			Answers: api.OK("The fork.", api.Object(api.Schema{"context": api.Text(), "parent": api.Text(), "at": api.Schema{"type": "integer"}})),
		},
		"POST /v1/hooks/{hook}": {
			ID: "deliver", Tag: "decisions", Summary: "Deliver a request of another program to a hook.", Detail: "A hook that verifies requests wants a signature in place of a token.", Body: api.Any(), BodyType: "*/*",
			Answers: []api.Answer{
				{Status: http.StatusAccepted, About: "It is in the log.", Schema: contextSchema()},
				{Status: http.StatusOK, About: "The same delivery has come before.", Schema: contextSchema()},
			},
		},
	}
}

func projectOperations() map[string]api.Operation {
	graph := api.Of[history.Graph]()
	problems := api.List(api.Of[plan.Problem]())
	return map[string]api.Operation{
		"GET /v1/plans": {ID: "listPlans", Tag: "project", Summary: "List the plans' files.", Answers: api.OK("Plans.", api.List(api.Of[planFile]()))},
		"GET /v1/plans/{file...}": {
			ID: "getPlan", Tag: "project", Summary: "Describe a plan: the schemas of input and output, problems, and its graph.",
			Detail: "kind is calls, function or model: where its calls come from. The graph is null unless the calls stand in the file and have no errors.",
			Answers: api.OK("The plan.", api.Object(api.Schema{
				"file": api.Text(), "kind?": api.Text(), "mode?": api.Text(), "input": api.Any(), "output": api.Any(), "problems": problems, "graph": api.Nullable(graph),
			})),
		},
		"POST /v1/check": {
			ID: "check", Tag: "project", Summary: "Check a plan's file, calls that are given, or all plans of the project.",
			Detail: "Nothing runs and nothing is written. With an input, it is checked against the schema that the plan declares.",
			Body:   api.Body[checkBody](), Example: `{"plan": "plans/refund.lua"}`, Answers: api.OK("Problems; an empty list is good.", problems),
		},
		"GET /v1/tools": {ID: "listTools", Tag: "project", Summary: "List the tools, with their schemas and activities.", Answers: api.OK("Tools.", api.List(api.Of[toolAnswer]()))},
		"POST /v1/call": {
			ID: "try", Tag: "project", Summary: "Run one activity once, outside of the log.", Detail: "It needs the role decide where the setting approve holds calls for a person.",
			Body: api.Body[callBody]("call"), Example: `{"call": {"_tool": "lookup", "id": 7}, "context": {"state": {}}}`, Answers: api.OK("Its outcome, done or failed.", api.Of[callAnswer]()),
		},
		"GET /v1/scripts": {ID: "getScripts", Tag: "project", Summary: "Get the loaded generation, and why newer scripts do not load.", Answers: api.OK("The scripts.", scriptsSchema())},
		"GET /v1/code/{generation}/{path...}": {
			ID: "getCode", Tag: "project", Summary: "Get a script as it was when calls ran it.", Answers: api.OK("The script.", api.Of[scriptAnswer]()),
		},
	}
}

func serverOperations() map[string]api.Operation {
	text := func(kind, about string) []api.Answer {
		return []api.Answer{{Status: http.StatusOK, Type: kind, About: about}}
	}
	return map[string]api.Operation{
		"GET /healthz": {
			ID: "health", Tag: "server", Summary: "Say whether requests are taken and the log can be read.", Answers: api.OK("It is well; else the status is 503.", api.Object(api.Schema{"status": api.Schema{"const": "ok"}})),
		},
		"GET /metrics":        {ID: "metrics", Tag: "server", Summary: "Get metrics for Prometheus.", Answers: text("text/plain", "Metrics in the text format of Prometheus.")},
		"GET /openapi.json":   {ID: "openapi", Tag: "server", Summary: "Get this description as an OpenAPI document.", Answers: api.OK("An OpenAPI 3.1 document.", api.Schema{"type": "object"})},
		"GET /docs":           {ID: "docs", Tag: "server", Summary: "Read this description as a page.", Answers: text("text/html", "A page without scripts.")},
		"GET /docs/style.css": {ID: "docsStyle", Tag: "server", Summary: "Get the style of the page.", Answers: text("text/css", "A style sheet.")},
	}
}
