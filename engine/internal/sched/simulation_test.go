package sched

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

var (
	seeds     = flag.Int("seeds", 2000, "how many seeds are simulated")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

// TestSimulation drives a State alone, with no runner, no log and no goroutine, through random plans
// of all that the scheduler decides about. Events come in random orders; steps are undone, one or two
// at a time, and made again; runs are stopped and resumed, calls that failed are retried. After each
// step it compares where the calls stand with what a plan's author expects, who knows what each call
// reads and writes, and not how the scheduler finds out. A plan comes to the same end by each order,
// at whatever limit.
//
//	go test ./engine/internal/sched -run TestSimulation -seeds 100000 -seed 7
func TestSimulation(t *testing.T) {
	seen := map[string]int{}
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		a := randomAuthor(rand.New(rand.NewPCG(seed, 0)))
		err := a.compile()
		if a.isCircular() != (err != nil) {
			t.Fatalf("seed %d: calls wait for each other in a circle: %t, and the plan: %v", seed, a.isCircular(), err)
		}
		if err != nil {
			seen["refused"]++
			continue
		}
		var first []string
		for order := range uint64(3) {
			s := &simulation{t: t, author: a, r: rand.New(rand.NewPCG(seed, order+1)), seen: seen, name: fmt.Sprintf("seed %d, order %d", seed, order)}
			end := s.run()
			if first == nil && !s.early {
				first = end
			}
			if !s.early && !sameEnds(first, end) {
				s.fatalf("it ended as\n%s\nand by another order as\n%s", strings.Join(end, "\n"), strings.Join(first, "\n"))
			}
		}
	}
	t.Log(seen)
	if *seeds < 1000 {
		return
	}
	for _, what := range []string{
		"refused", "backward", "instance", "scope", "fire-and-forget", "write after read", "waits", "comes", "waits in the end", "held", "approved", "rejected",
		"corrected", "plan fault", "skipped", "failed", "handled", "parked", "queued for room", "retry", "delegate waits", "returned", "left to a resume",
		"undone", "two undone", "after", "after a later call", "waits for a time", "its time comes", "rests", "rests again", "rests on", "retried after a rest", "skipped before its time", "condition holds", "condition fails", "condition waits", "settled early", "cut off", "in doubt", "cut off, detached", "resumed", "retried by hand", "overtaken",
	} {
		if seen[what] == 0 {
			t.Errorf("it never came to %q: the simulation is not what it was", what)
		}
	}
}

// sameEnds compares how calls ended, but for those that were cut off.
func sameEnds(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool {
		return a == b || strings.HasSuffix(a, "cut off") || strings.HasSuffix(b, "cut off")
	})
}

// author is a random plan, as its author knows it.
type author struct {
	calls   []authoredCall
	foreign []message // that come from outside, each at some time
	held    []string  // tools whose calls are held
	limits  map[string]int

	plan   *plan.Plan
	awaits [][]bool // by two calls: the first reads what the second may write
	asks   [][]bool // by two calls: so does its condition
	leads  [][]bool // by two calls: the second awaits the first, directly or not
	yields [][]bool // by two calls: the first writes over what the second reads, which does not await it
}

// authoredCall is a call of a plan, with what happens to it whenever it runs.
type authoredCall struct {
	tool, instance string
	params         [][]string // by parameter, its alternatives: references, or a literal in quotes
	scopes         []string
	after          []string   // paths whose writers it waits for
	condition      []string   // as a parameter; none of a call that runs in any case
	denies         bool       // its condition does not hold where there is a value
	in             int        // seconds after which it is ready
	outputs        [][]string // alternatives of its output path; none of a fire-and-forget call

	retries  int // attempts that fail and are retried
	fails    bool
	misfits  bool // its method does not fit the value at its path
	waits    int  // how often its delegate waits
	decision string
	corrects bool // the approval corrects an argument
	inDoubt  bool // where it is cut off, a person has to decide
	again    bool // it handles no failure; if it fails, a person retries it, and then it does not
}

// message is an object with the keys x and y, or a text, at a path.
type message struct {
	path, instance string
	call           int   // that wrote it, -1 for a foreign one
	n              int64 // when it came
}

