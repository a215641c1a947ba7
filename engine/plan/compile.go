package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// Plan is a list of calls, parsed, checked and wired. A Plan that exists is
// valid: its tools are known, its expressions are good, and there is no cycle.
// It is immutable.
type Plan struct {
	Calls []*Call
	// Set where the plan is compiled for display, by [Compile] or [obelus/engine.Runner.Check].
	Warnings []Problem

	Output *expr.Template // the final output; nil without one
	Schema *schema.Schema // of the final output; nil accepts all
	Graph  *graph

	groups [][]int // latent calls that one request answers, see [Plan.Group]
}

// Empty returns a plan without calls.
func Empty() *Plan { return &Plan{Graph: &graph{Writers: map[string]*WriterIndex{}}} }

// Exists reports whether a path has a value in an instance when the plan's tick begins.
type Exists func(path store.Path, instance string) (bool, error)

// NothingExists is a context that is empty.
func NothingExists(store.Path, string) (bool, error) { return false, nil }

// EverythingExists is the [Exists] of a context that is not known: no call depends on one that
// stands after it.
func EverythingExists(store.Path, string) (bool, error) { return true, nil }

// Compile normalizes a request ([Request.Normalize]: its Go values become JSON) and makes a plan of
// its calls, with warnings. Its error is a [*PlanError] with all faults at once, warnings after the
// errors.
func Compile(request *Request, registry *Registry, exists Exists) (*Plan, error) {
	request, err := request.Normalize()
	if err != nil {
		return nil, err
	}
	return CompileForDisplay(request, registry, exists)
}

// CompileForDisplay is [Compile] of a request that [Request.Normalize] has returned.
func CompileForDisplay(request *Request, registry *Registry, exists Exists) (*Plan, error) {
	c := &planCompiler{file: request.Name}
	p, err := c.compile(request, registry, exists)
	refused, isRefused := errors.AsType[*PlanError](err)
	if err != nil && (!isRefused || p == nil) {
		return nil, err
	}
	warnings, failed := c.warnings(p, request, exists)
	if failed != nil {
		return nil, failed
	}
	for _, problem := range request.SchemaProblems(registry) {
		if problem.Severity == SeverityError {
			if !isRefused {
				refused, isRefused = &PlanError{}, true
			}
			refused.Problems = append(refused.Problems, problem)
		} else {
			warnings = append(warnings, problem)
		}
	}
	if isRefused {
		return nil, &PlanError{append(refused.Problems, warnings...)}
	}
	p.Warnings = warnings
	return p, nil
}

