package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// Call is one call of a plan, parsed and checked once. It is immutable.
type Call struct {
	Position int    // from 1 in its plan
	Written  int    // in the plan as written, where one call may stand for many: for all instances
	Line     int    // of the plan file, 0 if not known
	Tool     string // the tool's name

	// Issued is the call as issued, with consts filled in. Messages that it writes carry it as
	// _call.
	Issued map[string]any

	Instance string
	Output   *expr.Output // nil without an output path
	Method   store.Method // empty unless the call gives one

	Definition   *Tool
	unclear      bool         // the prescriptions of its tool are not known
	accepted     bool         // accepted as part of another plan, see [Source]
	byModel      *ByModel     // see [Source]
	Activity     *Registered  // nil for a latent call, unless a model answers it
	ActivityName string       // name of the activity in the registry
	Delegate     *delegated   // nil for a call without a delegate
	Captured     bool         // it is an anonymous delegate's: the parent's call places its result
	AsksModel    bool         // it is latent, and a model answers it
	Dropped      bool         // a person has dropped it, see [Source]
	Model        Model        // that does
	group        int          // among the plan's groups, from 1; 0 for none
	Params       []param      // sorted by name
	Refs         []store.Path // references in its parameters and its conditions
	ScopePaths   []store.Path // scopes of its context

	If    *expr.Template // its _if; nil for a call that runs in any case
	After []store.Path   // its _after: it waits for whatever may write there

	Schedule *Schedule    // its _at or _in; nil for a call without either
	attempts *ownAttempts // nil for its activity's

	Given  store.Optional // the result that a latent call brings, whatever it reads
	Answer *Answer        // that a model gave a latent call as it planned it; nil for none
}

// param is a parameter of a call.
type param struct {
	Name string
	*expr.Template
}

// NoTool is the error text for a call that names no tool.
func NoTool(call map[string]any) string {
	if v, ok := call["_tool"]; ok && v != "" {
		return "_tool is the name of a tool, not " + store.Describe(v)
	}
	if _, ok := call["tool"]; ok {
		return `the call has no _tool (did you mean _tool instead of "tool"?)`
	}
	// As models' own calls have them.
	for _, other := range []string{"name", "arguments", "function"} {
		if _, ok := call[other]; ok {
			return `the call has no _tool: a call is {"_tool": NAME}, with its parameters beside that`
		}
	}
	return "the call has no _tool"
}