func randomAuthor(r *rand.Rand) *author {
	a := &author{limits: map[string]int{"t0": r.IntN(3), "t1": r.IntN(2)}}
	keys := "abcd"[:1+r.IntN(4)]
	state := func() string {
		path := "†state." + string(keys[r.IntN(len(keys))])
		if r.IntN(4) == 0 {
			path += []string{".x", ".y"}[r.IntN(2)]
		}
		return path
	}
	instance := func(n int) string {
		if r.IntN(n) == 0 {
			return []string{"one", "two"}[r.IntN(2)]
		}
		return ""
	}
	backward, calls, tools, detached := r.IntN(4) == 0, 1+r.IntN(9), 5, 6
	if r.IntN(4) == 0 { // many calls of two activities
		a.limits, calls, tools, detached = map[string]int{"t0": 1, "t1": 1}, 6+r.IntN(10), 3, 2
	}
	var written []string // paths that calls so far write
	reference := func() string {
		switch n := r.IntN(12); {
		case n == 0:
			return fmt.Sprintf("†input.i%d%s", r.IntN(3), []string{"", ".x"}[r.IntN(2)])
		case n == 1 && len(written) > 0:
			return written[r.IntN(len(written))] + ".z" // the values have no such key
		case n < 4 || backward || len(written) == 0:
			return state()
		}
		return written[r.IntN(len(written))]
	}
	for i := range calls {
		c := authoredCall{tool: fmt.Sprint("t", r.IntN(tools)), instance: instance(6)}
		for range r.IntN(3) {
			alternatives := []string{reference()}
			switch r.IntN(5) {
			case 0:
				alternatives = append(alternatives, reference())
			case 1:
				alternatives = append(alternatives, "'none'")
			}
			c.params = append(c.params, alternatives)
		}
		if r.IntN(8) == 0 {
			c.scopes = []string{state()}
		}
		if r.IntN(6) == 0 {
			c.in = r.IntN(4)
		}
		if r.IntN(8) == 0 {
			c.after = []string{state()}
		}
		if r.IntN(5) == 0 {
			c.condition, c.denies = []string{reference()}, r.IntN(3) == 0
			if r.IntN(4) == 0 {
				c.condition = append(c.condition, []string{reference(), "'none'"}[r.IntN(2)])
			}
		}
		if r.IntN(detached) > 0 {
			c.outputs = [][]string{{state()}}
			if r.IntN(6) == 0 {
				c.outputs[0] = append(c.outputs[0], "†state.also"+fmt.Sprint(i))
			}
			if r.IntN(3) == 0 {
				c.outputs = append(c.outputs, []string{fmt.Sprint("†error.e", i)})
			}
			for _, paths := range c.outputs {
				written = append(written, paths...)
			}
			c.retries, c.waits = max(0, r.IntN(5)-2), max(0, r.IntN(8)-5)
			c.misfits, c.inDoubt = r.IntN(25) == 0, r.IntN(4) == 0
		}
		c.fails = r.IntN(4) == 0
		c.again = len(c.outputs) < 2 && r.IntN(3) == 0
		c.decision, c.corrects = []string{journal.Approved, journal.Approved, journal.Rejected}[r.IntN(3)], r.IntN(2) == 0
		a.calls = append(a.calls, c)
	}
	for range r.IntN(4) {
		path := fmt.Sprintf("†input.i%d%s", r.IntN(3), []string{"", ".x"}[r.IntN(2)])
		a.foreign = append(a.foreign, message{path, instance(4), -1, 0})
	}
	if r.IntN(3) == 0 {
		a.held = []string{"t2", "t3"}[:1+r.IntN(2)]
	}
	return a
}

// compile compiles the plan. Its error is one that refuses it.
func (a *author) compile() error {
	a.order()
	registry, request := plan.NewRegistry(), &plan.Request{}
	nothing := plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, nil })
	for _, c := range a.calls {
		if registry.Tools[c.tool] == nil {
			tool, err := plan.NewTool(c.tool, map[string]any{})
			if err != nil {
				return err
			}
			registry.Tools[c.tool] = tool
			registry.Activities[c.tool] = &plan.Registered{Activity: nothing, Concurrency: a.limits[c.tool]}
		}
		call := map[string]any{"_tool": c.tool}
		if c.instance != "" {
			call["_instance"] = c.instance
		}
		for n, alternatives := range c.params {
			call[fmt.Sprint("p", n)] = strings.Join(alternatives, " || ")
		}
		if c.in > 0 {
			call["_in"] = fmt.Sprintf("%ds", c.in)
		}
		for _, path := range c.after {
			call["_after"] = path
		}
		if len(c.condition) > 0 {
			text := strings.Join(c.condition, " || ")
			if call["_if"] = text; c.denies {
				call["_if"] = "(" + text + ") == null"
			}
		}
		if len(c.scopes) > 0 {
			scopes := []any{}
			for _, scope := range c.scopes {
				scopes = append(scopes, strings.TrimPrefix(scope, store.Dagger))
			}
			call["_scopes"] = scopes
		}
		if len(c.outputs) > 0 {
			var alternatives []string
			for _, paths := range c.outputs {
				alternatives = append(alternatives, strings.Join(paths, " && "))
			}
			call["_outputPath"] = strings.Join(alternatives, " || ")
		}
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	request, err := request.Normalize()
	if err != nil {
		return err
	}
	a.plan, err = plan.CompileRequest(request, registry, plan.NothingExists)
	return err
}

// order finds which calls have to wait for which, by the paths alone.
func (a *author) order() {
	table := func() (t [][]bool) {
		for range a.calls {
			t = append(t, make([]bool, len(a.calls)))
		}
		return t
	}
	a.awaits, a.asks, a.leads, a.yields = table(), table(), table(), table()
	for j := range a.calls {
		for _, path := range a.calls[j].references() {
			for _, i := range a.writersFor(j, path) {
				a.awaits[j][i] = true
			}
		}
		for _, path := range a.calls[j].after {
			for i := range a.calls {
				a.awaits[j][i] = a.awaits[j][i] || i != j && a.mayWrite(i, j, path)
			}
		}
		for _, path := range referencesIn(a.calls[j].condition) {
			for _, i := range a.writersFor(j, path) {
				a.asks[j][i] = true
			}
		}
		for _, path := range a.calls[j].scopes {
			for i := range j {
				a.awaits[j][i] = a.awaits[j][i] || a.mayWrite(i, j, path)
			}
		}
	}
	for more := true; more; {
		more = false
		for i := range a.calls {
			for j := range a.calls {
				behind := func(k int) bool { return a.awaits[k][i] && a.leads[k][j] }
				if !a.leads[i][j] && (a.awaits[j][i] || slices.ContainsFunc(a.indexes(), behind)) {
					a.leads[i][j], more = true, true
				}
			}
		}
	}
	for j, c := range a.calls {
		for _, path := range referencesIn(c.condition) {
			for k := j + 1; k < len(a.calls); k++ {
				asks := a.mayWrite(k, j, path) && a.leads[k][j] // it is to read the value that its parameters read
				a.asks[j][k], a.awaits[j][k] = a.asks[j][k] || asks, a.awaits[j][k] || asks
			}
		}
		for _, path := range append(c.references(), c.scopes...) {
			for k := j + 1; k < len(a.calls); k++ {
				a.yields[k][j] = a.yields[k][j] || a.mayWrite(k, j, path) && !a.leads[k][j]
			}
		}
	}
}

// isCircular reports whether calls wait for each other: taking away those that wait for none of the
// others, again and again, leaves some.
func (a *author) isCircular() bool {
	left := a.indexes()
	for n := -1; n != len(left); {
		n = len(left)
		before := slices.Clone(left)
		left = slices.DeleteFunc(left, func(i int) bool {
			return !slices.ContainsFunc(before, func(j int) bool { return a.awaits[i][j] || a.yields[i][j] })
		})
	}
	return len(left) > 0
}

