package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/store"
)

// Call is one call of a plan, parsed and checked once. It is immutable.
type Call struct {
	Position int    // from 1 in its plan
	Line     int    // of the plan file, 0 if not known
	Tool     string // the tool's name

	// Issued is the call as issued, with consts filled in: what a message that
	// it writes carries as _call.
	Issued map[string]any

	Instance string
	Output   *Output      // nil without an output path
	Method   store.Method // empty unless the call gives one

	written  int // its position in the plan as written: one call there may stand for many
	tool     *Tool
	unclear  bool         // what its tool prescribes is not known
	accepted bool         // as part of another plan, see [Source]
	activity *Registered  // nil for a latent call, unless a model answers it
	doer     string       // the name of that in the registry
	delegate *delegated   // nil for a call that is not handed on
	captured bool         // it is an anonymous delegate's, whose result its parent's call places
	asks     bool         // it is latent, and a model answers it
	params   []param      // sorted by name
	reads    []store.Path // what its parameters refer to
	scopes   []store.Path // what its context holds

	given    any // the result that a latent call brings
	hasGiven bool
}

// param is a parameter of a call.
type param struct {
	name string
	*template
}

// fault is something wrong with a call, with the code that check gives it.
type fault struct {
	code string
	err  error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func faultf(code, format string, args ...any) error {
	return &fault{code, fmt.Errorf(format, args...)}
}

// noTool tells what is wrong with a call that names none.
func noTool(call map[string]any) string {
	if v, ok := call["_tool"]; ok && v != "" {
		return "_tool is the name of a tool, not " + store.Describe(v)
	}
	if _, ok := call["tool"]; ok {
		return `the call has no _tool (did you mean _tool instead of "tool"?)`
	}
	for _, other := range []string{"name", "arguments", "function"} { // as models' own calls have them
		if _, ok := call[other]; ok {
			return `the call has no _tool: a call is {"_tool": NAME}, with its parameters beside that`
		}
	}
	return "the call has no _tool"
}

// parseCall reads a call and checks all that can be known of it alone. Its
// errors are faults.
func parseCall(src Source, position int, registry *Registry) (*Call, []error) {
	c := &Call{Position: position, Line: src.Line, written: cmp.Or(src.position, position), accepted: src.accepted}
	given, ok := src.Call.(map[string]any)
	if !ok {
		return c, []error{faultf(CodeSchema, "a call is an object with _tool, not %s", store.Describe(src.Call))}
	}
	name, ok := given["_tool"].(string)
	if !ok || name == "" {
		return c, []error{faultf(CodeUnknownTool, "%s", noTool(given))}
	}
	c.Tool = name
	if err := refuseEscaped(name); err != nil {
		return c, []error{faultf(CodeUnknownTool, "_tool: %w", err)}
	}
	var errs []error
	check := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	known, err := c.parseTool(given, registry)
	c.unclear = err != nil
	check(err)
	c.Issued = c.tool.fill(given)
	if !src.accepted && !c.unclear {
		errs = append(errs, c.checkMetaNames()...)
	}
	if err := store.CheckDepth([]any{c.Issued}); err != nil { // in the list of the plan's message
		check(faultf(CodeSchema, "the call is %w", err))
	}
	check(c.parseMeta())
	check(c.parseOutput())
	check(c.parseScopes())
	if _, handed := c.Issued["_delegate"]; handed && !c.stoodIn(registry) {
		check(c.parseDelegate(registry, known))
	} else if known || handed {
		check(c.parseActivity(registry))
	}
	return c, append(errs, c.parseParams()...)
}

// parseTool finds the call's tool. One that is not known takes anything, so that what
// else is wrong is told as well.
func (c *Call) parseTool(given map[string]any, registry *Registry) (known bool, err error) {
	tool, known := registry.Tool(c.Tool)
	if known {
		if err = tool.check(); err == nil {
			c.tool = tool
			return true, nil
		}
		err = faultf(CodeUnknownTool, "tool %q can't be used: %w", c.Tool, err)
	} else if !namesDelegate(given) {
		err = faultf(CodeUnknownTool, "unknown tool %q%s", c.Tool, didYouMean(c.Tool, registry.Names()))
	}
	c.tool = &Tool{Name: c.Tool}
	return false, err
}

// fill adds to a call what its tool has only one value for, and defaults.
func (t *Tool) fill(given map[string]any) map[string]any {
	if len(t.consts) == 0 {
		return fillDefaults(t.defaults, given)
	}
	filled := make(map[string]any, len(given)+len(t.consts))
	for key, v := range t.consts {
		filled[key] = v
	}
	for key, v := range given {
		filled[key] = v
	}
	return fillDefaults(t.defaults, filled)
}

func (c *Call) parseMeta() error {
	for _, name := range sortedKeys(c.tool.meta) {
		v, ok := c.Issued[name]
		if !ok {
			continue
		}
		if err := c.tool.meta[name].Validate(v, name); err != nil {
			code := CodeSchema
			if name == "_scopes" {
				code = CodeScope
			}
			return &fault{code, err}
		}
	}
	instance, err := c.text("_instance")
	if strings.HasPrefix(instance, store.Dagger) {
		return faultf(CodeSchema, "_instance: %q looks like a reference, and an instance is given by its name", instance)
	}
	if c.Instance = instance; err == nil && c.tool.consts["_instance"] == store.EveryInstance {
		return faultf(CodeSchema, `_instance: its tool prescribes "*", but only a call can be for every instance`)
	}
	return err
}

// mayWriteAnywhere tells of a call of which it could not be found out where it writes: its
// output path or its instance can't be read, or its tool can't, which may say so.
func (c *Call) mayWriteAnywhere() bool {
	if c.Issued == nil {
		return true
	}
	instance, given := c.Issued["_instance"]
	_, readable := instance.(string)
	return given && !readable || len(c.Output.Writes()) == 0 && (c.Issued["_outputPath"] != nil || c.unclear)
}

func (c *Call) parseOutput() error {
	path, err := c.text("_outputPath")
	if err != nil {
		return err
	}
	if path != "" {
		if c.Output, err = ParseOutput(path); err != nil {
			return &fault{CodeExpression, &placedError{"_outputPath", err}}
		}
	}
	method, err := c.text("_outputMethod")
	if err != nil {
		return err
	}
	c.Method = store.Method(method)
	switch {
	case method != "" && !slices.Contains(store.Methods, c.Method):
		return faultf(CodeSchema, "_outputMethod: unknown method %q (one of set, merge, assign, push, concat)", method)
	case method != "" && path == "":
		return faultf(CodeSchema, "_outputMethod: there is no _outputPath for it")
	}
	return nil
}

// text is a meta-property that must be a string; it may be absent.
func (c *Call) text(name string) (string, error) {
	v, ok := c.Issued[name]
	if !ok {
		return "", nil
	}
	s, ok := v.(string)
	if !ok || s == "" {
		hint := ""
		if _, list := v.([]any); list && name == "_outputPath" {
			hint = ` (&& between paths writes to each of them, as in "†a && †b")`
		}
		return "", faultf(CodeSchema, "%s: expected a string with something in it, found %s%s", name, store.EncodeJSON(v), hint)
	}
	if err := refuseEscaped(s); err != nil {
		return "", faultf(CodeSchema, "%s: %w", name, err)
	}
	return s, nil
}

// refuseEscaped refuses a meta-property's text that was escaped as data of a call's
// parameters is.
func refuseEscaped(text string) error {
	path, escaped := strings.CutPrefix(text, store.Dagger+store.Dagger)
	if !escaped {
		return nil
	}
	return fmt.Errorf("%q begins with two †, as data does that is no reference (in a plan's function ref %q gives the reference %q; text(v) takes the second † off)",
		text, path, store.Dagger+path)
}

func (c *Call) parseScopes() error {
	v, ok := c.Issued["_scopes"]
	if !ok {
		return nil
	}
	var err error
	if c.scopes, err = ParseScopes(v); err != nil {
		return &fault{CodeScope, fmt.Errorf("_scopes%w", err)}
	}
	return nil
}

// ParseScopes reads a list of kinds and of paths below them, such as
// ["state", "input.user"]. Its error goes on from the name of the list.
func ParseScopes(v any) ([]store.Path, error) {
	list, ok := v.([]any)
	if object, isObject := v.(map[string]any); isObject && len(object) == 0 {
		ok = true // an empty Lua table
	}
	if !ok {
		return nil, fmt.Errorf(`: expected a list such as ["state"], found %s`, store.EncodeJSON(v))
	}
	scopes := make([]store.Path, len(list))
	for i, e := range list {
		text, _ := e.(string)
		if err := refuseEscaped(text); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		path, err := store.ParsePath(store.Dagger + strings.TrimPrefix(text, store.Dagger))
		if err != nil {
			return nil, fmt.Errorf("[%d]: expected a kind or a path below one, found %s", i, store.EncodeJSON(e))
		}
		scopes[i] = path
	}
	return scopes, nil
}

func (c *Call) parseActivity(registry *Registry) error {
	name := c.tool.activity
	if name == "" || registry.standIn(c.Tool) != nil {
		name = c.Tool
	}
	if a, ok := registry.Activities[name]; ok {
		if err := a.Check(); err != nil {
			return faultf(CodeUnknownTool, "its activity %q can't be run: %w", name, err)
		}
		c.activity, c.doer = a, name
		return nil
	}
	if c.tool.activity != "" {
		return faultf(CodeUnknownTool, "its tool names the activity %q, which is not registered%s", name, didYouMean(name, sortedKeys(registry.Activities)))
	}
	if c.given, c.hasGiven = c.Issued["_output"]; c.hasGiven {
		if c.tool.output == nil {
			return nil
		}
		if err := c.tool.output.Validate(c.given, "_output"); err != nil {
			return &fault{CodeSchema, err}
		}
		return nil
	}
	if c.Output == nil && c.tool.output == nil {
		return nil
	}
	if registry.Model == nil {
		return faultf(CodeUnknownTool, "tool %q has neither an activity nor a model to answer it: register an activity of that name, or give the call its _output", c.Tool)
	}
	c.asks = true
	c.activity, c.doer = &Registered{Activity: asking{registry.Model}}, "model"
	return nil
}

// parseParams compiles the parameters and checks those that hold no reference. It tells of
// each what is wrong with it.
func (c *Call) parseParams() (errs []error) {
	for _, name := range sortedKeys(c.Issued) {
		if strings.HasPrefix(name, "_") {
			continue
		}
		t, err := parseTemplate(c.Issued[name], name)
		if err != nil {
			errs = append(errs, &fault{CodeExpression, err})
			continue
		}
		c.params = append(c.params, param{name, t})
		for _, path := range t.reads() {
			if !slices.Contains(c.reads, path) {
				c.reads = append(c.reads, path)
			}
		}
	}
	for _, name := range c.tool.required {
		if _, ok := c.Issued[name]; !ok {
			hint := ""
			if near := Nearest(name, c.unknown()); near != "" && len(name) > 2 {
				hint = fmt.Sprintf(" (did you mean it by %q?)", near)
			}
			errs = append(errs, faultf(CodeSchema, "parameter %q is missing%s", name, hint))
		}
	}
	return append(errs, c.checkFixed(len(errs) == 0)...)
}

// checkFixed checks the parameters one by one, and all together where each is right.
func (c *Call) checkFixed(right bool) (errs []error) {
	if c.tool.params == nil {
		return nil
	}
	fixed := map[string]any{}
	for _, p := range c.params {
		schema, allowed := c.tool.params.property(p.name)
		if !allowed {
			errs = append(errs, faultf(CodeSchema, "unknown parameter %q%s", p.name, didYouMean(p.name, c.tool.parameters())))
		} else if err := checkTemplate(p.template, schema, p.name); err != nil {
			errs = append(errs, &fault{CodeSchema, err})
		}
		if p.fixed() {
			fixed[p.name] = p.value
		}
	}
	if !right || len(errs) > 0 {
		return errs
	}
	if len(fixed) < len(c.params) {
		keys := map[string]any{}
		for _, p := range c.params {
			keys[p.name] = nil
		}
		if err := c.tool.params.outline(keys, ""); err != nil {
			errs = append(errs, &fault{CodeSchema, err})
		}
		return errs
	}
	if err := c.tool.params.Validate(fixed, ""); err != nil {
		errs = append(errs, &fault{CodeSchema, err})
	}
	return errs
}

// resolve gives the call with every parameter resolved, checked against its
// tool. A fault is a structural error of the call.
func (c *Call) resolve(ctx context.Context, lookup Lookup) (map[string]any, *Missing, error) {
	params, lacking, err := c.evaluate(ctx, lookup, nil)
	if err != nil || lacking != nil {
		return nil, lacking, err
	}
	if len(c.reads) > 0 {
		if err := c.tool.takes(params); err != nil {
			return nil, nil, &fault{CodeSchema, err}
		}
	}
	return c.withMeta(params), nil, nil
}

// template is all parameters together.
func (c *Call) template() *template {
	all := &template{object: make(map[string]*template, len(c.params))}
	for _, p := range c.params {
		all.object[p.name] = p.template
	}
	return all
}

// evaluate gives the call's parameters, but those that have no value and in the
// place of which something else is put as a whole.
func (c *Call) evaluate(ctx context.Context, lookup Lookup, instead map[string]any) (map[string]any, *Missing, error) {
	params := make(map[string]any, len(c.Issued))
	var lacking *Missing
	replaced := c.replacedBy(instead)
	for _, p := range c.params {
		v, m, err := p.eval(ctx, lookup)
		_, bad := errors.AsType[*ExprError](err)
		if whole, ok := replaced[p.name]; ok && (bad || m != nil) && (whole || p.expr != nil) {
			continue
		}
		switch {
		case bad:
			return nil, nil, &fault{CodeExpression, &placedError{p.name, err}}
		case err != nil:
			return nil, nil, err
		}
		lacking = lacking.and(m)
		params[p.name] = v
	}
	return params, lacking, nil
}

// replacedBy names the parameters of which corrections put something else in the place of
// all, with true, or of a part.
func (c *Call) replacedBy(set map[string]any) map[string]bool {
	if len(set) == 0 {
		return nil
	}
	replaced := map[string]bool{}
	for key := range set {
		place := placeOf(key, c.Issued)
		replaced[place[0]] = replaced[place[0]] || len(place) == 1
	}
	return replaced
}

// withMeta adds to the parameters of the call its meta-properties.
func (c *Call) withMeta(params map[string]any) map[string]any {
	for name, v := range c.Issued {
		if strings.HasPrefix(name, "_") {
			params[name] = v
		}
	}
	return params
}

// latent tells whether no activity runs the call.
func (c *Call) latent() bool { return c.activity == nil || c.asks }

// thought tells whether the call is ephemeral reasoning: shown to latent calls
// after it, and never stored as data.
func (c *Call) thought() bool { return c.latent() && c.Output == nil }

// fireAndForget tells whether the call leaves nothing in the context, and
// settles when it starts. That of an anonymous delegate is waited for: whether
// anybody waits for the delegate, its own call tells.
func (c *Call) fireAndForget() bool { return !c.latent() && c.Output == nil && !c.captured }