// CompileRequest makes a plan, to be run, of a request that [Request.Normalize] has returned. It
// looks for no warnings: they cost more than all else, and are of no use where a plan runs.
func CompileRequest(request *Request, registry *Registry, exists Exists) (*Plan, error) {
	if request.kept != nil {
		return compileKept(request, registry, exists)
	}
	p, err := (&planCompiler{file: request.Name}).compile(request, registry, exists)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// CompileAccepted is [CompileRequest] of calls that were accepted once, to show them. Where today's
// tools, delegates and models refuse some of them, it returns the plan as far as it is understood,
// beside the error.
func CompileAccepted(request *Request, registry *Registry, exists Exists) (*Plan, error) {
	p, err := (&planCompiler{file: request.Name}).compile(request, registry, exists)
	if p == nil || slices.ContainsFunc(p.Calls, func(call *Call) bool { return call.Definition == nil }) { // a call is not even one
		return nil, err
	}
	if err != nil {
		p.groupLatent()
	}
	return p, err
}

// compile returns the plan also where it is refused, as far as it was understood. The request is
// normalized.
func (c *planCompiler) compile(request *Request, registry *Registry, exists Exists) (*Plan, error) {
	registry = c.tools(request, registry)
	c.registry = registry
	p := &Plan{}
	for i, src := range request.Calls {
		call, errs := parseCall(src, i+1, registry)
		call.Captured = request.Name == Anonymous
		for _, err := range errs {
			c.call(call, err)
		}
		p.Calls = append(p.Calls, call)
	}
	c.strict = request.IsModelPlanned() && !slices.ContainsFunc(p.Calls, func(call *Call) bool { return call.accepted })
	c.line = request.OutputLine
	c.output(p, request, registry)
	c.planning(request, registry)
	c.delegates(p, registry)
	g, err := newGraph(p.Calls, exists)
	if errors.Is(err, errTooWide) {
		c.request(0, err)
		return nil, &PlanError{c.problems}
	}
	if err != nil {
		return nil, err
	}
	p.Graph = g
	c.sources = newSources(p, request, exists)
	if planning, ok := request.Planner.(*Planning); ok {
		c.guard(p, request, planning)
	}
	// Its writes may make a circle.
	if c.unsure = slices.ContainsFunc(p.Calls, (*Call).mayWriteAnywhere); !c.unsure {
		for _, cycle := range g.cycles() {
			c.circular = true
			c.call(p.Calls[cycle[0].To], &Fault{CodeCycle, errors.New(g.describeCycle(cycle))})
		}
		if !c.circular {
			c.checker = newTypeChecker(p, request, c.sources)
		}
		if len(c.problems) == 0 || c.strict {
			if err := c.checkTypes(p, request); err != nil {
				return nil, err
			}
		}
	}
	if c.strict {
		if err := c.tell(p, request, exists); err != nil {
			return nil, err
		}
	}
	if len(c.problems) > 0 {
		return p, &PlanError{slices.Concat(c.problems, p.Warnings)}
	}
	p.groupLatent()
	return p, nil
}

// planCompiler collects the faults of a plan.
type planCompiler struct {
	file     string
	line     int // of the output
	registry *Registry
	sources  *sources        // of the plan's references
	strict   bool            // a model has just made the plan: what can only be a mistake is an error
	checked  map[string]bool // delegates that have been checked, or are being checked
	warned   map[Problem]bool
	hints    int          // that were looked for
	circular bool         // calls wait for each other, so that none comes first
	unsure   bool         // the writes of a call are unknown
	checker  *typeChecker // nil where no type is known, or calls wait for each other
	problems []Problem
}

func (c *planCompiler) call(call *Call, err error) {
	c.problems = append(c.problems, c.problem(call, SeverityError, err))
}

func (c *planCompiler) problem(call *Call, severity string, err error) Problem {
	p := Problem{File: c.file, Line: call.Line, Call: call.Written, Tool: call.Tool, Severity: severity, Code: CodeSchema, Message: err.Error()}
	var f *Fault
	if errors.As(err, &f) {
		p.Code = f.Code
	}
	return p
}

// outputProblem returns a problem of the final output, whose message names its place.
func (c *planCompiler) outputProblem(severity, code, message string) Problem {
	return Problem{File: c.file, Line: c.line, Severity: severity, Code: code, Message: message}
}

// tools adds the definitions that activities know of themselves, and those that the request brings,
// beside its calls or as messages.
func (c *planCompiler) tools(request *Request, registry *Registry) *Registry {
	brought := map[string]*Tool{}
	add := func(name string, schema any, isBrought bool) {
		tool, err := NewTool(name, schema, registry.Schemas...)
		if err == nil {
			err = registry.CheckTool(tool)
		}
		if err == nil && isBrought {
			err = tool.CheckBrought()
		}
		if err != nil {
			c.request(0, err)
			return
		}
		tool.brought = isBrought
		brought[name] = tool
	}
	for name, activity := range registry.Activities {
		if _, registered := registry.Tools[name]; registered || activity == nil {
			continue
		}
		if own, ok := activity.Activity.(Described); ok {
			if schema, err := own.Tool(); err == nil { // else the activity is refused
				add(name, schema, false)
			}
		}
	}
	for _, m := range request.Context {
		if m.Type == store.TypeTool {
			definitions, _ := m.Data.Value.(map[string]any)
			for _, name := range jsonvalue.SortedKeys(definitions) {
				add(name, definitions[name], true)
			}
		}
	}
	for _, name := range jsonvalue.SortedKeys(request.Tools) {
		add(name, request.Tools[name], true)
	}
	return registry.With(brought)
}

// WithRequest returns a registry with the tools that a request brings; invalid ones are left out.
func (r *Registry) WithRequest(request *Request) *Registry {
	return (&planCompiler{}).tools(request, r)
}

// WithDefinitions returns a registry with the tools that definitions give by name; invalid ones are
// left out.
func (r *Registry) WithDefinitions(definitions map[string]any) *Registry {
	return (&planCompiler{}).tools(&Request{Tools: definitions}, r)
}

func (c *planCompiler) output(p *Plan, request *Request, registry *Registry) {
	refuse := func(code string, err error) {
		c.problems = append(c.problems, c.outputProblem(SeverityError, code, err.Error()))
	}
	if request.Output.Set {
		t, err := expr.ParseTemplate(request.Output.Value, "output")
		if err != nil {
			refuse(CodeExpression, err)
			return
		}
		p.Output = t
	}
	if request.Schema != nil {
		schema, err := schema.New(request.Schema, registry.Schemas...)
		if err != nil {
			refuse(CodeSchema, fmt.Errorf("schema: %w", err))
			return
		}
		p.Schema = schema
	}
}

// guard refuses the calls and the output of a plan that a model made, where they reach beyond the
// request's offer and scopes: the prompt says the same, but data in it may say otherwise.
func (c *planCompiler) guard(p *Plan, request *Request, planning *Planning) {
	written := map[store.Path]bool{}
	for _, call := range p.Calls {
		for _, path := range call.Output.Writes() {
			written[path] = true
		}
	}
	granted := func(r store.Path) bool {
		above := func(path store.Path) bool { return path.Contains(r) }
		return request.Scopes == nil || slices.ContainsFunc(request.Scopes, above) || slices.ContainsFunc(slices.Collect(maps.Keys(written)), above)
	}
	for i, call := range p.Calls {
		if err := call.CheckAnswer(); err != nil && call.readsNothing() {
			c.call(call, err)
		}
		if !call.unclear && !planning.offers(call.Definition) {
			c.call(call, Faultf(CodeUnknownTool, "tool %q is not offered%s", call.Tool, spell.DidYouMean(call.Tool, planning.Offer)))
		}
		given, _ := request.Calls[i].Call.(map[string]any)
		for _, name := range slices.Concat([]string{"_delegate", "_model"}, attemptProperties, scheduleProperties) {
			if _, ok := given[name]; ok && call.Definition.meta[name] == nil {
				c.call(call, Faultf(CodeSchema, "%s: the tool does not declare it, so that a plan of a model can't give it", name))
			}
		}
		reads := call.Refs
		if _, ok := given["_scopes"]; ok {
			reads = slices.Concat(reads, call.ScopePaths)
		}
		for _, r := range reads {
			if !granted(r) {
				c.call(call, Faultf(CodeScope, "it reads %s, which the scopes of the request do not grant", r))
			}
		}
	}
	if p.Output == nil {
		return
	}
	for _, r := range p.Output.Reads() {
		if !granted(r) {
			c.problems = append(c.problems, c.outputProblem(SeverityError, CodeScope, fmt.Sprintf("output: it reads %s, which the scopes of the request do not grant", r)))
		}
	}
}

// planning checks that there is a model where one is to plan.
func (c *planCompiler) planning(request *Request, registry *Registry) {
	if planning, ok := request.Planner.(*Planning); ok {
		if _, err := planning.ModelFor(registry); err != nil {
			c.problems = append(c.problems, Problem{File: c.file, Severity: SeverityError, Code: CodeUnknownTool, Message: err.Error()})
		}
	}
}

// delegates checks the plans of delegates too, each once, as far as they do not depend on their
// input.
func (c *planCompiler) delegates(p *Plan, registry *Registry) {
	if c.checked == nil {
		c.checked = map[string]bool{}
	}
	for _, call := range p.Calls {
		if d := call.Delegate; d != nil && d.Request != nil && d.Request.isKnown() && !c.checked[d.Name] {
			c.checked[d.Name] = true
			request, err := d.normalize()
			if err == nil {
				inner := &planCompiler{file: request.Name, checked: c.checked}
				_, err = inner.compile(request, d.RegistryFor(registry), EverythingExists)
			}
			var refused *PlanError
			if errors.As(err, &refused) {
				c.call(call, &Fault{refused.Problems[0].Code, fmt.Errorf("its delegate %s can't run: %w", d.Name, err)})
			}
		}
	}
}

// isKnown reports whether the request can be checked before it runs: not where a function plans it.
func (r *Request) isKnown() bool {
	return r.Planner == nil || r.IsModelPlanned()
}

// tell adds what a check finds besides, for the model that made the plan: some of it is an error
// there.
func (c *planCompiler) tell(p *Plan, request *Request, exists Exists) error {
	found, err := c.warnings(p, request, exists)
	for _, problem := range found {
		if problem.Severity == SeverityError {
			c.problems = append(c.problems, problem)
		} else {
			p.Warnings = append(p.Warnings, problem)
		}
	}
	return err
}

// warnings finds what may be meant, but often is not.
func (c *planCompiler) warnings(p *Plan, request *Request, exists Exists) (all []Problem, err error) {
	if !c.unsure {
		if all, err = c.unresolved(); err != nil {
			return nil, err
		}
	}
	for _, call := range p.Calls {
		for _, err := range call.unknownProperties() {
			all = c.mistaken(all, call, err)
		}
		for _, err := range call.lint(c.registry) {
			all = c.warn(all, call, err)
		}
	}
	isWaited := slices.ContainsFunc(p.Calls, func(call *Call) bool { return !call.FireAndForget() })
	if len(p.Calls) > 0 && !isWaited && !request.Output.Set {
		those := "call 1"
		if n := p.Calls[len(p.Calls)-1].Written; n > 1 {
			those = fmt.Sprintf("calls 1 to %d", n)
		}
		all = c.warn(all, p.Calls[0], Faultf(CodeUnresolved, "nothing waits for %s: no call of the plan has an _outputPath, so that its output is null at once", those))
	}
	known := knownPathsOf(p, c.sources.declared)
	for _, call := range p.Calls {
		for _, param := range call.Params {
			if at, text := known.daggerless(call.Issued[param.Name], param.Name); text != "" {
				all = c.warn(all, call, Faultf(CodeExpression, "%s", forgotten(at, text)))
			}
		}
	}
	if request.Output.Set {
		if at, text := known.daggerless(request.Output.Value, "output"); text != "" {
			all = append(all, c.outputProblem(SeverityWarning, CodeExpression, forgotten(at, text)))
		}
	}
	if !c.circular && !c.unsure {
		all = c.unordered(all, p, exists)
		all = c.neverEqual(all, p)
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		// The output's, which has no call, comes last.
		return cmp.Compare(uint(a.Call-1), uint(b.Call-1))
	})
	return all, nil
}