func (a *author) indexes() (all []int) {
	for i := range a.calls {
		all = append(all, i)
	}
	return all
}

// references lists the paths that a call's parameters and its condition refer to.
func (c *authoredCall) references() (all []string) {
	return append(referencesIn(slices.Concat(c.params...)), referencesIn(c.condition)...)
}

func referencesIn(alternatives []string) (all []string) {
	for _, path := range alternatives {
		if strings.HasPrefix(path, store.Dagger) {
			all = append(all, path)
		}
	}
	return all
}

// writersFor lists the calls whose writes a reader has to wait for: those before it, or, if there are
// none, those after it, for no value exists when the tick begins.
func (a *author) writersFor(reader int, path string) (all []int) {
	for i := range a.calls {
		if i == reader && len(all) > 0 {
			break
		}
		if i != reader && a.mayWrite(i, reader, path) {
			all = append(all, i)
		}
	}
	return all
}

// mayWrite reports whether a call may write what a reader sees of a path.
func (a *author) mayWrite(i, reader int, path string) bool {
	overlap := func(p string) bool { return contains(p, path) || contains(path, p) }
	return sees(a.calls[reader].instance, a.calls[i].instance) && slices.ContainsFunc(slices.Concat(a.calls[i].outputs...), overlap)
}

func sees(reader, writer string) bool { return writer == "" || writer == reader }

// contains reports whether a path is another or above it.
func contains(path, other string) bool { return path == other || strings.HasPrefix(other, path+".") }

// simulation is one run of a plan.
type simulation struct {
	*author
	t     testing.TB
	r     *rand.Rand
	seen  map[string]int // how often what has happened
	name  string
	state *State

	n       int64         // of the newest event
	now     time.Duration // since the run was opened
	pending []message     // foreign ones that have not come
	cut     map[int]bool  // fire-and-forget calls that were cut off
	retried bool          // calls that failed have been retried by hand
	early   bool          // they were before all was over: calls that were held now wait for them
	facts
}

// facts is what has happened, as far as a step may be undone.
type facts struct {
	messages []message
	calls    []callFacts
}

// callFacts is what has happened to a call.
type callFacts struct {
	read     bool // it has started, or is held with the values that it read
	started  bool
	ends     int // how often it has settled
	attempts int // that have failed
	waits    int // of its delegate
	wrote    []string
}

func (f facts) clone() facts { return facts{slices.Clone(f.messages), slices.Clone(f.calls)} }

func (s *simulation) fatalf(format string, args ...any) {
	s.t.Helper()
	var calls []string
	for i, c := range s.author.calls {
		calls = append(calls, fmt.Sprintf("%d %+v: %s, %s", i, c, s.state.Calls[i].Phase, s.state.Calls[i].Record.Status))
	}
	s.t.Fatalf("%s: %s\n%s", s.name, fmt.Sprintf(format, args...), strings.Join(calls, "\n"))
}

// start makes the state of the tick from records.
func (s *simulation) start(records []journal.Record) {
	approve := plan.Policy{Tools: s.held}
	config := Config{Plan: s.plan, Approve: approve, Parallel: 1 + s.r.IntN(4)}
	s.state = New(config, func(i int) journal.Record { return records[i] })
	for i := range records {
		for _, path := range records[i].Writes {
			s.state.Calls[i].Written = append(s.state.Calls[i].Written, store.MustParsePath(path))
		}
	}
	s.state.Restore()
}

func (s *simulation) newRecord(i int) journal.Record {
	c := s.plan.Calls[i]
	return journal.Record{Call: journal.CallID(1, c.Position), Position: c.Position, Tool: c.Tool, Status: journal.Blocked, Unstored: c.FireAndForget()}
}

// run carries the plan to its end, and says how each call ended.
func (s *simulation) run() (end []string) {
	s.facts, s.pending, s.cut = facts{calls: make([]callFacts, len(s.author.calls))}, slices.Clone(s.foreign), map[int]bool{}
	s.noteFeatures()
	var records []journal.Record
	for i := range s.author.calls {
		records = append(records, s.newRecord(i))
	}
	s.start(records)
	s.step(nil)
	for stops := 0; ; {
		inside := s.state.In(Running)+s.state.In(Paused) > 0
		steps := 25 // between two stops
		if slices.ContainsFunc(s.state.Calls, func(c Call) bool { return c.Phase == Paused && c.Step == 0 }) {
			steps = 2
		}
		outside := s.outside()
		switch {
		case stops < 2 && s.r.IntN(steps) == 0:
			stops++
			s.stop()
			s.resume(s.r.IntN(2) == 0)
		case !inside && s.state.In(Held) > 0 && s.r.IntN(3) == 0 && s.retry():
			s.early = true
		case len(outside) > 0 && (!inside || s.r.IntN(3) == 0):
			outside[s.r.IntN(len(outside))]()
			s.step(nil)
		case inside:
			s.step(s.happen)
		case s.state.In(Stopped) > 0:
			s.resume(true)
		case s.retry():
		default:
			s.checkEnd()
			for i := range s.state.Calls {
				end = append(end, s.endOf(i))
			}
			return end
		}
	}
}

// noteFeatures counts what the plan has.
func (s *simulation) noteFeatures() {
	for i, c := range s.author.calls {
		s.note("instance", c.instance != "")
		s.note("scope", len(c.scopes) > 0)
		s.note("fire-and-forget", len(c.outputs) == 0)
		for _, path := range c.after {
			s.note("after", true)
			s.note("after a later call", slices.ContainsFunc(s.indexes()[i+1:], func(k int) bool { return s.mayWrite(k, i, path) }))
		}
		s.note("backward", slices.Contains(s.awaits[i][i+1:], true))
		s.note("write after read", slices.Contains(s.yields[i], true))
	}
}

