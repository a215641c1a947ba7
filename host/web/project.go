package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// project answers requests about the project's plans, tools and scripts, and tries activities.
type project struct{ *Server }

// planFile is a plan of the project's list.
type planFile struct {
	File string `json:"file"`
}

func (s project) listPlans(w http.ResponseWriter, _ *http.Request) error {
	text, err := listOf(s.config.Host.Generation().PlanFiles(), func(file string) (any, error) { return planFile{File: file}, nil })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, text)
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

func (s project) getPlan(w http.ResponseWriter, r *http.Request) error {
	file := "plans/" + r.PathValue("file")
	if ext := path.Ext(file); !isPlanName(file) || ext != ".lua" && ext != ".json" {
		return &problem{status: http.StatusNotFound, code: "no-plan", message: "there is no plan " + quoted(file)}
	}
	leave, err := s.trial()
	if err != nil {
		return err
	}
	defer leave()
	checked, err := s.checkFile(r, file, engine.Start{})
	if err != nil {
		return err
	}
	return s.respond(w, r, func(context.Context) (any, error) { return checked.describe(file), nil })
}

// describe returns the answer about a plan.
func (c *checkedPlan) describe(file string) planAnswer {
	answer := planAnswer{File: file, Problems: c.problems}
	if c.request != nil {
		answer.Kind, answer.Mode, answer.Output = kindOf(c.request), cmp.Or(c.request.Mode, plan.ModeEager), c.request.Schema
		for _, m := range c.request.Context {
			if m.Kind == "input" && m.Schema != nil {
				answer.Input = m.Schema
			}
		}
	}
	if c.plan != nil && c.request.Planner == nil {
		graph := history.GraphOf(c.plan, nil, 0)
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

// checkedPlan is a plan with its problems. The request is nil if the file can't be read as a plan,
// and the plan is nil if it has errors.
type checkedPlan struct {
	request  *plan.Request
	plan     *plan.Plan
	problems []plan.Problem
}

// checkFile checks a plan's file as a run would begin with it, whose context may be an empty one,
// without a name.
func (s project) checkFile(r *http.Request, file string, start engine.Start) (checkedPlan, error) {
	request, registry, err := s.config.Host.Plan(file)
	if errors.Is(err, fs.ErrNotExist) {
		return checkedPlan{}, &problem{status: http.StatusNotFound, code: "no-plan", message: err.Error()}
	}
	if problems, ok := host.Problems(err); ok {
		return checkedPlan{problems: problems}, nil
	}
	if err != nil {
		return checkedPlan{}, err
	}
	start.Request = request
	return s.checkRequest(r, start, registry)
}

// checkRequest checks a plan as a run would begin with it.
func (s project) checkRequest(r *http.Request, start engine.Start, registry *plan.Registry) (checkedPlan, error) {
	request, runner := start.Request, s.config.Host.Generation().Settings().Runner(s.log, registry)
	compiled, err := runner.Check(r.Context(), start)
	checked := checkedPlan{request: request, problems: []plan.Problem{}}
	var refused *plan.PlanError
	wrongly := func(file, code string) []plan.Problem {
		return []plan.Problem{{File: file, Severity: plan.SeverityError, Code: code, Message: err.Error()}}
	}
	switch {
	case errors.As(err, &refused):
		checked.problems = refused.Problems
	case is[*plan.PolicyError](err) && len(start.Approve.Tools) > 0: // not the settings' own policy
		checked.problems = wrongly("", plan.CodeUnknownTool)
	case is[*plan.PolicyError](err):
		checked.problems = wrongly(host.SettingsFile, plan.CodeUnknownTool)
	case is[*plan.MessageError](err):
		checked.problems = wrongly(request.Name, plan.CodeSchema)
	case err != nil:
		return checked, err
	default:
		checked.plan, checked.problems = compiled, append(checked.problems, compiled.Warnings...)
	}
	return checked, nil
}

// checkBody is the body of POST /v1/check.
type checkBody struct {
	Plan    string          `json:"plan" jsonschema:"A file below plans/; all of them, and the project, without plan and calls."`
	Calls   json.RawMessage `json:"calls" jsonschema:"A list of calls, in place of a file."`
	Output  json.RawMessage `json:"output" jsonschema:"The output of such a plan."`
	Context string          `json:"context" jsonschema:"The context whose values count; an empty one unless it is given."`
	Input   json.RawMessage `json:"input" jsonschema:"An object that a run would be given as input, to be checked too."`
	Approve string          `json:"approve" jsonschema:"The calls that a run would hold for a person, to be checked too."`
}

// start returns how a run would begin.
func (b *checkBody) start() (start engine.Start, err error) {
	if b.Approve != "" {
		if start.Approve, err = plan.ParsePolicy(b.Approve); err != nil {
			return start, wrong("approve %s: %s", quoted(b.Approve), err)
		}
	}
	like := runRequest{Input: b.Input}
	start.Context, start.Input.Set = b.Context, len(b.Input) > 0
	return start, like.readInput(&start)
}

func (s project) postCheck(w http.ResponseWriter, r *http.Request) error {
	var asked checkBody
	if err := read(r, &asked); err != nil {
		return err
	}
	if asked.Plan != "" && len(asked.Calls) > 0 {
		return wrong("plan and calls: give one of them")
	}
	if len(asked.Output) > 0 && len(asked.Calls) == 0 {
		return wrong("output goes with calls: a plan's file has its own")
	}
	if len(asked.Input) > 0 && asked.Plan == "" && len(asked.Calls) == 0 {
		return wrong("input goes with a plan or calls")
	}
	if asked.Context != "" {
		if _, err := s.log.Head(r.Context(), asked.Context); errors.Is(err, store.ErrNoContext) {
			return &problem{status: http.StatusNotFound, code: "no-context", message: "there is no context " + asked.Context}
		} else if err != nil {
			return err
		}
	}
	leave, err := s.trial()
	if err != nil {
		return err
	}
	defer leave()
	problems, err := s.problemsOf(r, &asked)
	if err != nil {
		return err
	}
	return s.respondText(w, r, func(context.Context) ([]byte, error) {
		return listOf(problems, func(p plan.Problem) (any, error) { return p, nil })
	})
}

// problemsOf returns the problems of a plan, or of the project and all its plans.
func (s project) problemsOf(r *http.Request, asked *checkBody) ([]plan.Problem, error) {
	g := s.config.Host.Generation()
	start, err := asked.start()
	if err != nil {
		return nil, err
	}
	switch {
	case len(asked.Calls) > 0:
		if start.Request, err = asked.request(); err != nil {
			return nil, err
		}
		checked, err := s.checkRequest(r, start, g.Registry())
		return checked.problems, err
	case asked.Plan != "":
		if !isPlanName(asked.Plan) {
			return nil, errNoPlanName(asked.Plan)
		}
		checked, err := s.checkFile(r, asked.Plan, start)
		return checked.problems, err
	}
	all := g.Lint()
	for _, file := range g.PlanFiles() {
		checked, err := s.checkFile(r, file, start)
		if err != nil {
			return nil, err
		}
		for _, p := range checked.problems {
			if !slices.Contains(all, p) { // problems of settings and tools are found with every plan
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// request returns the plan that the body has.
func (b *checkBody) request() (*plan.Request, error) {
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

func (s project) listTools(w http.ResponseWriter, r *http.Request) error {
	registry := s.config.Host.Generation().Registry()
	return s.respondText(w, r, func(context.Context) ([]byte, error) {
		return listOf(registry.Names(), func(name string) (any, error) {
			t := toolAnswer{Name: name, Schema: map[string]any{}}
			if tool, ok := registry.Tool(name); ok {
				t.Schema, t.File, t.Line = tool.Schema, tool.File, tool.Line
			}
			if a := registry.Activities[name]; a != nil {
				t.Activity = &activityAnswer{Idempotent: !a.NotIdempotent, Retries: a.Retries, Script: a.Script, SHA256: a.SHA256, Timeout: a.Timeout.Seconds()}
			}
			return t, nil
		})
	})
}

// callBody is the body of POST /v1/call.
type callBody struct {
	Call    json.RawMessage `json:"call" jsonschema:"The call as a plan has it, with its _tool. Its expressions refer to the context that is given."`
	Context json.RawMessage `json:"context" jsonschema:"The values, by kind, that its expressions read and that its scopes grant it, all without scopes."`
}

// callAnswer is the outcome of an activity that was tried.
type callAnswer struct {
	Error  any    `json:"error"` // null, or an object with code and message
	Result any    `json:"result"`
	Status string `json:"status"` // done or failed
}

// postCall runs an activity once, outside of the log. That passes by the project's policy, so where
// calls are held for a person it needs the role decide.
func (s project) postCall(w http.ResponseWriter, r *http.Request) error {
	g := s.config.Host.Generation()
	if policy := g.Settings().Approve; policy.String() != "never" {
		if err := allow(r, host.MayDecide, "a call by itself, where the project holds calls for a person,"); err != nil {
			return err
		}
	}
	var asked callBody
	if err := read(r, &asked); err != nil {
		return err
	}
	call, err := readByName("call", "parameters by name", asked.Call)
	if err != nil {
		return err
	}
	if call == nil {
		return wrong(`the call is missing: {"call": {"_tool": "lookup", "id": 7}}`)
	}
	kinds, err := readByName("context", "values by kind", asked.Context)
	if err != nil {
		return err
	}
	leave, err := s.trial()
	if err != nil {
		return err
	}
	defer leave()
	result, err := engine.Try(r.Context(), g.Registry(), call, kinds)
	if is[*plan.PlanError](err) {
		return err
	}
	if ended := r.Context().Err(); ended != nil { // it has cut the activity off
		return ended
	}
	answer := callAnswer{Status: "done"}
	if err != nil {
		answer = callAnswer{Status: "failed", Error: failureBody(err)}
	} else if answer.Result, err = resultOf(result); err != nil {
		answer = callAnswer{Status: "failed", Error: failureBody(err)}
	}
	return s.respond(w, r, func(context.Context) (any, error) { return answer, nil })
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

// getCode answers with a script of a generation, as calls have its digest: one that the log keeps
// since calls ran it, or the one that is loaded.
func (s project) getCode(w http.ResponseWriter, r *http.Request) error {
	digest, name := r.PathValue("generation"), r.PathValue("path")
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		var scripts []store.Script
		if g := s.config.Host.Generation(); g.Digest == digest {
			scripts = g.Files()
		} else if code, err := s.log.Code(ctx, digest); err == nil {
			scripts = code.Scripts
		} else if errors.Is(err, store.ErrNoCode) {
			return nil, &problem{status: http.StatusNotFound, code: "no-code", message: fmt.Sprintf("no scripts of generation %s are kept: a call's record has it as generation", quoted(digest))}
		} else {
			return nil, err
		}
		for _, script := range scripts {
			if script.Path == name {
				return scriptAnswer{Generation: digest, Path: script.Path, SHA256: script.SHA256, Source: strings.ToValidUTF8(string(script.Source), "\uFFFD")}, nil
			}
		}
		return nil, &problem{status: http.StatusNotFound, code: "no-code", message: fmt.Sprintf("generation %s has no script %s", digest, quoted(name))}
	})
}