// parseCall reads a call and checks all that can be known of it alone. Its
// errors are faults.
func parseCall(src Source, position int, registry *Registry) (*Call, []error) {
	c := &Call{Position: position, Line: src.Line, Written: cmp.Or(src.position, position), accepted: src.Accepted, byModel: src.ByModel}
	given, ok := src.Call.(map[string]any)
	if !ok {
		return c, []error{Faultf(CodeSchema, "a call is an object with _tool, not %s", store.Describe(src.Call))}
	}
	name, ok := given["_tool"].(string)
	if !ok || name == "" {
		return c, []error{Faultf(CodeUnknownTool, "%s", NoTool(given))}
	}
	c.Tool = name
	if err := refuseEscaped(name); err != nil {
		return c, []error{Faultf(CodeUnknownTool, "_tool: %w", err)}
	}
	if src.Dropped {
		c.Dropped, c.Definition, c.Issued = true, &Tool{Name: name}, given
		return c, nil
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
	c.Issued = c.Definition.fill(given)
	check(refuseAllow(c, given))
	if !src.Accepted && !c.unclear {
		errs = append(errs, c.checkMetaNames()...)
	}
	if err := store.CheckDepth([]any{c.Issued}); err != nil { // in the list of the plan's message
		check(Faultf(CodeSchema, "the call is %w", err))
	}
	check(c.parseMeta())
	check(c.parseOutput())
	check(c.parseScopes())
	c.If, err = parseCondition(c.Issued)
	check(err)
	c.After, err = parseAfter(c.Issued)
	check(err)
	c.attempts, err = parseAttempts(c.Issued)
	check(err)
	c.Schedule, err = parseSchedule(c.Issued)
	check(err)
	if _, handed := c.Issued["_delegate"]; handed && !c.stoodIn(registry) {
		check(c.parseDelegate(registry, known))
	} else if known || handed {
		check(c.parseActivity(registry))
	}
	return c, append(errs, c.parseParams()...)
}

// parseTool finds the call's tool. An unknown tool accepts anything, so that the other faults of
// the call are reported as well.
func (c *Call) parseTool(given map[string]any, registry *Registry) (known bool, err error) {
	tool, known := registry.Tool(c.Tool)
	if known {
		if err = tool.Check(); err == nil {
			c.Definition = tool
			return true, nil
		}
		err = Faultf(CodeUnknownTool, "tool %q can't be used: %w", c.Tool, err)
	} else if !NamesDelegate(given) {
		err = Faultf(CodeUnknownTool, "unknown tool %q%s", c.Tool, spell.DidYouMean(c.Tool, registry.Names()))
	}
	c.Definition = &Tool{Name: c.Tool}
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
	for _, name := range jsonvalue.SortedKeys(c.Definition.meta) {
		v, ok := c.Issued[name]
		if !ok || name == allowProperty { // see refuseAllow
			continue
		}
		if err := c.Definition.meta[name].Validate(v, name); err != nil {
			code := CodeSchema
			if name == "_scopes" {
				code = CodeScope
			}
			return &Fault{code, err}
		}
	}
	instance, err := c.text("_instance")
	if strings.HasPrefix(instance, store.Dagger) {
		return Faultf(CodeSchema, "_instance: %q looks like a reference, and an instance is given by its name", instance)
	}
	if c.Instance = instance; err == nil && c.Definition.consts["_instance"] == store.EveryInstance {
		return Faultf(CodeSchema, `_instance: its tool prescribes "*", but only a call can be for every instance`)
	}
	return err
}

// mayWriteAnywhere reports whether the paths that the call writes are unknown: its output path or
// its instance can't be read, or its tool, which may prescribe them.
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
		if c.Output, err = expr.ParseOutput(path); err != nil {
			return &Fault{CodeExpression, &expr.PlacedError{Place: "_outputPath", Err: err}}
		}
	}
	method, err := c.text("_outputMethod")
	if err != nil {
		return err
	}
	c.Method = store.Method(method)
	if err := c.Method.Check("method"); err != nil {
		return Faultf(CodeSchema, "_outputMethod: %w", err)
	}
	if method != "" && path == "" {
		return Faultf(CodeSchema, "_outputMethod: there is no _outputPath for it")
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
		return "", Faultf(CodeSchema, "%s: expected a string with something in it, found %s%s", name, store.EncodeJSON(v), hint)
	}
	if err := refuseEscaped(s); err != nil {
		return "", Faultf(CodeSchema, "%s: %w", name, err)
	}
	return s, nil
}

func (c *Call) parseScopes() error {
	v, ok := c.Issued["_scopes"]
	if !ok {
		return nil
	}
	var err error
	if c.ScopePaths, err = ParseScopes(v); err != nil {
		return &Fault{CodeScope, fmt.Errorf("_scopes%w", err)}
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
		path, err := store.ParseTyped(text)
		if err != nil {
			return nil, fmt.Errorf("[%d]: expected a kind or a path below one, found %s%s", i, store.EncodeJSON(e), store.QuoteHint(err))
		}
		scopes[i] = path
	}
	return scopes, nil
}

func (c *Call) parseActivity(registry *Registry) error {
	name := c.Definition.activity
	if name == "" || registry.standIn(c.Tool) != nil {
		name = c.Tool
	}
	if a, ok := registry.Activities[name]; ok {
		if err := a.Check(); err != nil {
			return Faultf(CodeUnknownTool, "its activity %q can't be run: %w", name, err)
		}
		c.Activity, c.ActivityName = a, name
		return nil
	}
	if c.Definition.activity != "" {
		return Faultf(CodeUnknownTool, "its tool names the activity %q, which is not registered%s", name, spell.DidYouMean(name, jsonvalue.SortedKeys(registry.Activities)))
	}
	output, given := c.Issued["_output"]
	switch {
	case c.byModel != nil && output != nil:
		if err := c.parseAnswer(output); err != nil {
			return err
		}
	case c.byModel == nil && given:
		c.Given = store.Some(output)
		return c.checkOutput(output)
	}
	if c.Output == nil && c.Definition.output == nil {
		return nil
	}
	name, err := c.text("_model")
	if err != nil {
		return err
	}
	model, err := registry.ModelNamed(name)
	if err != nil {
		return Faultf(CodeUnknownTool, "_model: %w", err)
	}
	if model == nil && c.byModel != nil {
		model, err = registry.ModelNamed(c.byModel.Model)
		if c.accepted && c.Answer != nil && model == nil {
			return nil // it may count
		}
		if err != nil {
			return Faultf(CodeUnknownTool, "the model that planned it: %w", err)
		}
	}
	if model == nil {
		return Faultf(CodeUnknownTool, "tool %q has neither an activity nor a model to answer it: register an activity of that name, give the call its _output, or set a model", c.Tool)
	}
	c.AsksModel, c.Model = true, model
	c.Activity, c.ActivityName = &Registered{Activity: asking{model}, Timeout: TimeoutOf(model)}, "model"
	return nil
}