// neverEqual warns of comparisons that are never true, or always, and of conditions that are texts.
func (c *planCompiler) neverEqual(all []Problem, p *Plan) []Problem {
	t := c.checker
	if t == nil {
		return all
	}
	for i, call := range p.Calls {
		for _, param := range templates(call) {
			for _, err := range t.neverEqual(i, param.Template, param.Name) {
				all = c.warn(all, call, err)
			}
		}
		if err := t.textCondition(i, call); err != nil {
			all = c.warn(all, call, err)
		}
	}
	return all
}

// unordered warns of calls in no order whose order matters.
func (c *planCompiler) unordered(all []Problem, p *Plan, exists Exists) []Problem {
	for _, pair := range p.Graph.unordered(exists) {
		call, other := p.Calls[pair.second], p.Calls[pair.first]
		err := Faultf(CodeUnordered, "it and call %d (%s) both write %s, in the order in which they happen to finish", other.Written, other.Tool, pair.path)
		if pair.reads {
			err = Faultf(CodeUnordered, "it reads %s, which call %d (%s) replaces with another error, in the order in which they happen to run", pair.path, other.Written, other.Tool)
		}
		all = c.warn(all, call, err)
	}
	return all
}

// mistaken adds an error of a plan that a model made, and a warning of any other.
func (c *planCompiler) mistaken(all []Problem, call *Call, err error) []Problem {
	if !c.strict {
		return c.warn(all, call, err)
	}
	return c.add(all, c.problem(call, SeverityError, err))
}

