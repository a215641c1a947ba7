package model

import (
	"maps"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/model/fit"
	"obelus/store"
)

// Names of the definitions of references and of output paths.
const (
	refName       = "Ref"
	pathName      = "Path"
	instanceName  = "Instance"
	conditionName = "Condition"
	orderName     = "Order"
	methodName    = "Method"
	failureName   = "Failure"
)

// namedLater are definitions that come into a schema when a call first has them.
var namedLater = []string{instanceName, conditionName, orderName, methodName, failureName}

var (
	anyText     = fit.Object{member("type", "string")}
	nullSchema  = fit.Object{member("type", "null")}
	refSchema   = fit.Object{member("$ref", "#/$defs/"+refName)}
	pathSchema  = fit.Object{member("$ref", "#/$defs/"+pathName)}
	sharedDefs  = fit.Object{member(refName, fit.Object{member("type", "string"), member("pattern", "^"+store.Dagger)}), member(pathName, fit.Object{member("type", "string"), member("pattern", `^\(?`+store.Dagger)})}
	emptyObject = fit.Object{member("type", "object"), member("properties", fit.Object{}), member("additionalProperties", false)}
)

// maxHops bounds how many references are followed in one place.
const maxHops = 12

// composer combines the schemas of several tools to one.
type composer struct {
	thinks, reasons bool
	lazy            bool
	lean            bool // without the meta-properties that calls can do without
	instances       []string
	repeated        map[string]int // values of parameters, by the text of their schema: how often
	defs            fit.Object
	names           map[string]string // of definitions, by scope and reference
	shared          map[string]string // names of definitions of parameters and results, by the text of their schema
}

// maxOffering is with how many tools at most each call may have what any call may have. They are in
// the schema once for each tool: with more, that costs more than it is worth.
const maxOffering = 8

// exactSchema returns the schema of a plan in its exact form, and whether it offers what any call
// may have: not for many tools, nor where the provider would not take so large a schema.
func exactSchema(p plan.Proposal, c Config) (schema fit.Object, offers bool) {
	if len(p.Tools) <= maxOffering {
		schema = solutionSchema(p, c, exactForm)
		if c.excess(schema) == "" {
			return schema, true
		}
	}
	return solutionSchema(p, c, leanForm), false
}

// excess returns how a schema is larger than the model's provider takes; empty if it is not.
func (c Config) excess(schema any) string {
	dialect, ok := c.dialect()
	if !ok {
		return ""
	}
	fitted, err := fit.Schema(schema, dialect)
	if err != nil {
		return ""
	}
	return fitted.Excess
}

// FormFor returns the form in which the request is sent to a model: the loose one, where the
// provider does not take so large a schema as the exact one has, which why says.
func (r *Request) FormFor(c Config) (form *Request, why string) {
	if r.Loose == nil {
		return r, ""
	}
	if why = c.excess(r.Schema); why != "" {
		return r.Loose, why
	}
	return r, ""
}

// looseSchema returns the schema of a plan in which the arguments of a call are the text of their
// JSON, for tools whose schemas together are too large for the provider. It leaves all on offer.
func looseSchema(p plan.Proposal, c Config) (schema fit.Object, offers bool) {
	return solutionSchema(p, c, looseForm), true
}

// form is how the calls of a plan are described in its schema.
type form int

const (
	exactForm form = iota
	leanForm       // exact, without _if, _after and _outputMethod where the tool does not declare them
	looseForm
)

// solutionSchema returns the schema of the answer of a model that plans with some tools: the calls
// and the output, where any text may be a reference.
func solutionSchema(p plan.Proposal, c Config, as form) fit.Object {
	m := &composer{
		thinks: c.Think, reasons: !c.NoReasons, lazy: p.Mode == plan.ModeLazy, lean: as == leanForm,
		instances: p.Instances, defs: slices.Clone(sharedDefs), names: map[string]string{}, repeated: map[string]int{},
	}
	calls := fit.Object{member("type", "array"), member("items", m.call(p.Tools, as == looseForm))}
	output := m.output(p.Schema, p.Outcomes)
	if len(p.Tools) == 0 {
		calls = append(calls, member("maxItems", 0))
	}
	properties := fit.Object{}
	if m.thinks {
		properties = append(properties, member(thinkingField, anyText))
	}
	return closedObject(append(properties, member("calls", calls), member("output", output)), nil, m.defs)
}

