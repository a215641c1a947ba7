package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/ops"
	"obelus/store"
)

// projectOperations are those about the project's plans, tools and scripts. One tries activities.
func projectOperations() []operation {
	return tagged("project",
		answering(operation{ID: "listPlans", Route: "GET /v1/plans", Summary: "List the plans' files.", Answer: "Plans."}, (*Server).listPlans),
		answering(operation{
			ID: "getPlan", Route: "GET /v1/plans/{file...}", Summary: "Describe a plan: the schemas of input and output, problems, and its graph.", Answer: "The plan.", Once: true,
			Detail: "The file refund.lua is plans/refund.lua. kind is calls, function or model: where its calls come from. The graph is null unless the calls stand in the file and have no errors.",
		}, (*Server).getPlan),
		answering(operation{
			ID: "check", Route: "POST /v1/check", Role: host.MayRead, Summary: "Check a plan's file, calls that are given, or all plans of the project.",
			Example: `{"plan": "plans/refund.lua"}`, Answer: "Problems; an empty list is good.",
			Detail: "Nothing runs and nothing is written. With an input, it is checked against the schema that the plan declares.",
		}, (*Server).postCheck),
		answering(operation{ID: "listTools", Route: "GET /v1/tools", Summary: "List the tools, with their schemas and activities.", Answer: "Tools."}, (*Server).listTools),
		answering(operation{
			ID: "try", Route: "POST /v1/call", Summary: "Run one activity once, outside of the log.",
			Example: `{"call": {"_tool": "lookup", "id": 7}, "context": {"state": {}}}`, Answer: "Its outcome, done or failed.",
			Detail: "A call without a value for an expression is refused (422). It needs the role decide where the setting approve holds calls for a person.",
		}, (*Server).postCall),
		answering(operation{
			ID: "getScripts", Route: "GET /v1/scripts", Summary: "Get the loaded generation, and why newer scripts do not load.", Answer: "The scripts.", Once: true,
		}, (*Server).getScripts),
		answering(operation{ID: "getCode", Route: "GET /v1/code/{generation}/{path...}", Summary: "Get a script as it was when calls ran it, by the digest that records of calls have as generation.", Answer: "The script."}, (*Server).getCode),
	)
}

// planFile is a plan of the project's list.
type planFile struct {
	File string `json:"file"`
}

func (s *Server) listPlans(context.Context, noIn) (l list[planFile], _ error) {
	for _, file := range s.config.Host.Generation().PlanFiles() {
		l.add(planFile{File: file})
	}
	return l, nil
}

// planAnswer describes a plan.
type planAnswer struct {
	File     string         `json:"file"`
	Graph    *history.Graph `json:"graph"` // null unless the calls are known and without errors
	Input    any            `json:"input"` // the schema of its input, or null
	Kind     string         `json:"kind,omitempty"`
	Mode     string         `json:"mode,omitempty"`
	Output   any            `json:"output"` // the schema of its output, or null
	Problems []plan.Problem `json:"problems"`
}

// planFileIn names the file of a plan.
type planFileIn struct {
	File string `path:"file" example:"refund.lua" jsonschema:"The file of a plan, below plans/."`
}

func (s *Server) getPlan(ctx context.Context, in planFileIn) (answer planAnswer, err error) {
	file := "plans/" + in.File
	if ext := path.Ext(file); !isPlanName(file) || ext != ".lua" && ext != ".json" {
		return answer, &problem{status: http.StatusNotFound, code: "no-plan", message: "there is no plan " + quoted(file)}
	}
	leave, err := s.trial()
	if err != nil {
		return answer, err
	}
	defer leave()
	checked, err := s.runs.CheckFile(ctx, file, engine.Start{})
	if err != nil {
		return answer, missingPlan(err)
	}
	return describePlan(file, checked), nil
}

// describePlan returns the answer about a plan.
func describePlan(file string, c ops.Checked) planAnswer {
	answer := planAnswer{File: file, Problems: c.Problems}
	if c.Request != nil {
		answer.Kind, answer.Mode, answer.Output = kindOf(c.Request), cmp.Or(c.Request.Mode, plan.ModeEager), c.Request.Schema
		for _, m := range c.Request.Context {
			if m.Kind == "input" && m.Schema != nil {
				answer.Input = m.Schema
			}
		}
	}
	if c.Plan != nil && c.Request.Planner == nil {
		graph := history.GraphOf(c.Plan, nil, 0)
		answer.Graph = &graph
	}
	return answer
}

// kindOf says how a plan's calls are known: they are given, or a function or a model gives them.
func kindOf(request *plan.Request) string {
	switch {
	case request.IsModelPlanned():
		return "model"
	case request.Planner != nil:
		return "function"
	}
	return "calls"
}