func (s *simulation) note(what string, happened bool) {
	if happened {
		s.seen[what]++
	}
}

// endOf says how a call has ended.
func (s *simulation) endOf(i int) string {
	r := &s.state.Calls[i].Record
	if s.cut[i] {
		return r.Call + " cut off"
	}
	return fmt.Sprintf("%s %s %v %s", r.Call, r.Status, r.Writes, r.Reason)
}

// step has things happen within a step, and all that can follow. Some steps are undone, with or
// without one that was made before they were committed, and made again.
func (s *simulation) step(happen func()) {
	before, facts := viewOf(s.state), s.facts.clone()
	take := func() {
		s.state.Begin(true)
		s.state.ApplyTime(s.now)
		for range 1 + s.r.IntN(3) {
			if happen != nil && s.state.In(Running)+s.state.In(Paused) > 0 {
				happen()
			}
		}
		s.advance()
		s.check()
	}
	take()
	var undo []Undo
	switch s.r.IntN(6) {
	case 0:
		s.note("undone", true)
		undo = []Undo{s.state.Undo()}
	case 1:
		first := s.state.KeepUndo()
		take()
		if s.r.IntN(2) == 0 {
			return
		}
		s.note("two undone", true)
		undo = []Undo{s.state.Undo(), first}
	default:
		return
	}
	s.state.Revert(undo...)
	s.facts = facts
	if after := viewOf(s.state); !reflect.DeepEqual(before, after) {
		s.fatalf("a step was undone, and\n%+v\nhas become\n%+v", before, after)
	}
	happen = nil
	take()
}

// view is all of a state that has to be the same after a step was undone. Parked calls are queued.
type view struct {
	calls           []Call
	number          [phases]int
	detachedRunning int
	busy            map[*plan.Registered]int
	parents         map[string]int
	waiting         []int
	ready, detached []int
	asking          []int
	due             []int // waiting calls with a time
	paused          []int
}

func viewOf(s *State) view {
	v := view{calls: slices.Clone(s.Calls), number: s.number, detachedRunning: s.detachedRunning, busy: map[*plan.Registered]int{}, parents: map[string]int{}}
	v.number[Queued] += v.number[Parked]
	v.number[Parked] = 0
	for a, n := range s.busy {
		if n != 0 {
			v.busy[a] = n
		}
	}
	maps.Copy(v.parents, s.parents)
	waiting := map[int]bool{}
	for _, calls := range s.waiting {
		for i := range calls {
			waiting[i] = true
		}
	}
	v.waiting = slices.Sorted(maps.Keys(waiting))
	queued := func(q queue, is ...Phase) (all []int) {
		for _, c := range q {
			if slices.Contains(is, s.Calls[c.call].Phase) { // else its pause has ended by another event
				all = append(all, c.call)
			}
		}
		return all
	}
	v.ready, v.detached, v.paused = queued(s.ready, Queued), queued(s.detached, Queued), queued(s.paused, Paused)
	v.asking = queued(s.asking, Queued)
	due := map[int]bool{}
	for _, i := range queued(s.paused, Waiting) {
		due[i] = s.Calls[i].Due != 0 // else it waits for something else by now
	}
	maps.DeleteFunc(due, func(_ int, is bool) bool { return !is })
	v.due = slices.Sorted(maps.Keys(due))
	for lot, parked := range s.parked {
		if lot.detached {
			v.detached = append(v.detached, parked...)
		} else {
			v.ready = append(v.ready, parked...)
		}
	}
	for _, q := range [][]int{v.ready, v.detached, v.asking, v.paused} {
		slices.Sort(q)
	}
	v.paused = slices.Compact(v.paused) // one may have waited for a time before
	for i := range v.calls {
		if c := &v.calls[i]; c.Phase == Parked {
			c.Phase = Queued
		}
		v.calls[i].saved = 0
	}
	return v
}

// outside lists what can come from outside between two steps.
func (s *simulation) outside() (events []func()) {
	if len(s.pending) > 0 {
		events = append(events, func() {
			n := s.r.IntN(len(s.pending))
			m := s.pending[n]
			s.pending = slices.Delete(s.pending, n, n+1)
			s.n++
			m.n = s.n
			s.messages = append(s.messages, m)
			waiting := s.state.In(Waiting)
			s.state.ApplyMessage(store.MustParsePath(m.path))
			s.note("comes", s.state.In(Waiting) < waiting)
		})
	}
	for i := range s.state.Calls {
		if c := &s.state.Calls[i]; c.Phase == Waiting && c.Due != 0 {
			events = append(events, func() {
				s.note("its time comes", true)
				s.now = max(s.now, c.Due)
				s.state.ApplyTime(s.now)
				if c.Phase == Waiting {
					s.fatalf("the time of call %d has come, and it waits", i)
				}
			})
		}
		if c := &s.state.Calls[i]; c.Phase == Waiting && c.Record.Child != "" {
			events = append(events, func() { s.state.Apply(Event{Kind: Arrived, Call: i}) })
		}
		if s.state.Calls[i].Phase != Held {
			continue
		}
		events = append(events, func() {
			c, hold := &s.author.calls[i], *s.state.Calls[i].Record.Hold
			hold.Decision = c.decision
			s.note(c.decision, true)
			if c.decision == journal.Approved && c.corrects && len(c.params) > 0 {
				hold.Corrected, hold.Arguments = []string{"p0"}, maps.Clone(hold.Arguments)
				hold.Arguments["p0"] = "corrected"
				s.note("corrected", true)
			}
			s.state.Apply(Event{Kind: Decided, Call: i, Hold: &hold})
		})
	}
	return events
}

// running lists the calls at work.
func (s *simulation) running() (all []int) {
	for i := range s.state.Calls {
		if s.state.Calls[i].Phase == Running {
			all = append(all, i)
		}
	}
	return all
}