// closedObject returns the schema of an object with some properties; optional of them may be
// missing.
func closedObject(properties fit.Object, optional []string, defs fit.Object) fit.Object {
	var required []any
	for _, m := range properties {
		if !slices.Contains(optional, m.Name) {
			required = append(required, m.Name)
		}
	}
	made := fit.Object{member("type", "object"), member("properties", properties), member("required", append([]any{}, required...)), member("additionalProperties", false)}
	if len(defs) > 0 {
		made = append(made, member("$defs", defs))
	}
	return made
}

// call returns the schema of one call.
func (m *composer) call(tools []plan.Offer, loose bool) fit.Object {
	if len(tools) == 0 {
		return emptyObject
	}
	tools = slices.Clone(tools)
	slices.SortFunc(tools, func(a, b plan.Offer) int { return strings.Compare(a.Name, b.Name) })
	if loose {
		return m.looseCall(tools)
	}
	for _, tool := range tools {
		parameters, _ := plan.ToolParts(tool.Schema)
		params, _ := ordered(parameters).(fit.Object)
		for _, p := range params.Object("properties") {
			if def, ok := p.Value.(fit.Object); ok && def.Has("enum") {
				m.repeated[jsonText(def)]++
			}
		}
	}
	var branches []any
	for _, tool := range tools {
		branches = append(branches, m.callOf(tool))
	}
	return fit.Object{member("anyOf", branches)}
}