// checkOutput checks the result that a latent call brings.
func (c *Call) checkOutput(output any) error {
	if c.Definition.output == nil {
		return nil
	}
	if err := c.Definition.output.Validate(output, "_output"); err != nil {
		return &Fault{CodeSchema, err}
	}
	return nil
}

// parseParams compiles the parameters and checks those without references. It returns an error for
// each bad one.
func (c *Call) parseParams() (errs []error) {
	for _, name := range jsonvalue.SortedKeys(c.Issued) {
		if strings.HasPrefix(name, "_") {
			continue
		}
		t, err := expr.ParseTemplate(c.Issued[name], name)
		if err != nil {
			errs = append(errs, &Fault{CodeExpression, err})
			continue
		}
		c.Params = append(c.Params, param{name, t})
	}
	for _, p := range templates(c) {
		for _, path := range p.Reads() {
			if !slices.Contains(c.Refs, path) {
				c.Refs = append(c.Refs, path)
			}
		}
	}
	for _, name := range c.Definition.required {
		if _, ok := c.Issued[name]; !ok {
			hint := ""
			if near := spell.Nearest(name, c.unknown()); near != "" && len(name) > 2 {
				hint = fmt.Sprintf(" (did you mean it by %q?)", near)
			}
			errs = append(errs, Faultf(CodeSchema, "parameter %q is missing%s", name, hint))
		}
	}
	return append(errs, c.checkFixed(len(errs) == 0)...)
}

// checkFixed checks the parameters one by one, and all together where each is right.
func (c *Call) checkFixed(right bool) (errs []error) {
	if c.Definition.params == nil {
		return nil
	}
	allFixed := true
	for _, p := range c.Params {
		schema, allowed := c.Definition.params.Property(p.Name)
		if !allowed {
			errs = append(errs, Faultf(CodeSchema, "unknown parameter %q%s", p.Name, spell.DidYouMean(p.Name, c.Definition.parameters())))
		} else if err := checkTemplate(p.Template, schema, p.Name); err != nil {
			errs = append(errs, &Fault{CodeSchema, err})
		}
		allFixed = allFixed && p.IsFixed()
	}
	if !right || len(errs) > 0 {
		return errs
	}
	check, known := c.Definition.params.Outline, make(map[string]any, len(c.Params))
	if allFixed {
		check = c.Definition.params.Validate
	}
	for _, p := range c.Params {
		if known[p.Name] = nil; allFixed {
			known[p.Name] = p.Value
		}
	}
	if err := check(known, ""); err != nil {
		errs = append(errs, &Fault{CodeSchema, err})
	}
	return errs
}

// conditionReads reports whether the call's _if refers to a path.
func conditionReads(c *Call, path store.Path) bool {
	return c.If != nil && c.If.Expr != nil && slices.Contains(c.If.Expr.Reads(), path)
}

// templates lists the parts of the call that may hold expressions, with their names: its _if, its
// _at or _in, then its parameters.
func templates(c *Call) []param {
	if c.If == nil && c.Schedule == nil {
		return c.Params
	}
	var all []param
	if c.If != nil {
		all = append(all, param{"_if", c.If})
	}
	if c.Schedule != nil {
		all = append(all, param{c.Schedule.Name, c.Schedule.Template})
	}
	return append(all, c.Params...)
}

// Reach looks up each reference that the call's _if, _at or _in and its parameters reach now. Its
// error is lookup's.
func (c *Call) Reach(ctx context.Context, lookup expr.Lookup) error {
	for _, of := range templates(c) {
		if _, _, err := of.Eval(ctx, lookup); err != nil && !errors.As(err, new(*expr.Error)) {
			return err
		}
	}
	return nil
}

// Resolve gives the call with every parameter resolved, checked against its
// tool. A fault is a structural error of the call.
func (c *Call) Resolve(ctx context.Context, lookup expr.Lookup) (map[string]any, *expr.Missing, error) {
	params, lacking, err := c.Evaluate(ctx, lookup, nil)
	if err != nil || lacking != nil {
		return nil, lacking, err
	}
	if len(c.Refs) > 0 {
		if err := c.Definition.Accepts(params); err != nil {
			return nil, nil, &Fault{CodeSchema, err}
		}
	}
	return c.WithMeta(params), nil, nil
}

