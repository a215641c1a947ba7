package plan

import (
	"fmt"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/schema"
	"obelus/engine/spell"
	"obelus/store"
)

// declarations are the schemas that are declared for kinds, the newest last.
type declarations []Shown

// declarations returns those of the request's messages, or those that the model was shown that has
// made the plan.
func (r *Request) declarations() (all declarations) {
	for _, m := range r.Context {
		if m.Schema != nil {
			all = append(all, Shown{Kind: m.Kind, Instance: m.Instance, Schema: m.Schema})
		}
	}
	for _, kind := range r.Shown {
		if kind.Schema != nil {
			all = append(all, kind)
		}
	}
	return all
}

// of returns the schema that holds for a kind in an instance; the zero Node where none is declared.
func (d declarations) of(kind, instance string) (declared schema.Node, ok bool) {
	for _, one := range slices.Backward(d) {
		if one.Kind == kind && (one.Instance == "" || one.Instance == instance) {
			return schema.Node{Root: one.Schema, At: one.Schema}, true
		}
	}
	return declared, false
}

// sources tells where the values that a plan refers to may come from (protocol §7).
type sources struct {
	plan     *Plan
	exists   Exists
	declared declarations
	shown    []Shown // to the model that made the plan
	failed   error   // of exists
}

func newSources(p *Plan, request *Request, exists Exists) *sources {
	return &sources{plan: p, exists: exists, declared: request.declarations(), shown: request.Shown}
}

// instanceOf returns the instance for which call i reads; none for the output, which is -1.
func (s *sources) instanceOf(i int) string {
	if i < 0 {
		return ""
	}
	return s.plan.Calls[i].Instance
}

// known reports whether a value may come to be at a path that call i reads. What a schema rules out
// is an error by itself, and counts as known.
func (s *sources) known(i int, path store.Path) bool {
	return s.admission(i, path) != schema.Unnamed
}

// admission says whether a value may come to be at a path that call i reads: [schema.Unnamed] where
// nothing speaks of it. The log is looked up last.
func (s *sources) admission(i int, path store.Path) schema.Admission {
	bySchemas := s.bySchemas(i, path)
	if bySchemas == schema.Admitted {
		return bySchemas
	}
	there, err := s.exists(path, s.instanceOf(i))
	if err != nil {
		s.failed = err
	}
	if there {
		return schema.Admitted
	}
	return bySchemas
}

// bySchemas is admission by what schemas say: that of the kind, and those of results.
func (s *sources) bySchemas(i int, path store.Path) schema.Admission {
	if declared, ok := s.declared.of(path.Kind(), s.instanceOf(i)); ok {
		if byKind := declared.Admits(path.Segments()); byKind != schema.Unnamed {
			return byKind
		}
	}
	writers := s.writers(i, path)
	if len(writers) == 0 {
		return schema.Unnamed
	}
	best := schema.RuledOut
	for _, w := range writers {
		best = max(best, s.plan.Calls[w].admits(path))
	}
	return best
}

// writers lists the calls that may write what overlaps a path that call i reads.
func (s *sources) writers(i int, path store.Path) []int {
	if i < 0 {
		return s.plan.Graph.Writers[""].overlapping(path)
	}
	before, after := s.plan.Graph.SplitWriters(i, path)
	return slices.Concat(before, after)
}

// admits says whether what the call writes may have a value at a path that overlaps it.
func (c *Call) admits(path store.Path) schema.Admission {
	best := schema.RuledOut
	last := len(c.Output.Alternatives) - 1
	// What other methods leave there has more than the result.
	isResult := c.Definition.Result != nil && c.JoinMethod() == store.Set
	for i, alternative := range c.Output.Alternatives {
		mayFail := last > 0 && i == last
		for _, written := range alternative {
			if !written.Overlaps(path) {
				continue
			}
			if path.Contains(written) || mayFail || !isResult {
				return schema.Admitted
			}
			result := schema.Node{Root: c.Definition.Result, At: c.Definition.Result}
			best = max(best, result.Admits(path.Segments()[len(written.Segments()):]))
		}
	}
	return best
}

// refuseRuledOut refuses references to what a schema rules out, so that it can never be there. Its
// error is the log's.
func (c *planCompiler) refuseRuledOut() error {
	s := c.sources
	refuse := func(i int, path store.Path, report func(text string)) {
		if s.admission(i, path) == schema.RuledOut {
			report(fmt.Sprintf("it reads %s, which no schema allows to be there%s", path, c.hint(i, path)))
		}
	}
	for i, call := range s.plan.Calls {
		for _, path := range call.Refs {
			refuse(i, path, func(text string) { c.call(call, Faultf(CodeTypes, "%s", text)) })
		}
	}
	if s.plan.Output != nil {
		for _, path := range s.plan.Output.Reads() {
			refuse(-1, path, func(text string) {
				c.problems = append(c.problems, c.outputProblem(SeverityError, CodeTypes, "output: "+text))
			})
		}
	}
	return s.failed
}

