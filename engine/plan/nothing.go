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

// declaredKinds returns the schemas that the request's messages declare last, by kind, or those that
// the model was shown that has made the plan.
func (r *Request) declaredKinds() map[string]any {
	declared := map[string]any{}
	for _, m := range r.Context {
		if m.Schema != nil {
			declared[m.Kind] = m.Schema
		}
	}
	for _, kind := range r.Shown {
		if kind.Schema != nil && kind.Instance == "" {
			declared[kind.Kind] = kind.Schema
		}
	}
	return declared
}

// sources tells where the values that a plan refers to may come from (protocol §7).
type sources struct {
	plan     *Plan
	exists   Exists
	declared map[string]any // schemas, by kind
	shown    []Shown        // to the model that made the plan
	failed   error          // of exists
}

func newSources(p *Plan, request *Request, exists Exists) *sources {
	return &sources{plan: p, exists: exists, declared: request.declaredKinds(), shown: request.Shown}
}

// instanceOf returns the instance for which call i reads; none for the output, which is -1.
func (s *sources) instanceOf(i int) string {
	if i < 0 {
		return ""
	}
	return s.plan.Calls[i].Instance
}

// admission says whether a value may come to be at a path that call i reads: [schema.Unnamed] where
// nothing speaks of it.
func (s *sources) admission(i int, path store.Path) schema.Admission {
	there, err := s.exists(path, s.instanceOf(i))
	if err != nil {
		s.failed = err
	}
	if there {
		return schema.Admitted
	}
	declared, isDeclared := s.declared[path.Kind()]
	byKind := schema.Node{Root: declared, At: declared}.Admits(path.Segments())
	writers := s.writers(i, path)
	if isDeclared && (byKind != schema.Unnamed || len(writers) == 0) {
		return byKind
	}
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
	for i, alternative := range c.Output.Alternatives {
		mayFail := i > 0 && i == len(c.Output.Alternatives)-1
		for _, written := range alternative {
			switch {
			case !written.Overlaps(path):
			case path.Contains(written), mayFail, c.Definition.Result == nil, c.JoinMethod() != store.Set:
				return schema.Admitted
			default:
				result := schema.Node{Root: c.Definition.Result, At: c.Definition.Result}
				best = max(best, result.Admits(path.Segments()[len(written.Segments()):]))
			}
		}
	}
	return best
}

// ruledOut finds the references to what a schema rules out, so that it can never be there.
func (t *typeChecker) ruledOut(request *Request) (all []Problem) {
	s := newSources(t.plan, request, t.exists)
	c := planCompiler{file: request.Name}
	for i, call := range t.plan.Calls {
		for _, path := range call.Refs {
			if s.admission(i, path) == schema.RuledOut {
				all = append(all, c.problem(call, SeverityError, Faultf(CodeTypes, "it reads %s, which no schema allows to be there%s", path, s.hint(i, path))))
			}
		}
	}
	if t.plan.Output != nil {
		for _, path := range t.plan.Output.Reads() {
			if s.admission(-1, path) == schema.RuledOut {
				all = append(all, Problem{
					File: request.Name, Line: request.OutputLine, Severity: SeverityError, Code: CodeTypes,
					Message: fmt.Sprintf("output: it reads %s, which no schema allows to be there%s", path, s.hint(-1, path)),
				})
			}
		}
	}
	return all
}