// happen has something happen that can, to a call at work or by the time.
func (s *simulation) happen() {
	running := s.running()
	if due, ok := s.state.NextDue(); ok && (len(running) == 0 || s.r.IntN(4) == 0) {
		s.now = max(s.now, due)
		s.state.ApplyTime(s.now)
		return
	}
	if len(running) == 0 {
		return
	}
	i := running[s.r.IntN(len(running))]
	c, f := &s.author.calls[i], &s.facts.calls[i]
	switch {
	case s.r.IntN(10) == 0:
		s.note("returned", true)
		s.state.Apply(Event{Kind: Returned, Call: i})
	case f.waits < c.waits:
		f.waits++
		s.note("delegate waits", true)
		s.state.Change(i).Record.Child = fmt.Sprint("inside ", i)
		s.state.Apply(Event{Kind: Missing, Call: i, Due: time.Duration(s.r.IntN(2)) * (s.now + time.Second)})
	case f.attempts < c.retries:
		f.attempts++
		s.note("retry", true)
		pause := time.Duration(1+s.r.IntN(3)) * time.Second
		s.state.Change(i).Record.RetryAt = store.FormatDate(s.Now().Add(pause))
		s.pause(i, s.now+pause)
	default:
		s.finish(i)
	}
}

// pause has a call pause until it is due again: its run waits for that, or may end before.
func (s *simulation) pause(i int, due time.Duration) {
	e := Event{Kind: AttemptFailed, Call: i, Due: due}
	if s.r.IntN(2) == 0 {
		s.note("rests", true)
		e.Kind, s.state.Change(i).Record.Rests = Missing, true
	}
	s.state.Apply(e)
}

// finish settles a call at work, as its activity ends.
func (s *simulation) finish(i int) {
	c := &s.author.calls[i]
	s.settle(i, c.fails && !(s.retried && c.again), false)
}

// settle settles a call that is done or has failed: its last alternative takes a failure, unless that
// is a fault of the plan.
func (s *simulation) settle(i int, failed, fault bool) {
	c, status := &s.author.calls[i], journal.Done
	s.n++
	switch {
	case failed && (fault || len(c.outputs) < 2):
		status = journal.Failed
	case len(c.outputs) > 0:
		paths := c.outputs[0]
		if failed {
			paths = c.outputs[len(c.outputs)-1]
		}
		s.write(i, paths)
	}
	s.note("failed", status == journal.Failed)
	s.note("handled", failed && status == journal.Done)
	s.end(i, status)
}

func (s *simulation) write(i int, paths []string) {
	c := s.state.Change(i)
	c.Written, c.Record.Writes, s.facts.calls[i].wrote = nil, paths, paths
	for _, path := range paths {
		c.Written = append(c.Written, store.MustParsePath(path))
		s.messages = append(s.messages, message{path, s.author.calls[i].instance, i, s.n})
	}
}

func (s *simulation) end(i int, status journal.Status) {
	f := &s.facts.calls[i]
	f.ends++
	s.state.Apply(Event{Kind: Finished, Call: i, Status: status})
}

// advance evaluates calls until none can begin.
func (s *simulation) advance() {
	for {
		i, ok := s.state.Next()
		if !ok {
			return
		}
		s.evaluate(i)
	}
}

// evaluate has the scheduler decide about the next call, and checks that its author would agree.
func (s *simulation) evaluate(i int) {
	s.state.Dequeue(i)
	retries, begun := s.state.Calls[i].AwaitsRetry(), s.state.Calls[i].Step != 0
	d, err := s.state.Evaluate(s.t.Context(), i, s)
	if err != nil {
		s.fatalf("call %d: %v", i, err)
	}
	s.n++
	c, f := s.state.Change(i), &s.facts.calls[i]
	if (retries && begun) != (d.Action == Retry) {
		s.fatalf("call %d awaits a retry: %t, and the decision is %d", i, retries, d.Action)
	}
	if retries && !begun {
		due, _ := time.Parse(time.RFC3339, c.Record.RetryAt)
		if early := s.Now().Before(due); early != (d.Action == Wait) || early && !d.Due.Equal(due) {
			s.fatalf("call %d is to be tried again at %s, and the decision at %s is %d, for %s", i, due, s.Now(), d.Action, d.Due)
		}
		if d.Action == Wait {
			s.note("rests again", true)
			s.pause(i, d.Due.Sub(s.Now())+s.now)
			return
		}
		s.note("retried after a rest", d.Action == Start)
	}
	asks := c.Record.Hold == nil && len(s.author.calls[i].condition) > 0 && c.Record.If == nil
	scheduled := !asks && c.Record.Hold == nil && c.Record.At == 0 && !c.timed
	if asks {
		s.checkCondition(i, d)
	} else {
		s.checkTurn(i)
	}
	if h := c.Record.Hold; h != nil && (h.Decision == journal.Rejected) != (d.Action == Fail) {
		s.fatalf("call %d was %s, and the decision is %d", i, h.Decision, d.Action)
	}
	if c.Record.At == 0 {
		switch {
		case scheduled:
			s.checkSchedule(i, d)
		case !asks:
			s.checkDecision(i, d.Action)
		}
	}
	switch d.Action {
	case Start, Retry:
		if c.Record.At == 0 {
			c.Record.At = s.n
		}
		f.read, f.started, c.Record.WaitingOn = true, true, nil
		s.state.Apply(Event{Kind: Started, Call: i})
	case Hold:
		c.Record.At, c.Record.Hold = s.n, &journal.Hold{Arguments: d.Arguments}
		s.note("held", true)
		f.read = true
		s.state.Apply(Event{Kind: HeldBack, Call: i})
	case Wait:
		c.Record.WaitingOn = d.WaitsFor
		e := Event{Kind: Missing, Call: i}
		if scheduled {
			c.Record.Due, e.Due = store.FormatDate(d.Due), d.Due.Sub(s.Now())+s.now
		}
		s.note("waits", !scheduled)
		s.note("waits for a time", scheduled)
		s.state.Apply(e)
	case Confirm:
		if asks {
			c.Record.If = d.If
		}
		s.note("condition holds", asks)
		s.state.Apply(Event{Kind: Confirmed, Call: i})
	case Skip:
		c.Record.Reason, c.Record.At = d.Reason, s.n
		if asks {
			c.Record.If = d.If
		}
		s.note("skipped", true)
		s.note("condition fails", asks)
		s.end(i, journal.Skipped)
	case Reject:
		c.Record.At = s.n
		s.note("plan fault", true)
		s.settle(i, true, true)
	case Fail:
		s.settle(i, true, false)
	}
}