// Template is all parameters together.
func (c *Call) Template() *expr.Template {
	all := &expr.Template{Object: make(map[string]*expr.Template, len(c.Params))}
	for _, p := range c.Params {
		all.Object[p.Name] = p.Template
	}
	return all
}

// Evaluate returns the call's parameters, without those that have no value and are replaced as a
// whole.
func (c *Call) Evaluate(ctx context.Context, lookup expr.Lookup, instead map[string]any) (map[string]any, *expr.Missing, error) {
	params := make(map[string]any, len(c.Issued))
	var lacking *expr.Missing
	replaced := c.ReplacedBy(instead)
	for _, p := range c.Params {
		v, m, err := p.Eval(ctx, lookup)
		_, bad := errors.AsType[*expr.Error](err)
		if whole, ok := replaced[p.Name]; ok && (bad || m != nil) && (whole || p.Expr != nil) {
			continue
		}
		switch {
		case bad:
			return nil, nil, &Fault{CodeExpression, &expr.PlacedError{Place: p.Name, Err: err}}
		case err != nil:
			return nil, nil, err
		}
		if m != nil && m.Member != nil {
			m = &expr.Missing{Paths: m.Paths, Open: m.Open, Member: &expr.PlacedError{Place: p.Name, Err: m.Member}}
		}
		lacking = lacking.And(m)
		params[p.Name] = v
	}
	return params, lacking, nil
}

// ReplacedBy names the parameters that corrections replace: true for the whole parameter, false for
// a part.
func (c *Call) ReplacedBy(set map[string]any) map[string]bool {
	if len(set) == 0 {
		return nil
	}
	replaced := map[string]bool{}
	for key := range set {
		place := CorrectionPlace(key, c.Issued)
		replaced[place[0]] = replaced[place[0]] || len(place) == 1
	}
	return replaced
}

// WithMeta adds to the parameters of the call its meta-properties.
func (c *Call) WithMeta(params map[string]any) map[string]any {
	for name, v := range c.Issued {
		if strings.HasPrefix(name, "_") {
			params[name] = v
		}
	}
	return params
}

// latent reports whether no activity runs the call.
func (c *Call) latent() bool { return c.Activity == nil || c.AsksModel }

// Alternatives returns the alternatives of the call's output path, each as written: its paths with
// && between them.
func (c *Call) Alternatives() []string {
	if c.Output == nil {
		return nil
	}
	return alternativesOf(c.Output)
}

// IsThought reports whether the call is ephemeral reasoning: shown to latent calls after it, and
// never stored as data.
func (c *Call) IsThought() bool { return c.latent() && c.Output == nil }

// FireAndForget reports whether the call leaves nothing in the context, and settles when it starts.
// The call of an anonymous delegate is waited for: the parent's call decides whether the delegate
// is.
func (c *Call) FireAndForget() bool { return !c.latent() && c.Output == nil && !c.Captured }

// ReadsWithout drops from the call's reads those of parameters that a person replaced as a whole;
// an object or an array may have been corrected in part, and keeps its reads.
func (c *Call) ReadsWithout(arguments map[string]any, corrected []string, reads map[string]int64) map[string]int64 {
	if len(corrected) == 0 {
		return reads
	}
	looked := slices.Clone(c.ScopePaths)
	for _, p := range templates(c) {
		if isContainer(arguments[p.Name]) || !slices.Contains(corrected, p.Name) {
			looked = append(looked, p.Reads()...)
		}
	}
	kept := map[string]int64{}
	for _, path := range looked {
		if seq, ok := reads[path.String()]; ok {
			kept[path.String()] = seq
		}
	}
	return kept
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// checkTemplate validates against a schema, nil for none, the part of a value that is known
// before its expressions are resolved.
func checkTemplate(t *expr.Template, s *schema.Schema, name string) error {
	switch {
	case s == nil || t.Expr != nil:
		return nil
	case t.IsFixed():
		return s.Validate(t.Value, name)
	}
	if err := s.Outline(t.Value, name); err != nil {
		return err
	}
	for _, key := range jsonvalue.SortedKeys(t.Object) {
		property, allowed := s.Property(key)
		if !allowed {
			return fmt.Errorf("%s: unknown %q", name, key)
		}
		if err := checkTemplate(t.Object[key], property, phrase.Place(name, []string{key})); err != nil {
			return err
		}
	}
	for i, e := range t.Array {
		if err := checkTemplate(e, s.Item(i), phrase.Place(name, []string{strconv.Itoa(i)})); err != nil {
			return err
		}
	}
	return nil
}