// checkIn says what to check.
type checkIn struct {
	Plan    string          `json:"plan" jsonschema:"A file below plans/; all of them, and the project, without plan and calls."`
	Calls   json.RawMessage `json:"calls" jsonschema:"A list of calls, in place of a file."`
	Output  json.RawMessage `json:"output" jsonschema:"The output of such a plan."`
	Context string          `json:"context" jsonschema:"The context whose values count; an empty one unless it is given."`
	Input   json.RawMessage `json:"input" jsonschema:"An object that a run would be given as input, to be checked too."`
	Approve string          `json:"approve" jsonschema:"The calls that a run would hold for a person, to be checked too."`
}

// start returns how a run would begin.
func (b *checkIn) start() (start engine.Start, err error) {
	if b.Approve != "" {
		if start.Approve, err = plan.ParsePolicy(b.Approve); err != nil {
			return start, wrong("approve %s: %s", quoted(b.Approve), err)
		}
	}
	like := runIn{Input: b.Input}
	start.Context, start.Input.Set = b.Context, len(b.Input) > 0
	return start, like.readInput(&start)
}

func (s *Server) postCheck(ctx context.Context, in checkIn) (l list[plan.Problem], err error) {
	if in.Plan != "" && in.Calls != nil {
		return l, wrong("plan and calls: give one of them")
	}
	if len(in.Output) > 0 && in.Calls == nil {
		return l, wrong("output goes with calls: a plan's file has its own")
	}
	if len(in.Input) > 0 && in.Plan == "" && in.Calls == nil {
		return l, wrong("input goes with a plan or calls")
	}
	if in.Context != "" {
		if err := s.checkContext(ctx, in.Context); err != nil {
			return l, err
		}
	}
	leave, err := s.trial()
	if err != nil {
		return l, err
	}
	defer leave()
	problems, err := s.problemsOf(ctx, &in)
	for _, p := range problems {
		l.add(p)
	}
	return l, err
}