// checkTurn checks that nothing that a call has to wait for is left.
func (s *simulation) checkTurn(i int) {
	for j, awaits := range s.awaits[i] {
		if awaits && s.facts.calls[j].ends == 0 {
			s.fatalf("call %d has its turn before call %d, whose writes it reads, has settled", i, j)
		}
	}
	for j, yields := range s.yields[i] {
		if f := &s.facts.calls[j]; yields && !f.read && f.ends == 0 {
			s.fatalf("call %d has its turn before call %d has read what it writes over", i, j)
		}
	}
}

// checkCondition checks a decision about a call's condition: the calls that it refers to have settled,
// whatever else the call waits for.
func (s *simulation) checkCondition(i int, d Decision) {
	var waits bool
	for j := range s.author.calls {
		if s.asks[i][j] && s.facts.calls[j].ends == 0 {
			s.fatalf("the condition of call %d has its turn before call %d, whose writes it reads, has settled", i, j)
		}
		waits = waits || s.awaits[i][j] && s.facts.calls[j].ends == 0
	}
	c := &s.author.calls[i]
	has := func(path string) bool { return !strings.HasPrefix(path, store.Dagger) || s.has(i, path) }
	there := slices.ContainsFunc(c.condition, has)
	open := !there && slices.ContainsFunc(c.condition, func(path string) bool { return s.isOpen(i, path) })
	want := Skip
	switch {
	case there && !c.denies:
		want = Confirm
	case open:
		want = Wait
	}
	if d.Action != want {
		s.fatalf("the decision about the condition of call %d is %d, not %d", i, d.Action, want)
	}
	s.note("condition waits", want == Wait)
	s.note("settled early", want == Skip && waits)
}

// checkSchedule checks a decision about a call with a time: it waits for it, unless a parameter is
// missing for good.
func (s *simulation) checkSchedule(i int, d Decision) {
	c := &s.state.Calls[i]
	if d.Action == Skip {
		s.checkDecision(i, Skip)
		s.note("skipped before its time", true)
		return
	}
	known := c.Record.Due != ""
	due := s.Now().Add(time.Duration(s.author.calls[i].in) * time.Second)
	if known {
		due, _ = time.Parse(time.RFC3339, c.Record.Due)
	}
	want := Confirm
	if s.Now().Before(due) {
		want = Wait
	}
	if d.Action != want || !d.Due.Equal(due) || d.WaitsFor != nil {
		s.fatalf("call %d is due at %s, known before: %t, and the decision is %d, for %s", i, due, known, d.Action, d.Due)
	}
}

// checkDecision checks a decision about a call that has not read before against its parameters.
func (s *simulation) checkDecision(i int, a Action) {
	c := &s.author.calls[i]
	var missing, open, faulty bool // of some parameter
	for _, alternatives := range c.params {
		has := func(path string) bool { return !strings.HasPrefix(path, store.Dagger) || s.has(i, path) }
		if slices.ContainsFunc(alternatives, has) {
			continue
		}
		missing = true
		for _, path := range alternatives {
			open = open || s.isOpen(i, path)
			faulty = faulty || strings.HasSuffix(path, ".z")
		}
	}
	agrees := map[Action]bool{
		Start: !missing && !c.misfits, Hold: !missing && !c.misfits && slices.Contains(s.held, c.tool), Wait: missing && open,
		Skip: missing, Reject: missing && faulty || !missing && c.misfits, Fail: c.decision == journal.Rejected, Retry: true,
	}
	if !agrees[a] {
		s.fatalf("the decision about call %d is %d, where a value is missing: %t, of an open path: %t", i, a, missing, open)
	}
}

// isOpen reports whether no other call may write what a call reads.
func (s *simulation) isOpen(i int, path string) bool {
	other := func(w int) bool { return w != i && s.mayWrite(w, i, path) }
	return !slices.ContainsFunc(s.indexes(), other)
}

// has reports whether a reference of a call has a value: if calls before it may write there or above,
// one of them has.
func (s *simulation) has(i int, path string) bool {
	var may, wrote bool
	for w := range i {
		if !sees(s.author.calls[i].instance, s.author.calls[w].instance) {
			continue
		}
		above := func(p string) bool { return contains(p, path) }
		may = may || slices.ContainsFunc(slices.Concat(s.author.calls[w].outputs...), above)
		wrote = wrote || slices.ContainsFunc(s.facts.calls[w].wrote, above)
	}
	return (!may || wrote) && s.exists(i, path)
}

// exists reports whether there is something at a path, as a call sees it.
func (s *simulation) exists(i int, path string) bool {
	return slices.ContainsFunc(s.visible(i, path), func(m message) bool { return !strings.HasSuffix(path, ".z") || contains(path, m.path) })
}

// visible lists the messages that make the value at a path, as a call sees it. A call that was retried
// sees none of those that would have waited until it had read.
func (s *simulation) visible(i int, path string) (all []message) {
	at := s.state.Calls[i].Record.At
	for _, m := range s.messages {
		switch {
		case at != 0 && m.n > at, !sees(s.author.calls[i].instance, m.instance), !contains(m.path, path) && !contains(path, m.path):
		case s.retried && m.call >= 0 && s.yields[m.call][i]:
		default:
			all = append(all, m)
		}
	}
	return all
}