func (m *composer) looseCall(tools []plan.Offer) fit.Object {
	names := make([]any, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	properties := fit.Object{member("_tool", fit.Object{member("enum", names)})}
	if m.reasons {
		properties = append(properties, member("_reasoningForCall", anyText))
	}
	args := fit.Object{member("type", "string"), member("description", "JSON text of an object: the tool's parameters, _outputPath and the like")}
	return closedObject(append(properties, member("args", args)), nil, nil)
}

// callOf returns the schema of a call of a tool.
func (m *composer) callOf(tool plan.Offer) fit.Object {
	parameters, meta := plan.ToolParts(tool.Schema)
	params, _ := ordered(parameters).(fit.Object)
	required := fit.Texts(tool.Schema["required"])
	properties := fit.Object{member("_tool", fit.Object{member("const", tool.Name)})}
	var optional []string
	add := func(name string, schema any, must bool) {
		if properties = append(properties, member(name, schema)); !must {
			optional = append(optional, name)
		}
	}
	if m.reasons {
		add("_reasoningForCall", anyText, true)
	}
	m.addMeta(tool, meta, required, aboutCall(meta), add)
	scope := &scope{composer: m, name: tool.Name, root: params}
	for _, p := range params.Object("properties") {
		if def, ok := p.Value.(fit.Object); ok && def.Has("const") {
			continue
		}
		schema := scope.orReference(p.Value)
		if text := jsonText(p.Value); m.repeated[text] > 1 && len(text) >= minShared/2 {
			schema = m.shareOnce(text, p.Name, schema)
		}
		add(p.Name, schema, slices.Contains(required, p.Name))
	}
	m.addMeta(tool, meta, required, []string{"_outputPath", "_outputMethod"}, add)
	if tool.Latent && !m.lazy {
		add("_output", m.answerOf(tool, meta), false) // else it is asked once the call is ready
	}
	made := closedObject(properties, optional, nil)
	if additional := params.Get("additionalProperties"); additional != nil && additional != false || len(params.Object("properties")) == 0 && additional == nil {
		made = made.With("additionalProperties", scope.moved(orAnySchema(additional)))
	}
	return made
}

func orAnySchema(schema any) any {
	if schema == nil {
		return true
	}
	return schema
}

// aboutCall lists the meta-properties of a call that say what it is about, whether it runs, and
// how: they stand before its parameters.
func aboutCall(meta map[string]any) []string {
	names := []string{"_scopes", "_instance", "_if", "_after"}
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		if !slices.Contains(names, name) && !slices.Contains([]string{"_tool", "_activity", "_reasoningForCall", "_output", "_outputPath", "_outputMethod"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// addMeta adds those meta-properties of a list that a model chooses.
func (m *composer) addMeta(tool plan.Offer, meta map[string]any, required, names []string, add func(name string, schema any, must bool)) {
	for _, name := range names {
		schema, declared := m.metaOf(tool, name, meta)
		if schema == nil && declared { // a const
			continue
		}
		if schema == nil {
			schema = m.metaOfAny(name)
		}
		if schema != nil {
			add(name, schema, slices.Contains(required, name))
		}
	}
}

// metaOfAny returns the schema of a meta-property that calls of any tool may have; nil for another.
func (m *composer) metaOfAny(name string) any {
	switch {
	case name == "_outputPath":
		return pathSchema
	case name == "_instance" && len(m.instances) > 0:
		return m.named(instanceName, fit.Object{member("enum", instanceNames(m.instances))})
	case m.lean:
		return nil
	case name == "_if":
		return m.named(conditionName, anyText)
	case name == "_after":
		return m.named(orderName, fit.Object{member("anyOf", []any{refSchema, fit.Object{member("type", "array"), member("items", refSchema)}})})
	case name == "_outputMethod":
		return m.named(methodName, fit.Object{member("enum", []any{string(store.Set), string(store.Push), string(store.Concat), string(store.Merge)})})
	}
	return nil
}

// named returns a reference to a definition of a name, which it adds.
func (m *composer) named(name string, schema any) any {
	if !m.defs.Has(name) {
		m.defs = append(m.defs, member(name, schema))
	}
	return fit.Object{member("$ref", "#/$defs/"+name)}
}

// shareOnce returns a reference to a definition for the schemas of a text.
func (m *composer) shareOnce(text, name string, schema any) any {
	if m.shared == nil {
		m.shared = map[string]string{}
	}
	if m.shared[text] == "" {
		m.shared[text] = m.freeName(name)
	}
	return m.named(m.shared[text], schema)
}

// instanceNames returns the names that a call can choose from, and the one of all instances.
func instanceNames(instances []string) []any {
	names := make([]any, 0, len(instances)+1)
	for _, name := range instances {
		names = append(names, name)
	}
	return append(names, store.EveryInstance)
}

// metaOf returns the schema that a tool declares for a meta-property. It is nil where the tool
// prescribes the value, or an output path without saying which.
func (m *composer) metaOf(tool plan.Offer, name string, meta map[string]any) (schema any, declared bool) {
	def, declared := meta[name]
	if !declared {
		return nil, false
	}
	o, ok := ordered(def).(fit.Object)
	switch {
	case !ok:
		return nil, false
	case o.Has("const"):
		return nil, true
	case name == "_outputPath" && !o.Has("enum") && !o.Has("pattern"):
		return nil, false
	case !o.Has("type") && (name == "_outputPath" || name == "_instance") && !o.Has("enum"):
		o = append(fit.Object{member("type", "string")}, o...)
	}
	return (&scope{composer: m, name: tool.Name + "." + name, root: o}).moved(o), true
}

// answerOf returns the schema of the answer to a call that comes with its plan: an outcome, where
// the tool prescribes the output path; where the model chooses that, a value or an outcome.
func (m *composer) answerOf(tool plan.Offer, meta map[string]any) any {
	value := m.once(tool.Name+"._output", m.result(tool))
	if path, ok := meta["_outputPath"].(map[string]any); ok && path["const"] != nil {
		text, _ := path["const"].(string)
		return outcomes(value, plan.OutputAlternatives(text))
	}
	failure := m.named(failureName, outcome(pathSchema, "message", anyText))
	return fit.Object{member("anyOf", []any{value, outcome(pathSchema, "value", value), failure})}
}

// result returns the schema of a tool's result.
func (m *composer) result(tool plan.Offer) any {
	declared := plan.OutputSchema(tool.Schema)
	if declared == nil {
		return anyText
	}
	schema := ordered(declared)
	s := &scope{composer: m, name: tool.Name, inner: tool.Name + "._output", root: schema}
	if hasOwnDefs(tool.Schema) {
		s.name = s.inner // its definitions may have the names of others of the tool
	}
	return s.moved(schema)
}

// hasOwnDefs reports whether the schema of a tool's result has definitions of its own.
func hasOwnDefs(tool map[string]any) bool {
	properties, _ := tool["properties"].(map[string]any)
	for _, def := range []any{tool["_output"], properties["_output"]} {
		if object, ok := def.(map[string]any); ok && object["$defs"] != nil {
			return true
		}
	}
	return false
}

// output returns the schema of the final output: of a delegate whose call has several alternatives
// an outcome as well.
func (m *composer) output(schema any, alternatives []string) fit.Object {
	var value any = fit.Object{}
	if schema != nil {
		s := &scope{composer: m, name: "output", root: ordered(schema)}
		value = s.withReferences(s.root)
	}
	branches := []any{nullSchema, refSchema, value}
	if len(alternatives) > 1 {
		given := m.once("output", fit.Object{member("anyOf", []any{refSchema, value})})
		branches = append(branches, outcomes(given, alternatives).(fit.Object).List("anyOf")...)
	}
	return fit.Object{member("anyOf", branches)}
}

// scope is a schema whose definitions are moved to the composed schema.
type scope struct {
	*composer
	name  string // prefix of the names of its definitions
	inner string // prefix for references to the schema as a whole; empty for name
	root  any
}

// orReference returns a schema that takes a reference as well.
func (s *scope) orReference(schema any) any {
	o, ok := schema.(fit.Object)
	if !ok {
		return fit.Object{member("anyOf", []any{refSchema, s.moved(schema)})}
	}
	if isPlainText(o) {
		return s.moved(o)
	}
	return fit.Object{member("anyOf", []any{refSchema, s.withReferences(o)})}
}

// isPlainText reports whether a schema takes any text, and so a reference.
func isPlainText(schema fit.Object) bool {
	return fit.IsUnbounded(schema.Without("type")) && slices.Equal(fit.Types(schema), []string{"string"})
}

// withReferences returns a schema whose direct properties take references.
func (s *scope) withReferences(schema any) any {
	o, ok := schema.(fit.Object)
	for hops := 0; ok && o.Has("$ref") && hops < maxHops; hops++ {
		target, found := s.target(o.Text("$ref"))
		inner, isObject := target.(fit.Object)
		if !found || !isObject || !inner.Has("properties") && !inner.Has("$ref") {
			break
		}
		o = fit.Annotate(append(slices.Clip(inner), o.Without("$ref")...), o)
	}
	if !ok {
		return schema
	}
	var properties fit.Object
	for _, p := range o.Object("properties") {
		if def, ok := p.Value.(fit.Object); ok && def.Has("const") {
			p.Value = s.moved(def)
		} else {
			p.Value = s.orMoved(p.Value)
		}
		properties = append(properties, p)
	}
	if !o.Has("anyOf") && o.Has("oneOf") { // a reference may be of several branches
		o = renamed(o, "oneOf", "anyOf")
	}
	if branches := o.List("anyOf"); branches != nil {
		made := make([]any, len(branches))
		for i, branch := range branches {
			made[i] = s.withReferences(branch)
		}
		return s.movedKeeping(o, "anyOf", made).Without(definitionKeywords...)
	}
	if properties == nil {
		return s.moved(o)
	}
	return s.movedKeeping(o, "properties", properties).Without(definitionKeywords...)
}

// renamed returns an object with a member under another name.
func renamed(o fit.Object, from, to string) fit.Object {
	made := slices.Clone(o)
	for i := range made {
		if made[i].Name == from {
			made[i].Name = to
		}
	}
	return made
}

// definitionKeywords hold definitions, which are moved to the composed schema, or identify a
// schema.
var definitionKeywords = []string{"$defs", "definitions", "$schema", "$id"}

// orMoved is like orReference for a property, whose own properties take no references.
func (s *scope) orMoved(schema any) any {
	if o, ok := schema.(fit.Object); ok && isPlainText(o) {
		return s.moved(o)
	}
	return fit.Object{member("anyOf", []any{refSchema, s.moved(schema)})}
}

// movedKeeping moves all of a schema but one keyword, which has been moved.
func (s *scope) movedKeeping(o fit.Object, keyword string, value any) fit.Object {
	rest, _ := s.moved(o.With(keyword, nil)).(fit.Object)
	return rest.With(keyword, value)
}

// moved returns a schema whose references lead to the definitions of the composed one.
func (s *scope) moved(schema any) any {
	made := fit.RewriteRefs(schema, s.define)
	if o, ok := made.(fit.Object); ok {
		return o.Without(definitionKeywords...)
	}
	return made
}

func (s *scope) target(ref string) (any, bool) {
	steps, ok := fit.PointerSteps(ref)
	if !ok {
		return nil, false
	}
	return fit.Resolve(s.root, steps)
}

// define adds the target of a reference to the definitions of the composed schema, and returns the
// reference to that definition.
func (s *scope) define(ref string) string {
	steps, ok := fit.PointerSteps(ref)
	if !ok {
		return ref
	}
	own, rest := s.name+".", steps
	if len(steps) >= 2 && (steps[0] == "$defs" || steps[0] == "definitions") {
		own, rest = own+steps[1], steps[2:]
		steps = steps[:2]
	} else {
		own, steps = s.wholeName(), nil
	}
	target, ok := fit.Resolve(s.root, steps)
	if !ok {
		return ref
	}
	name, known := s.names[own]
	if !known {
		name = s.freeName(own)
		s.names[own] = name
		s.defs = append(s.defs, member(name, nil))
		s.defs = s.defs.With(name, s.moved(target))
	}
	return "#/$defs/" + strings.Join(append([]string{name}, escapeSteps(rest)...), "/")
}

// wholeName returns the name of the definition of the schema as a whole.
func (s *scope) wholeName() string {
	if s.inner != "" {
		return s.inner
	}
	return s.name + ".whole"
}

func escapeSteps(steps []string) []string {
	made := make([]string, len(steps))
	for i, step := range steps {
		made[i] = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "#", "%23", "?", "%3F").Replace(step)
	}
	return made
}

// answersSchema returns the schema of the answers to latent calls: an object with an answer for
// each, by its ID. The schema of a result that several of them have is there once.
func answersSchema(questions []plan.Question, c Config) fit.Object {
	m := &composer{names: map[string]string{}, shared: map[string]string{}}
	properties := fit.Object{}
	if c.Think {
		properties = append(properties, member(thinkingField, anyText))
	}
	for _, q := range questions {
		m.share(q, questions)
	}
	for _, q := range questions {
		properties = append(properties, member(q.ID, m.answer(q)))
	}
	return closedObject(properties, nil, m.defs)
}

// minShared is the size from which the schema of a result becomes a definition, where several
// questions have it.
const minShared = 100

// share makes the schema of a question's result a definition if another question has it too.
func (m *composer) share(q plan.Question, all []plan.Question) {
	text := jsonText(q.Schema)
	same := func(other plan.Question) bool { return other.ID != q.ID && jsonText(other.Schema) == text }
	if m.shared[text] != "" || len(text) < minShared || !slices.ContainsFunc(all, same) {
		return
	}
	tool, _ := q.Call["_tool"].(string)
	name := m.freeName(tool)
	m.shared[text] = name
	m.defs = append(m.defs, member(name, nil))
	schema := ordered(q.Schema)
	m.defs = m.defs.With(name, (&scope{composer: m, name: name, root: schema}).moved(schema))
}

// answer returns the schema of the answer to one question.
func (m *composer) answer(q plan.Question) any {
	var value any = anyText
	if name := m.shared[jsonText(q.Schema)]; name != "" {
		value = fit.Object{member("$ref", "#/$defs/"+name)}
	} else if q.Schema != nil {
		schema := ordered(q.Schema)
		value = (&scope{composer: m, name: q.ID, root: schema}).moved(schema)
	}
	if len(q.Alternatives) > 1 {
		tool, _ := q.Call["_tool"].(string)
		value = m.once(tool, value)
	}
	return outcomes(value, q.Alternatives)
}

// once returns a schema that is to stand in several places: a reference to a definition, if it is
// not short.
func (m *composer) once(name string, schema any) any {
	if o, ok := schema.(fit.Object); ok && o.Has("$ref") || len(jsonText(schema)) < minShared {
		return schema
	}
	name = m.freeName(name)
	m.defs = append(m.defs, member(name, schema))
	return fit.Object{member("$ref", "#/$defs/"+name)}
}

// freeName returns a name for a definition that no other has.
func (m *composer) freeName(name string) string {
	name = fit.SafeName(name)
	for m.defs.Has(name) || slices.Contains(namedLater, name) {
		name += "_"
	}
	return name
}

// outcomes returns the schema of an outcome of a call, as [plan.ReadOutcome] takes it: with one
// alternative that of the value alone.
func outcomes(value any, alternatives []string) any {
	if len(alternatives) < 2 {
		return value
	}
	var branches []any
	for i, to := range alternatives {
		if slices.Contains(alternatives[:i], to) {
			continue
		}
		branches = append(branches, outcome(fit.Object{member("const", to)}, "value", value))
	}
	last := fit.Object{member("const", alternatives[len(alternatives)-1])}
	return fit.Object{member("anyOf", append(branches, outcome(last, "message", anyText)))}
}

func outcome(to fit.Object, name string, value any) fit.Object {
	return closedObject(fit.Object{member("to", to), member(name, value)}, nil, nil)
}

// member returns a member of an object.
func member(name string, value any) fit.Member { return fit.Member{Name: name, Value: value} }

// breaks reports why a value breaks a schema; nil stands for the schema of texts.
func breaks(of, value any, name string, options []schema.Option) error {
	if of == nil {
		of = anyText
	}
	compiled, err := schema.New(of, options...)
	if err != nil {
		return err
	}
	return compiled.Validate(value, name)
}