// problemsOf returns the problems of a plan, or of the project and all its plans.
func (s *Server) problemsOf(ctx context.Context, asked *checkIn) ([]plan.Problem, error) {
	g := s.config.Host.Generation()
	start, err := asked.start()
	if err != nil {
		return nil, err
	}
	switch {
	case asked.Calls != nil:
		if start.Request, err = asked.request(); err != nil {
			return nil, err
		}
		checked, err := s.runs.CheckPlan(ctx, start, g.Registry())
		return checked.Problems, err
	case asked.Plan != "":
		if !isPlanName(asked.Plan) {
			return nil, errNoPlanName(asked.Plan)
		}
		checked, err := s.runs.CheckFile(ctx, asked.Plan, start)
		return checked.Problems, missingPlan(err)
	}
	all := g.Lint()
	for _, file := range g.PlanFiles() {
		checked, err := s.runs.CheckFile(ctx, file, start)
		if err != nil {
			return nil, missingPlan(err)
		}
		for _, p := range checked.Problems {
			if !slices.Contains(all, p) { // problems of settings and tools are found with every plan
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// request returns the plan that the body has.
func (b *checkIn) request() (*plan.Request, error) {
	calls, err := store.DecodeJSON(b.Calls)
	if err != nil {
		return nil, wrong("calls: %s", err)
	}
	if call, ok := calls.(map[string]any); ok && call["_tool"] != nil {
		calls = []any{call}
	}
	all, ok := calls.([]any)
	if !ok {
		return nil, wrong("calls must be an array of calls, not %s", store.Describe(calls))
	}
	request := &plan.Request{}
	for i, v := range all {
		call, ok := v.(map[string]any)
		if !ok {
			return nil, wrong("calls[%d] must be an object, not %s", i, store.Describe(v))
		}
		if call["type"] != nil && call["_tool"] == nil {
			m, err := store.ParseMessage(call)
			if err != nil {
				return nil, wrong("calls[%d]: %s", i, err)
			}
			request.Context = append(request.Context, m)
			continue
		}
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	if len(b.Output) > 0 {
		output, err := store.DecodeJSON(b.Output)
		if err != nil {
			return nil, wrong("output: %s", err)
		}
		request.Output = store.Some(output)
	}
	return request, nil
}

// toolAnswer describes a tool.
type toolAnswer struct {
	Activity *activityAnswer `json:"activity"` // null if a model or a delegate answers its calls
	File     string          `json:"file,omitempty"`
	Line     int             `json:"line,omitempty"`
	Name     string          `json:"name"`
	Schema   any             `json:"schema"` // of its calls
}

// activityAnswer describes the activity of a tool's name.
type activityAnswer struct {
	Idempotent bool    `json:"idempotent"`
	Retries    int     `json:"retries"`
	Script     string  `json:"script,omitempty"` // empty for Go
	SHA256     string  `json:"sha256,omitempty"`
	Timeout    float64 `json:"timeout_s,omitempty"`
}

func (s *Server) listTools(_ context.Context, _ noIn) (l list[toolAnswer], _ error) {
	registry := s.config.Host.Generation().Registry()
	for _, name := range registry.Names() {
		t := toolAnswer{Name: name, Schema: map[string]any{}}
		if tool, ok := registry.Tool(name); ok {
			t.Schema, t.File, t.Line = tool.Schema, tool.File, tool.Line
		}
		if a := registry.Activities[name]; a != nil {
			t.Activity = &activityAnswer{Idempotent: !a.NotIdempotent, Retries: a.Retries, Script: a.Script, SHA256: a.SHA256, Timeout: a.Timeout.Seconds()}
		}
		l.add(t)
	}
	return l, nil
}

// tryIn is a call by itself.
type tryIn struct {
	Call    map[string]any `json:"call" required:"the call: {\"call\": {\"_tool\": \"lookup\", \"id\": 7}}" jsonschema:"The call as a plan has it, with its _tool. Its expressions refer to the context that is given."`
	Context map[string]any `json:"context" jsonschema:"The values, by kind, that its expressions read and that its scopes grant it, all without scopes."`
}

// callAnswer is the outcome of an activity that was tried.
type callAnswer struct {
	Error  any    `json:"error"` // null, or an object with code and message
	Result any    `json:"result"`
	Status string `json:"status"` // done or failed
}

// postCall runs an activity once, outside of the log. That passes by the project's policy, so where
// calls are held for a person it needs the role decide.
func (s *Server) postCall(ctx context.Context, in tryIn) (answer callAnswer, err error) {
	g := s.config.Host.Generation()
	if policy := g.Settings().Approve; policy.String() != "never" {
		if err := allow(ctx, host.MayDecide, "a call by itself, where the project holds calls for a person,"); err != nil {
			return answer, err
		}
	}
	leave, err := s.trial()
	if err != nil {
		return answer, err
	}
	defer leave()
	result, err := engine.Try(ctx, g.Registry(), in.Call, in.Context)
	if is[*plan.PlanError](err) {
		return answer, err
	}
	if ended := ctx.Err(); ended != nil { // it has cut the activity off
		return answer, ended
	}
	if err == nil {
		answer.Result, err = resultOf(result)
	}
	if err != nil {
		return callAnswer{Status: "failed", Error: failureBody(err)}, nil
	}
	answer.Status = "done"
	return answer, nil
}

// resultOf returns the value of a result, or the message that it is.
func resultOf(result plan.Result) (any, error) {
	if result.Message != nil {
		return store.FromGo(result.Message, "result")
	}
	return store.FromGo(result.Value, "result")
}

// failureBody describes the failure of an activity, with all that it says.
func failureBody(err error) map[string]any {
	body := map[string]any{}
	if failure, ok := errors.AsType[*plan.Failure](err); ok {
		if fields, wrong := store.FromGo(failure.Fields, "error"); wrong == nil {
			body, _ = fields.(map[string]any)
		}
	}
	if _, ok := body["message"].(string); !ok {
		body["message"] = err.Error()
	}
	if _, ok := body["code"].(string); !ok {
		body["code"] = "failed"
	}
	return body
}

// trial takes a place for work that is no run: a check, a replay, or an activity by itself. As many
// go on at once as runs.
func (s *Server) trial() (leave func(), err error) {
	if s.supervisor.IsShutDown() {
		return nil, errStopping
	}
	if !s.trials.TryAcquire(1) {
		return nil, errFull
	}
	return func() { s.trials.Release(1) }, nil
}

// scriptAnswer is a script as it was when calls ran it.
type scriptAnswer struct {
	Generation string `json:"generation"`
	Path       string `json:"path"`
	SHA256     string `json:"sha256"`
	Source     string `json:"source"`
}

// scriptIn names a script of a generation.
type scriptIn struct {
	Generation string `path:"generation" example:"GENERATION" jsonschema:"The digest of a generation, as records of calls have it."`
	Path       string `path:"path" example:"activities/billing.lua" jsonschema:"The path of a script below the project's folder."`
}

// getCode answers with a script of a generation, as calls have its digest: one that the log keeps
// since calls ran it, or the one that is loaded.
func (s *Server) getCode(ctx context.Context, in scriptIn) (answer scriptAnswer, err error) {
	var scripts []store.Script
	if g := s.config.Host.Generation(); g.Digest == in.Generation {
		scripts = g.Files()
	} else if code, err := s.log.Code(ctx, in.Generation); err == nil {
		scripts = code.Scripts
	} else if errors.Is(err, store.ErrNoCode) {
		return answer, &problem{status: http.StatusNotFound, code: "no-code", message: fmt.Sprintf("no scripts of generation %s are kept: a call's record has it as generation", quoted(in.Generation))}
	} else {
		return answer, err
	}
	for _, script := range scripts {
		if script.Path == in.Path {
			return scriptAnswer{Generation: in.Generation, Path: script.Path, SHA256: script.SHA256, Source: strings.ToValidUTF8(string(script.Source), "\uFFFD")}, nil
		}
	}
	return answer, &problem{status: http.StatusNotFound, code: "no-code", message: fmt.Sprintf("generation %s has no script %s", in.Generation, quoted(in.Path))}
}