// Resolve implements [Values]. It checks that the value is of no call that should have waited, and of
// none that the reader has not waited for.
func (s *simulation) Resolve(i int, path store.Path, instance string) (store.Resolved, error) {
	for _, m := range s.visible(i, path.String()) {
		if m.call >= 0 && m.call != i && !s.leads[m.call][i] {
			s.fatalf("call %d reads a value at %s that is of call %d, for which it does not wait", i, path, m.call)
		}
	}
	if instance != s.author.calls[i].instance {
		s.fatalf("call %d reads for the instance %q", i, instance)
	}
	if !s.exists(i, path.String()) {
		return store.Resolved{}, nil
	}
	return store.Resolved{Value: map[string]any{"x": "1", "y": "2"}, Exists: true, From: []int64{1}}, nil
}

// Grant implements [Values].
func (s *simulation) Grant(i int, _ map[string]int64) (map[string]any, error) {
	for _, scope := range s.author.calls[i].scopes {
		for _, m := range s.visible(i, scope) {
			if m.call > i && !s.leads[m.call][i] {
				s.fatalf("call %d is granted a value at %s that is of call %d, which has to wait for it", i, scope, m.call)
			}
		}
	}
	return nil, nil
}

// Now implements [Values].
func (s *simulation) Now() time.Time { return time.Unix(0, 0).Add(s.now) }

// CheckMethod implements [Values].
func (s *simulation) CheckMethod(i int, path store.Path) error {
	if s.author.calls[i].misfits {
		return plan.Faultf("method", "%s does not take it", path)
	}
	return nil
}

// Explain implements [Values].
func (s *simulation) Explain(_ int, err error) error { return err }

// check checks where the calls stand after a step.
func (s *simulation) check() {
	s.checkCounts()
	room, busy, detached := s.state.Parallel, map[*plan.Registered]int{}, s.state.Parallel
	for _, i := range s.running() {
		busy[s.plan.Calls[i].Activity]++
		if s.state.Calls[i].Record.Unstored {
			detached--
		} else {
			room--
		}
	}
	for a, n := range busy {
		if a.Concurrency > 0 && n > a.Concurrency {
			s.fatalf("%d calls of an activity run, which may have %d", n, a.Concurrency)
		}
	}
	if room < 0 || detached < 0 {
		s.fatalf("more than %d calls run", s.state.Parallel)
	}
	for i := range s.state.Calls {
		c, a := &s.state.Calls[i], s.plan.Calls[i].Activity
		full := a.Concurrency > 0 && busy[a] == a.Concurrency
		hasRoom := c.Record.Unstored && detached > 0 || !c.Record.Unstored && room > 0
		switch c.Phase {
		case Blocked:
			if !s.isBlocked(i) {
				s.fatalf("call %d is blocked, and nothing that it has to wait for is left", i)
			}
		case Queued:
			if !c.decided || !c.timed {
				s.fatalf("the condition or the time of call %d is to be evaluated, which takes no room", i)
			}
			s.note("queued for room", true)
			if hasRoom {
				s.fatalf("call %d is queued, and there is room for it", i)
			}
		case Parked:
			s.note("parked", true)
			if !full && hasRoom {
				s.fatalf("call %d is parked, and its activity has room", i)
			}
		case Paused:
			if c.Due <= s.now {
				s.fatalf("call %d is paused, and was due at %s", i, c.Due)
			}
		case Waiting:
			if c.Due != 0 && c.Due <= s.now {
				s.fatalf("call %d waits, and its time came at %s", i, c.Due)
			}
			if c.Record.Child == "" && c.Due == 0 && !slices.ContainsFunc(c.Record.WaitingOn, func(path string) bool { return !s.exists(i, path) }) {
				s.fatalf("call %d waits, and all is there", i)
			}
		}
		if ends := s.facts.calls[i].ends; ends > 1 || (ends == 1) != (c.Phase == Settled) || ends == 1 && !c.Record.Status.Settled() {
			s.fatalf("call %d is %s, after it settled %d times", i, c.Phase, ends)
		}
	}
}

// isBlocked reports whether a call has to wait for another. Where calls have been retried it also
// waits behind calls that had settled.
func (s *simulation) isBlocked(i int) bool {
	if !s.state.Calls[i].decided {
		return slices.ContainsFunc(s.indexes(), func(j int) bool {
			ends := s.facts.calls[j].ends
			return s.asks[i][j] && (ends == 0 || s.retried && s.isBehind(j))
		})
	}
	return slices.ContainsFunc(s.indexes(), func(j int) bool {
		f := &s.facts.calls[j]
		waits := f.ends == 0 && (s.awaits[i][j] || s.yields[i][j] && !f.started)
		return waits || s.retried && (s.awaits[i][j] || s.yields[i][j]) && j != i && f.ends > 0 && s.isBehind(j)
	})
}

// isBehind reports whether a call that had settled has a retried call before it that has not.
func (s *simulation) isBehind(j int) bool {
	seen := make([]bool, len(s.author.calls))
	var behind func(j int) bool
	behind = func(j int) bool {
		seen[j] = true
		return slices.ContainsFunc(s.indexes(), func(k int) bool {
			if seen[k] || !s.awaits[j][k] && !s.yields[j][k] {
				return false
			}
			return s.facts.calls[k].ends == 0 || behind(k)
		})
	}
	return behind(j)
}