// warn adds a warning.
func (c *planCompiler) warn(all []Problem, call *Call, err error) []Problem {
	return c.add(all, c.problem(call, SeverityWarning, err))
}

// add adds a problem, unless a call for another instance has it too.
func (c *planCompiler) add(all []Problem, p Problem) []Problem {
	if c.warned[p] {
		return all
	}
	if c.warned == nil {
		c.warned = map[Problem]bool{}
	}
	c.warned[p] = true
	return append(all, p)
}

// ExpandInstances makes one call for each instance of those that are for every one.
func ExpandInstances(calls []Source, instances []string) []Source {
	var all []Source
	for i, src := range calls {
		src.position = i + 1
		call, _ := src.Call.(map[string]any)
		if call == nil || call["_instance"] != store.EveryInstance {
			all = append(all, src)
			continue
		}
		for _, instance := range instances {
			if instance == "" || instance == store.EveryInstance { // an older log may have it
				continue
			}
			one := make(map[string]any, len(call))
			for key, v := range call {
				one[key] = v
			}
			one["_instance"] = instance
			expanded := src
			if expanded.Call = one; src.ByModel != nil {
				by := *src.ByModel
				by.Every, expanded.ByModel = true, &by
			}
			all = append(all, expanded)
		}
	}
	return all
}

// EveryInstance reports whether one of the calls is for every instance (_instance "*").
func EveryInstance(calls []Source) bool {
	return slices.ContainsFunc(calls, func(src Source) bool {
		call, _ := src.Call.(map[string]any)
		return call["_instance"] == store.EveryInstance
	})
}

// KindPaths sorts the kinds by the instances that hold them.
func KindPaths(held []store.KindOf) map[string][]store.Path {
	kinds := map[string][]store.Path{}
	for _, h := range held {
		kinds[h.Instance] = append(kinds[h.Instance], store.KindPath(h.Kind))
	}
	return kinds
}

// Instances lists the instances that a context holds, "" for none first.
func Instances(held []store.KindOf) []string {
	instances := []string{""}
	for _, h := range held {
		if h.Instance != instances[len(instances)-1] {
			instances = append(instances, h.Instance)
		}
	}
	return instances
}