// unresolved finds references to nothing: no call of the plan gives a value, nor does the context,
// and no schema says that it is to come.
func (c *planCompiler) unresolved() (all []Problem, err error) {
	s, p := c.sources, c.sources.plan
	for i, call := range p.Calls {
		for _, path := range call.After {
			if len(s.writers(i, path)) == 0 {
				all = c.warn(all, call, Faultf(CodeUnresolved, "_after: no other call writes %s, so that it is not waited for%s", path, c.hint(i, path)))
			}
		}
		for _, path := range call.ScopePaths {
			if kind := store.KindPath(path.Kind()); call.Issued["_scopes"] != nil && !s.known(i, kind) {
				all = c.mistaken(all, call, Faultf(CodeScope, "_scopes: %s", c.nowhere(i, []store.Path{kind}, "")))
			}
		}
		switch {
		case call.Instance == store.EveryInstance: // it runs for each instance there is, maybe none
		case c.strict:
			all = c.toNothing(all, i)
		default:
			// An open _output may leave members unnamed that a person knows of.
			known := func(path store.Path) bool { return s.known(i, path) || len(s.writers(i, path)) > 0 }
			var lacking []store.Path
			for _, part := range templates(call) {
				lacking = append(lacking, part.MissingIn(known)...)
			}
			if len(lacking) > 0 {
				all = c.warn(all, call, Faultf(CodeUnresolved, "%s", c.nowhere(i, lacking, ": the call will wait for it")))
			}
		}
	}
	if p.Output != nil {
		known := func(path store.Path) bool { return s.known(-1, path) || !c.strict && len(s.writers(-1, path)) > 0 }
		if lacking := p.Output.MissingIn(known); len(lacking) > 0 {
			severity := SeverityWarning
			if c.strict {
				severity = SeverityError
			}
			all = append(all, c.outputProblem(severity, CodeUnresolved, "output: "+c.nowhere(-1, lacking, "")))
		}
	}
	return all, s.failed
}

// toNothing finds the references to nothing of call i, which a model has planned, one by one. Those
// without which a parameter can't be complete are errors; others are told.
func (c *planCompiler) toNothing(all []Problem, i int) []Problem {
	s, call := c.sources, c.sources.plan.Calls[i]
	known := func(path store.Path) bool { return s.known(i, path) }
	for _, part := range templates(call) {
		missing := part.MissingIn(known)
		for _, path := range part.Reads() {
			if known(path) {
				continue
			}
			err := Faultf(CodeUnresolved, "%s: %s", part.Name, c.nowhere(i, []store.Path{path}, ""))
			if part.Name != "_if" && slices.Contains(missing, path) {
				all = c.mistaken(all, call, err)
			} else {
				all = c.warn(all, call, err)
			}
		}
	}
	return all
}

// maxHints is how often a check looks for what may be meant.
const maxHints = 100

// nowhere describes paths that no call and no value gives for call i, and the consequence.
func (c *planCompiler) nowhere(i int, paths []store.Path, then string) string {
	s := c.sources
	names := make([]string, len(paths))
	hint := ""
	for n, path := range paths {
		names[n] = path.String()
		if hint == "" {
			hint = c.hint(i, path)
		}
	}
	slices.Sort(names)
	listed := strings.Join(slices.Compact(names), ", ")
	if writers := s.writers(i, paths[0]); len(writers) > 0 {
		return fmt.Sprintf("the _output of %s does not name %s%s", s.plan.Graph.Label(writers[0]), listed, hint)
	}
	text := "nothing in the plan writes " + listed + ", and the context does not hold it"
	if c.strict {
		then = ", nor does a schema name it"
		if _, isDeclared := s.declared.of(paths[0].Kind(), s.instanceOf(i)); hint == "" && !isDeclared {
			then += fmt.Sprintf(" (what is to come from outside needs a schema of %s)", store.KindPath(paths[0].Kind()))
		}
	}
	return text + then + hint
}

// hint returns what may be meant by a path that nothing writes for call i, unless enough has been
// looked for.
func (c *planCompiler) hint(i int, path store.Path) string {
	if c.hints >= maxHints {
		return ""
	}
	c.hints++
	if hint := c.sources.plan.Graph.elsewhere(i, path); hint != "" {
		return hint
	}
	return c.sources.near(path)
}