// checkCounts holds what the state counts by the way to what there is.
func (s *simulation) checkCounts() {
	v := viewOf(s.state)
	var want view
	done, failed := 0, 0
	timed := 0 // calls that wait for a time of their own
	for i := range s.state.Calls {
		c := &s.state.Calls[i]
		phase := c.Phase
		if phase == Parked {
			phase = Queued
		}
		want.number[phase]++
		switch c.Record.Status {
		case journal.Done:
			done++
		case journal.Failed:
			failed++
		}
		if phase == Waiting && c.Due != 0 {
			want.due = append(want.due, i)
			if c.Record.Child == "" {
				timed++
			}
		}
		switch {
		case phase == Queued && !(c.decided && c.timed):
			want.asking = append(want.asking, i)
		case phase == Queued && c.Record.Unstored:
			want.detached = append(want.detached, i)
		case phase == Queued:
			want.ready = append(want.ready, i)
		case phase == Paused:
			want.paused = append(want.paused, i)
		case phase == Waiting && c.Record.Child == "" && c.Due == 0:
			want.waiting = append(want.waiting, i)
		case phase == Running && c.Record.Unstored:
			want.detachedRunning++
		}
	}
	if v.number != want.number || v.detachedRunning != want.detachedRunning || !slices.Equal(v.ready, want.ready) || !slices.Equal(v.detached, want.detached) || !slices.Equal(v.asking, want.asking) ||
		!slices.Equal(v.waiting, want.waiting) || !slices.Equal(v.paused, want.paused) || !slices.Equal(v.due, want.due) ||
		len(v.parents)+len(v.waiting)+timed != v.number[Waiting] {
		s.fatalf("the state counts\n%+v\nand there are\n%+v", v, want)
	}
	if s.state.Done != done || s.state.Failed != failed {
		s.fatalf("the state counts %d done, %d failed, and there are %d and %d", s.state.Done, s.state.Failed, done, failed)
	}
}

// checkEnd checks that all has ended that can.
func (s *simulation) checkEnd() {
	status, waits := journal.RunDone, false
	for i := range s.state.Calls {
		c := &s.state.Calls[i]
		switch {
		case c.Phase != Settled:
			waits = true
		case c.Record.Status == journal.Failed && !c.Record.Unstored:
			status = journal.RunFailed
		}
	}
	if waits {
		status = journal.RunWaiting
		s.note("waits in the end", true)
	}
	if got := s.state.RunStatus(); got != status || s.state.IsOver() == waits || s.state.HasQueued() {
		s.fatalf("the run is %s and over: %t; it should be %s", got, s.state.IsOver(), status)
	}
}

// stop ends the run early: some calls at work come to their end, the others are cut off or have not
// begun, and calls that await a retry are left to a resume.
func (s *simulation) stop() {
	s.state.Begin(true)
	for i := range s.state.Calls {
		if c := &s.state.Calls[i]; c.AwaitsRetry() {
			s.note("left to a resume", c.Step != 0)
			s.note("rests on", c.Step == 0)
			s.state.Apply(Event{Kind: Returned, Call: i})
			if on := c.Record.Rests && c.Record.RetryAt != ""; on != (c.Step == 0) {
				s.fatalf("call %d, which began in step %d, pauses on: %t", i, c.Step, on)
			}
		}
	}
	for _, i := range s.running() {
		c := &s.author.calls[i]
		switch n := s.r.IntN(3); {
		case n == 0 && s.facts.calls[i].attempts >= c.retries && s.facts.calls[i].waits >= c.waits:
			s.finish(i)
		case len(c.outputs) == 0:
			s.note("cut off, detached", true)
			s.cut[i] = true
			s.settle(i, true, true)
		case n == 1:
			s.state.Apply(Event{Kind: Returned, Call: i})
		case c.inDoubt:
			s.note("in doubt", true)
			s.state.Apply(Event{Kind: Cut, Call: i, Status: journal.InDoubt})
		default:
			s.note("cut off", true)
			s.state.Apply(Event{Kind: Cut, Call: i, Status: journal.Interrupted})
		}
	}
	retries := func(c Call) bool { return c.Step != 0 && c.Record.Rests && c.Phase != Waiting }
	if s.state.In(Running) > 0 || slices.ContainsFunc(s.state.Calls, retries) {
		s.fatalf("the run was stopped, and calls are at work or await a retry")
	}
	s.state.ApplyTime(s.now + time.Hour) // the end of a pause may be noticed too late
	s.checkCounts()
}

// resume goes on with a run from its records, as a runner does. retry decides that calls in doubt run
// again.
func (s *simulation) resume(retry bool) {
	s.note("resumed", true)
	var records []journal.Record
	for i := range s.state.Calls {
		r, was := s.newRecord(i), s.state.Calls[i].Record
		switch {
		case was.Status.Settled(), was.Status == journal.Held, was.Status == journal.Ready, was.Status == journal.InDoubt && !retry:
			r = was
		default:
			r.At, r.Child, r.Hold, r.Reads, r.If = was.At, was.Child, was.Hold, was.Reads, was.If
			r.Rests, r.RetryAt = was.Rests, was.RetryAt
			if s.author.calls[i].in > 0 {
				r.Due = was.Due
			}
		}
		records = append(records, r)
	}
	s.start(records)
	s.step(nil)
}

// retry has calls that failed run again, as a person may, and those that were skipped for them.
func (s *simulation) retry() bool {
	if s.retried {
		return false
	}
	again := make([]bool, len(s.author.calls))
	for i, c := range s.author.calls {
		again[i] = s.state.Calls[i].Record.Status == journal.Failed && c.again && c.fails && !s.cut[i]
	}
	if !slices.Contains(again, true) {
		return false
	}
	s.retried = true
	s.note("retried by hand", true)
	for more := true; more; {
		more = false
		for i := range again {
			r, refs := &s.state.Calls[i].Record, s.plan.Calls[i].Refs
			if r.If != nil && !r.If.Holds { // it was skipped for nothing else
				refs = s.plan.Calls[i].If.Reads()
			}
			if r.Status == journal.Skipped && !again[i] && s.plan.Graph.DependsOnAny(i, refs, again) {
				again[i], more = true, true
			}
		}
	}
	for i := range again {
		if again[i] {
			s.state.Calls[i].Record = s.newRecord(i)
			s.facts.calls[i] = callFacts{attempts: s.facts.calls[i].attempts, waits: s.facts.calls[i].waits}
		}
	}
	for i := range again {
		for j := range again {
			s.note("overtaken", again[i] && !again[j] && (s.awaits[j][i] || s.yields[j][i]))
		}
	}
	s.resume(true)
	return true
}