// unresolved finds references to nothing: no call of the plan gives a value, nor does the context,
// and no schema says that it is to come. line is the output's.
func (c *planCompiler) unresolved(s *sources, line int) (all []Problem, err error) {
	p := s.plan
	for i, call := range p.Calls {
		known := func(path store.Path) bool { return s.admission(i, path) != schema.Unnamed }
		var lacking, doubtful []store.Path
		for _, part := range templates(call) {
			if missing := part.MissingIn(known); c.strict && part.Name == "_if" {
				doubtful = append(doubtful, missing...)
			} else {
				lacking = append(lacking, missing...)
			}
		}
		for _, path := range call.After {
			if len(s.writers(i, path)) == 0 {
				all = c.warn(all, call, Faultf(CodeUnresolved, "_after: no other call writes %s, so that it is not waited for%s", path, c.hint(s, i, path)))
			}
		}
		for _, path := range call.ScopePaths {
			if kind := store.KindPath(path.Kind()); call.Issued["_scopes"] != nil && s.admission(i, kind) == schema.Unnamed {
				all = c.mistaken(all, call, Faultf(CodeScope, "_scopes: %s", c.nowhere(s, i, []store.Path{kind}, "")))
			}
		}
		if call.Instance == store.EveryInstance { // it runs for each instance there is, maybe none
			continue
		}
		if len(lacking) > 0 {
			all = c.mistaken(all, call, Faultf(CodeUnresolved, "%s", c.nowhere(s, i, lacking, ": the call will wait for it")))
		}
		if c.strict { // alternatives of || may lack a value
			for _, path := range call.Refs {
				if !slices.Contains(lacking, path) && !known(path) {
					doubtful = append(doubtful, path)
				}
			}
		}
		if len(doubtful) > 0 {
			all = c.warn(all, call, Faultf(CodeUnresolved, "%s", c.nowhere(s, i, doubtful, "")))
		}
	}
	if p.Output != nil {
		known := func(path store.Path) bool { return s.admission(-1, path) != schema.Unnamed }
		if lacking := p.Output.MissingIn(known); len(lacking) > 0 {
			problem := Problem{File: c.file, Line: line, Severity: SeverityWarning, Code: CodeUnresolved, Message: "output: " + c.nowhere(s, -1, lacking, "")}
			if c.strict {
				problem.Severity = SeverityError
			}
			all = append(all, problem)
		}
	}
	return all, s.failed
}

// maxHints is how often a check looks for what may be meant.
const maxHints = 100

// nowhere describes paths that no call and no value gives for call i, and the consequence.
func (c *planCompiler) nowhere(s *sources, i int, paths []store.Path, then string) string {
	names := make([]string, len(paths))
	hint := ""
	for n, path := range paths {
		names[n] = path.String()
		if hint == "" {
			hint = c.hint(s, i, path)
		}
	}
	slices.Sort(names)
	text := "nothing in the plan writes " + strings.Join(slices.Compact(names), ", ") + ", and the context does not hold it"
	if c.strict {
		then = ", nor does a schema name it"
		if kind := paths[0].Kind(); hint == "" && s.declared[kind] == nil {
			then += fmt.Sprintf(" (what is to come from outside needs a schema of %s)", store.KindPath(kind))
		}
	}
	return text + then + hint
}

// hint returns what may be meant by a path that nothing writes for call i, unless enough has been
// looked for.
func (c *planCompiler) hint(s *sources, i int, path store.Path) string {
	if c.hints >= maxHints {
		return ""
	}
	c.hints++
	return s.hint(i, path)
}

func (s *sources) hint(i int, path store.Path) string {
	if hint := s.plan.Graph.elsewhere(i, path); hint != "" {
		return hint
	}
	return s.near(path)
}

// near is a hint to a path that differs from another in one key, or in its kind, and that a value
// or a schema has.
func (s *sources) near(path store.Path) string {
	kinds := map[string]bool{}
	for kind := range s.declared {
		kinds[kind] = true
	}
	for _, shown := range s.shown {
		kinds[shown.Kind] = true
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
		names := s.namesAt(at, segments[:n])
		if !slices.Contains(names, segment) {
			name := spell.Nearest(segment, names)
			if name == "" {
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

// namesAt lists the members that a value or a schema has at a path.
func (s *sources) namesAt(at store.Path, segments []string) []string {
	declared := s.declared[at.Kind()]
	names := schema.Node{Root: declared, At: declared}.Descendant(segments).Names()
	for _, shown := range s.shown {
		if shown.Kind == at.Kind() {
			object, _ := schema.ValueAt(shown.Value.Value, segments).(map[string]any)
			names = append(names, jsonvalue.SortedKeys(object)...)
		}
	}
	for _, call := range s.plan.Calls {
		for _, written := range call.Output.Writes() {
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
		case ok || len(a[i]) < 3 || spell.Nearest(a[i], b[i:i+1]) == "" || numbered([]rune(a[i]), []rune(b[i])):
			return 0, false
		default:
			distance, ok = spell.Distance([]rune(a[i]), []rune(b[i])), true
		}
	}
	return distance, ok
}