// near is a hint to a path that differs from another in one key, or in its kind, and that a value
// or a schema has.
func (s *sources) near(path store.Path) string {
	kinds := map[string]bool{}
	for _, one := range s.declared {
		kinds[one.Kind] = true
	}
	for _, shown := range s.shown {
		kinds[shown.Kind] = true
	}
	for _, call := range s.plan.Calls {
		for _, written := range call.Output.Writes() {
			kinds[written.Kind()] = true
		}
	}
	if !kinds[path.Kind()] {
		kind := spell.Nearest(path.Kind(), jsonvalue.SortedKeys(kinds))
		if kind == "" {
			return ""
		}
		near := store.KindPath(kind)
		for _, segment := range path.Segments() {
			near = near.Child(segment)
		}
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	segments, at := path.Segments(), store.KindPath(path.Kind())
	for n, segment := range segments {
		names := s.namesAt(at)
		if !slices.Contains(names, segment) {
			name := spell.Nearest(segment, names)
			if name == "" || len(segment) < minMisspelt {
				return ""
			}
			for at = at.Child(name); n+1 < len(segments); n++ {
				at = at.Child(segments[n+1])
			}
			return fmt.Sprintf(" (did you mean %q?)", at)
		}
		at = at.Child(segment)
	}
	return ""
}

// minMisspelt is how long a key is at least that is taken for a misspelt one.
const minMisspelt = 3

// namesAt lists the members that a value or a schema has at a path.
func (s *sources) namesAt(at store.Path) []string {
	segments := at.Segments()
	declared, _ := s.declared.of(at.Kind(), "")
	names := declared.Descendant(segments).Names()
	for _, shown := range s.shown {
		if shown.Kind == at.Kind() {
			object, _ := schema.ValueAt(shown.Value.Value, segments).(map[string]any)
			names = append(names, jsonvalue.SortedKeys(object)...)
		}
	}
	for _, call := range s.plan.Calls {
		for _, written := range call.Output.Writes() {
			if below := written.Segments(); at.Contains(written) && len(below) > len(segments) {
				names = append(names, below[len(segments)])
			}
			if written.Contains(at) && call.Definition.Result != nil {
				result := schema.Node{Root: call.Definition.Result, At: call.Definition.Result}
				names = append(names, result.Descendant(segments[len(written.Segments()):]).Names()...)
			}
		}
	}
	return names
}

// elsewhere is a hint to what may be meant by a path that nothing writes for call i, or
// for what no call reads with -1: what another instance's call writes there, or others
// at a path of nearly that name.
func (g *graph) elsewhere(i int, path store.Path) string {
	instance := ""
	if i >= 0 {
		instance = g.calls[i].Instance
	}
	hint, nearest, seen := "", spell.MaxSpelled, 0
	for w, call := range g.calls {
		if seen > manyPaths {
			break
		}
		sees := call.Instance == "" || call.Instance == instance
		for _, written := range call.Output.Writes() {
			if w == i && written.Overlaps(path) {
				return fmt.Sprintf(" (the call itself writes %s, and that is after it has read)", written)
			}
			if seen++; !sees && written.Overlaps(path) {
				return fmt.Sprintf(" (%s writes %s for %s alone)", g.Label(w), written, g.instances(w))
			}
			if distance, ok := pathDistance(path, written); ok && sees && w != i && distance < nearest {
				hint, nearest = fmt.Sprintf(" (did you mean %q?)", written), distance
			}
		}
	}
	return hint
}

// instances names the instance of a call, or those of the call as written.
func (g *graph) instances(i int) string {
	same := func(j int) bool { return j >= 0 && j < len(g.calls) && g.calls[j].Written == g.calls[i].Written }
	if g.calls[i].Instance == store.EveryInstance || same(i-1) || same(i+1) {
		return "each instance"
	}
	return fmt.Sprintf("the instance %q", g.calls[i].Instance)
}

// manyPaths is among how many paths, about, such a hint is looked for.
const manyPaths = 1000

// pathDistance returns the distance between the keys in which two paths differ ([spell.Distance]).
// It reports false where they differ in more than one key, or one is no misspelling of the other.
func pathDistance(path, other store.Path) (distance int, ok bool) {
	a, b := path.Segments(), other.Segments()
	if path.Kind() != other.Kind() || len(a) != len(b) {
		return 0, false
	}
	for i := range a {
		switch {
		case a[i] == b[i]:
		case ok || len(a[i]) < minMisspelt || spell.Nearest(a[i], b[i:i+1]) == "" || numbered([]rune(a[i]), []rune(b[i])):
			return 0, false
		default:
			distance, ok = spell.Distance([]rune(a[i]), []rune(b[i])), true
		}
	}
	return distance, ok
}
