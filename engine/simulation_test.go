package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/journal/journaltest"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

var (
	seeds     = flag.Int("seeds", 200, "how many seeds are simulated")
	firstSeed = flag.Uint64("seed", 1, "from which chance begins; one that stays, so that a commit always passes or never")
)

// TestSimulation runs random plans in a world made from a seed: a clock that
// moves when the world wants it to, activities that end in the order that it
// chooses, processes that die before or after any append, appends that fail,
// interrupts, strangers who append meanwhile or try to run the context too, and
// people who take their time to decide. Whatever happens, the run comes to what
// it comes to undisturbed, records every outcome once, and runs nothing again
// that has one.
//
//	go test ./engine -run TestSimulation -seeds 100000 -seed $(date +%s)
//
// A seed that fails prints itself, and is to be kept in testdata/simulation.txt.
func TestSimulation(t *testing.T) {
	all := knownSeeds(t)
	known := len(all)
	for i := range *seeds {
		all = append(all, *firstSeed+uint64(i))
	}
	told := map[string]int{}
	for i, seed := range all {
		for _, plans := range []func(randomPlans) (*plan.Request, []*plan.Request){randomPlans.simulated, randomPlans.wide} {
			simulate(t, seed, plans, told, i < known || i%10 == 0 || *seeds == 1)
		}
		if t.Failed() {
			t.Fatalf("again by: go test ./engine -run TestSimulation -seeds 1 -seed %d", seed)
		}
	}
	t.Log(len(all), "seeds:", told)
	if len(all) < 100 {
		return
	}
	for _, what := range []string{"done", "failed", "waiting", "die before", "die after", "refuse", "interrupt", "append", "intrude", "decide", "in doubt", "ordered", "refused", "ahead", "due", "rests"} {
		if told[what] == 0 {
			t.Errorf("it never came to %q: the simulation is not what it was", what)
		}
	}
}

// knownSeeds are those that failed once, a line each.
func knownSeeds(t *testing.T) (known []uint64) {
	text, err := os.ReadFile("testdata/simulation.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			seed, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			known = append(known, seed)
		}
	}
	return known
}

// simulate runs what a seed stands for undisturbed, and as the seed wants it.
func simulate(t *testing.T, seed uint64, plans func(randomPlans) (*plan.Request, []*plan.Request), told map[string]int, twice bool) {
	request, ticks := plans(randomPlans{rand.New(rand.NewPCG(seed, 1))})
	ordered, err := isOrdered(t, ticks[0])
	if err != nil {
		told["refused"]++
		return
	}
	calm := run(t, request, &world{t: t, told: map[string]int{}})
	for _, tick := range ticks[1:] { // on what it began with
		later, err := isOrdered(t, tick)
		ordered = ordered && later && err == nil
	}
	disturbed := func(told map[string]int) *world {
		return run(t, request, &world{t: t, told: told, chance: rand.New(rand.NewPCG(seed, 2))})
	}
	w := disturbed(told)
	if t.Failed() {
		return
	}
	told[string(w.outcome.Status)]++
	if ordered {
		told["ordered"]++
		if got, want := w.result(), calm.result(); got != want {
			t.Errorf("it came to\n%s\nand undisturbed to\n%s", got, want)
		}
	}
	if twice {
		if again := disturbed(map[string]int{}); again.happened() != w.happened() {
			t.Errorf("the same seed came to two histories:\n%s\nand\n%s", w.happened(), again.happened())
		}
	}
}

// isOrdered tells whether timing decides nothing in what one tick asks for. The
// error is a plan that is refused.
func isOrdered(t *testing.T, tick *plan.Request) (bool, error) {
	checker := &engine.Runner{Log: memory.New(), Registry: (&world{}).registry()}
	checked, err := checker.Check(t.Context(), engine.Start{Context: "c", Request: tick})
	if errors.As(err, new(*plan.PlanError)) || errors.As(err, new(*plan.MessageError)) {
		return false, err
	}
	if err != nil {
		t.Fatal(err)
	}
	return !hasUnordered(checked) && !pushesMeet(checked), nil
}

// simulated is a request of calls to all that can be disturbed, and what each of
// its ticks asks for.
func (r randomPlans) simulated() (request *plan.Request, ticks []*plan.Request) {
	request = r.request()
	if r.IntN(3) > 0 { // nothing has to be waited for
		there := map[string]any{}
		for key := range strings.SplitSeq("a b c d e f g h", " ") {
			there[key] = map[string]any{"x": "x of " + key, "y": "y of " + key}
		}
		for _, kind := range []string{"state", "out"} {
			request.Context = append(request.Context, store.Message{Type: store.TypeData, Kind: kind, Data: store.Some(there)})
		}
	}
	for _, src := range request.Calls {
		call := src.Call.(map[string]any)
		if call["_tool"] != "value" {
			continue
		}
		switch r.IntN(8) {
		case 0:
			call["_tool"] = "pay"
		case 1:
			call["_tool"] = "flaky"
		case 2:
			call["_tool"] = "slow"
		case 3:
			call["_tool"], call["_delegate"] = "hand", "twice"
		}
	}
	calls := request.Calls
	defer func() { // last, so that seeds keep the plans that they had
		r.loosen(calls)
		r.delay(calls)
	}()
	if r.IntN(3) > 0 {
		return request, []*plan.Request{request}
	}
	half := len(request.Calls) / 2
	ticks = []*plan.Request{{Context: request.Context, Calls: request.Calls[:half]}, {Calls: request.Calls[half:]}}
	for later := ticks[1].Calls; len(later) > 1 && r.IntN(2) == 0; later = later[1:] { // one call a tick
		ticks[len(ticks)-1].Calls = later[:1]
		ticks = append(ticks, &plan.Request{Calls: later[1:]})
	}
	request.Planner = plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		tick := ticks[ask.Tick-1]
		if ask.Tick > 1 && tick.Context == nil { // what those before left
			for _, kind := range []string{"state", "out"} {
				if data, ok := ask.Kinds[kind]; ok {
					tick.Context = append(tick.Context, store.Message{Type: store.TypeData, Kind: kind, Data: store.Some(data)})
				}
			}
		}
		solution := &plan.Solution{Calls: tick.Calls}
		if ask.Tick == len(ticks) {
			solution.Output = "†state || †out || 0"
		}
		return solution, nil
	})
	request.Calls = nil
	request.Output = store.Optional{}
	return request, ticks
}

// wide is a request of calls side by side, with some that go on with what one of them gave,
// and some that push to one list.
func (r randomPlans) wide() (request *plan.Request, ticks []*plan.Request) {
	request = &plan.Request{Output: store.Some("†state || †out || 0")}
	add := func(value any, path string) map[string]any {
		tool := []string{"value", "value", "value", "value", "slow", "flaky", "pay", "fail"}[r.IntN(8)]
		call := map[string]any{"_tool": tool, "value": value, "_outputPath": path}
		request.Calls = append(request.Calls, plan.Source{Call: call})
		return call
	}
	pushes := r.IntN(4) == 0
	for i := range 3 + r.IntN(20) {
		first := fmt.Sprint("†state.a", i)
		add(i, first)
		for n := range r.IntN(3) {
			if path := fmt.Sprint("†out.b", i, "_", n); !pushes {
				add(first, path)
			} else {
				add(first, "†out.all")["_outputMethod"] = "push"
			}
		}
	}
	r.loosen(request.Calls)
	r.delay(request.Calls)
	return request, []*plan.Request{request}
}

// delay gives some calls a time.
func (r randomPlans) delay(calls []plan.Source) {
	if r.IntN(3) > 0 {
		return
	}
	for _, src := range calls {
		if r.IntN(4) == 0 {
			src.Call.(map[string]any)["_in"] = r.pick("1s", "7s", "100s")
		}
	}
}

// loosen makes fire-and-forget calls of some.
func (r randomPlans) loosen(calls []plan.Source) {
	if r.IntN(3) > 0 {
		return
	}
	for _, src := range calls {
		if call := src.Call.(map[string]any); r.IntN(4) == 0 && call["_tool"] != "to" {
			delete(call, "_outputPath")
			delete(call, "_outputMethod")
		}
	}
}

// world is what a run happens in. Without chance nothing disturbs it.
type world struct {
	t      *testing.T
	told   map[string]int // how often what has happened
	chance *rand.Rand

	log     store.Log // that outlives processes
	outcome *journal.Outcome

	mu      sync.Mutex
	waiting map[string]chan struct{} // activities and appends that wait to be let go on, by key
	settled map[string]bool          // calls that had their outcome when the process began
	order   []string                 // in which they went on
	gave    map[string]bool          // calls whose activities have given a result in this process
	due     map[string]bool          // those whose results must be in the log when it has ended
	keys    map[string]bool          // of activities that have run, in whichever process

	followed map[string]*journal.History // by context

	acquired atomic.Int64 // calls that have not ended
}

// run carries a request to its end, through as many processes as it takes.
func run(t *testing.T, request *plan.Request, w *world) *world {
	synctest.Test(t, func(*testing.T) {
		w.log, w.keys, w.followed = standingLog{memory.New(), w.t}, map[string]bool{}, map[string]*journal.History{}
		began := time.Now()
		for life := 0; w.live(request, life); life++ {
			if w.t.Failed() || life > 100 {
				w.t.Errorf("it has not ended after %d processes", life)
				return
			}
		}
		w.hold()
		for w.acquired.Load() > 0 && time.Since(began) < time.Hour { // calls that their run could not wait for
			for synctest.Wait(); w.letGo(); synctest.Wait() {
			}
			time.Sleep(time.Second)
		}
		if n := w.acquired.Load(); n != 0 {
			w.t.Errorf("%d calls acquired something and never released it", n)
		}
	})
	return w
}

// acquire counts the calls at work.
func (w *world) acquire(context.Context) (release func(), ok bool) {
	w.acquired.Add(1)
	var ended atomic.Bool
	return func() {
		if w.acquired.Add(-1); ended.Swap(true) {
			w.t.Error("what a call acquired was released twice")
		}
	}, true
}

// some is a number below n.
func (w *world) some(n int) int {
	if w.chance == nil {
		return 0
	}
	return w.chance.IntN(n)
}

// disturbs tells whether something happens that does so once in n times. After
// some processes all is calm, so that a run has an end.
func (w *world) disturbs(n, life int) bool {
	return w.chance != nil && life < 8 && w.chance.IntN(n) == 0
}

func (w *world) tell(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[what]++
}

// live is one process: it begins the run or goes on with it, until it dies or
// has done what it can. It tells whether there is to be another.
func (w *world) live(request *plan.Request, life int) (more bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := w.fated(life)
	r := &engine.Runner{Log: log, Registry: w.registry(), Parallel: 1 + w.some(8), Drain: time.Duration(w.some(2)*6007-1000) * time.Millisecond}
	r.WithoutChance()
	r.Acquire = w.acquire
	if w.chance != nil && life%2 == 0 {
		r.Rest = 1500 * time.Millisecond // the first pause of a call is shorter
	}
	w.remember()
	retry := w.inDoubt()
	var outcome *journal.Outcome
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		last, lastErr := journal.In(w.log, "c").LastRun(ctx)
		switch {
		case lastErr != nil:
			err = lastErr
		case last.Tick == 0:
			outcome, err = r.Run(ctx, engine.Start{Context: "c", Request: request, Approve: plan.Policy{Tools: []string{"pay"}}})
		default:
			outcome, err = r.Resume(ctx, engine.Resume{Context: "c", Request: request, Retry: retry})
		}
	}()
	w.turn(ended, cancel, life)
	for range 40 + w.some(20) { // what is left comes to its end, and a lease that nobody gave back lapses
		for synctest.Wait(); w.letGo(); synctest.Wait() {
		}
		time.Sleep(time.Second)
	}
	// An interrupt can come before there is a run.
	dead := errors.As(err, new(*fateError)) || errors.Is(err, context.Canceled)
	if !dead {
		w.holdGiven()
	}
	if err != nil && !dead {
		w.t.Errorf("process %d: %v", life, err)
		return false
	}
	if dead || outcome.Status == journal.RunInterrupted {
		return true
	}
	w.outcome = outcome
	_, due := journal.EarliestDue(outcome.Calls)
	if due {
		w.tell("due")
	}
	if slices.ContainsFunc(outcome.Calls, func(r journal.Record) bool { return r.Rests }) {
		w.tell("rests")
	}
	if outcome.Background > 0 {
		w.tell("background")
		return true
	}
	return outcome.Status == journal.RunWaiting && (due || w.decide() || w.decided() || len(w.inDoubt()) > 0)
}

// turn lets things happen, one at a time, until the process has ended.
func (w *world) turn(ended chan struct{}, interrupt func(), life int) {
	for {
		synctest.Wait()
		select {
		case <-ended:
			return
		default:
		}
		switch {
		case w.disturbs(60, life):
			w.tell("interrupt")
			w.due = maps.Clone(w.gave)
			interrupt()
		case w.disturbs(30, life):
			w.tell("append")
			_, err := engine.Append(context.Background(), w.log, "c", messages(w.t, `{"type": "data", "kind": "noise", "data": 1}`))
			if err != nil {
				w.t.Error(err)
			}
		case w.disturbs(60, life):
			w.intrude()
		case w.disturbs(10, life) && w.decide():
		default:
			if !w.letGo() {
				time.Sleep(time.Duration(1000+w.some(10_000)) * time.Millisecond)
			}
		}
	}
}

// letGo lets one activity or append go on that waits.
func (w *world) letGo() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return false
	}
	var keys []string
	for key := range w.waiting {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	key := keys[w.some(len(keys))]
	close(w.waiting[key])
	delete(w.waiting, key)
	w.order = append(w.order, key)
	return true
}

// intrude is another process that tries to run the context, while it is held.
func (w *world) intrude() {
	holder, err := w.log.Holder(context.Background(), "c")
	if err != nil || holder == "" {
		return
	}
	if last, err := journal.In(w.log, "c").LastRun(context.Background()); err != nil || last.Status.Finished() {
		return // what it left behind is at work, and its outcome is for all to see
	}
	w.tell("intrude")
	_, err = (&engine.Runner{Log: w.log, Registry: w.registry()}).Resume(context.Background(), engine.Resume{Context: "c"})
	if !errors.As(err, new(*engine.BusyError)) {
		w.t.Errorf("another process may run the context too: %v", err)
	}
}

// decide approves one of the calls that are held.
func (w *world) decide() bool {
	held, err := journal.In(w.log, "c").Holds(context.Background())
	if err != nil && !errors.Is(err, store.ErrNoContext) {
		w.t.Error(err)
	}
	if len(held) == 0 {
		return false
	}
	w.tell("decide")
	one := held[w.some(len(held))]
	r := &engine.Runner{Log: w.log, Registry: w.registry()}
	if err := r.Decide(context.Background(), journal.Decision{Context: one.Context, Call: one.Call}); err != nil {
		w.t.Error(err)
	}
	return true
}

// holdGiven holds that what an activity gave before its process was interrupted is recorded,
// but for delegates': those are given up where the world holds an append up for too long.
func (w *world) holdGiven() {
	due := w.due
	if due == nil {
		due = w.gave
	}
	for _, r := range w.records("c") {
		if due["c/"+r.Call] && !r.Status.Settled() {
			w.t.Errorf("call %s has given a result, and is %s when the process ends", r.Call, r.Status)
		}
	}
}

// decided tells whether somebody decided after the run had looked.
func (w *world) decided() bool {
	return slices.ContainsFunc(w.contexts(), func(name string) bool {
		return slices.ContainsFunc(w.records(name), func(r journal.Record) bool { return r.Status == journal.Ready })
	})
}

func (w *world) records(name string) []journal.Record {
	records, err := journal.In(w.log, name).Records(context.Background())
	if err != nil && !errors.Is(err, store.ErrNoContext) {
		w.t.Error(err)
	}
	return records
}

// inDoubt are calls that a person must decide about: they run again.
func (w *world) inDoubt() (calls []string) {
	for _, r := range w.records("c") {
		if r.Status == journal.InDoubt {
			w.tell("in doubt")
			calls = append(calls, r.Call)
		}
	}
	return calls
}

func (w *world) contexts() (names []string) {
	for info, err := range w.log.Contexts(context.Background(), store.ContextFilter{}) {
		if err != nil {
			w.t.Error(err)
		}
		names = append(names, info.Context)
	}
	slices.Sort(names)
	return names
}

// remember notes what must not run in this process.
func (w *world) remember() {
	w.waiting, w.settled, w.gave, w.due = map[string]chan struct{}{}, map[string]bool{}, map[string]bool{}, nil
	for _, name := range w.contexts() {
		w.follow(name)
		for _, r := range w.records(name) {
			w.settled[name+"/"+r.Call] = r.Status.Settled()
		}
	}
}

// fate is a log whose process is to die at an append, or which refuses one.
type fate struct {
	store.Log
	w     *world
	what  string
	mu    sync.Mutex
	left  int
	ended bool
}

type fateError struct{ what string }

func (e *fateError) Error() string { return e.what }

func (w *world) fated(life int) store.Log {
	f := &fate{Log: w.log, w: w, left: -1}
	if w.disturbs(2, life) {
		f.what = []string{"die before", "die after", "refuse"}[w.some(3)]
		f.left = w.some(12)
	}
	return f
}

// Append waits until the world lets it go on, as activities do, so that it is the
// world that decides which of two contexts appends first.
func (f *fate) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if key := b.Context + "/append"; f.w.chance != nil {
		if len(b.Messages)+len(b.Journal) == 0 {
			key = b.Context + "/lease"
		}
		if err := f.w.enter(ctx, key); err != nil {
			return store.Appended{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return store.Appended{}, &fateError{f.what}
	}
	if f.left--; f.left != -1 || f.what == "" {
		return f.Log.Append(ctx, b)
	}
	f.w.tell(f.what)
	f.ended = f.what != "refuse"
	if f.what == "die after" {
		if _, err := f.Log.Append(ctx, b); err != nil {
			return store.Appended{}, err
		}
	}
	return store.Appended{}, &fateError{f.what}
}

// Head waits as Append does where a delegate begins or is gone on with, for that
// may be all it has to do: which of two came first would be chance.
func (f *fate) Head(ctx context.Context, name string) (int64, error) {
	if f.w.chance != nil && name != "c" {
		if err := f.w.enter(ctx, name+"/head"); err != nil {
			return 0, err
		}
	}
	return f.Log.Head(ctx, name)
}

// hashed is a number below n that only a key decides.
func hashed(key string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(n))
}

// own is a time that only this activity takes, so that no two end at one instant:
// which one came first would be chance.
func own(key string) time.Duration { return time.Duration(hashed(key, 9973)) * time.Microsecond }

// registry holds activities that end when the world wants them to.
func (w *world) registry() *plan.Registry {
	r := plan.NewRegistry()
	add := func(name string, f activity) *plan.Registered {
		run := func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			w.holdStart(in.Key)
			if w.settled[in.Key] {
				w.t.Errorf("%s has its outcome, and runs again", in.Key)
			}
			w.mu.Lock()
			w.keys[in.Key] = true
			w.mu.Unlock()
			if name != "slow" { // which takes a time of its own
				if err := w.enter(ctx, in.Key); err != nil {
					return plan.Result{}, err
				}
			}
			res, err := f(ctx, in)
			if err == nil {
				w.mu.Lock()
				w.gave[in.Key] = true
				w.mu.Unlock()
			}
			return res, err
		}
		r.Activities[name] = &plan.Registered{Name: name, Activity: seldom{able{run: f, ahead: func(ctx context.Context, in plan.Invocation) bool {
			if w.enter(ctx, in.Key+"/ahead") != nil {
				return false
			}
			ahead := name != "slow" && hashed(in.Key+name, 3) > 0
			if ahead {
				w.tell("ahead")
			}
			return ahead
		}}, run}}
		return r.Activities[name]
	}
	add("value", value)
	add("to", func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["value"], To: in.Call["path"].(string)}, nil
	})
	add("fail", func(context.Context, plan.Invocation) (plan.Result, error) {
		return plan.Result{}, plan.NewFailure("no")
	})
	add("pay", value).NotIdempotent = true
	add("flaky", func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if in.Attempt <= hashed(in.Key, 4) {
			return plan.Result{}, plan.NewFailure("not yet")
		}
		return value(ctx, in)
	}).Retries = 2
	slow := add("slow", func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		select {
		case <-time.After(time.Duration(hashed(in.Key, 9))*time.Second + own(in.Key)):
			return value(ctx, in)
		case <-ctx.Done():
			time.Sleep(own(in.Key))
			return plan.Result{}, ctx.Err()
		}
	})
	slow.Timeout = 4511 * time.Millisecond
	r.Delegates["twice"] = &plan.Delegate{Request: &plan.Request{Output: store.Some("†b"), Calls: []plan.Source{
		{Call: map[string]any{"_tool": "value", "value": "†input.value", "_outputPath": "†a"}},
		{Call: map[string]any{"_tool": "slow", "value": []any{"†a", "†a"}, "_outputPath": "†b || †c"}},
	}}}
	return r
}

// seldom is an activity that runs in another way where it runs ahead.
type seldom struct {
	able
	run activity
}

func (s seldom) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	res, err := s.run(ctx, in)
	res.Pure = hashed(in.Key, 2) > 0
	return res, err
}

// holdStart holds the log to having it that a call has begun, before anything of it can
// be seen.
func (w *world) holdStart(key string) {
	name, call, _ := strings.Cut(key, "/")
	if w.log == nil {
		return
	}
	last, ok, err := store.Newest(context.Background(), w.log, store.JournalFilter{Context: name, Call: call})
	if err != nil || !ok || last.Event != string(journal.Running) {
		w.t.Errorf("%s runs, and what the log says of it is %v (%v)", key, last, err)
	}
}

// enter waits until the world lets an activity or an append go on.
func (w *world) enter(ctx context.Context, key string) error {
	free := make(chan struct{})
	w.mu.Lock()
	w.waiting[key] = free
	w.mu.Unlock()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		w.mu.Lock()
		delete(w.waiting, key)
		w.mu.Unlock()
		time.Sleep(own(key))
		return ctx.Err()
	}
}

// hold holds the log to what is promised of every log.
func (w *world) hold() {
	known := map[string]bool{}
	for _, name := range w.contexts() {
		for _, r := range w.records(name) {
			known[name+"/"+r.Call] = true
		}
	}
	for key := range w.keys {
		if !known[key] {
			w.t.Errorf("an activity ran as %s, which is no call's key", key)
		}
	}
	for _, name := range w.contexts() {
		w.holdHistory(name)
		outcomes, written, tick := map[string]int{}, map[string]int{}, 0
		for entry, err := range w.log.Journal(context.Background(), store.JournalFilter{Context: name}) {
			if err != nil {
				w.t.Error(err)
			}
			if entry.Call != "" && journal.Status(entry.Event).Settled() {
				outcomes[entry.Call]++
			}
			if entry.Event == "plan" {
				if tick++; !strings.HasPrefix(entry.Data, fmt.Sprintf(`{"tick":%d,`, tick)) {
					w.t.Errorf("plan %d of %s is %s", tick, name, entry.Data)
				}
			}
		}
		next := int64(1)
		for m, err := range w.log.Messages(context.Background(), store.Filter{Context: name}) {
			if err != nil {
				w.t.Error(err)
			}
			if m.Seq != next {
				w.t.Errorf("message %d of %s is numbered %d", next, name, m.Seq)
			}
			if next++; m.Call != "" {
				written[m.Call+" "+m.Path.String()]++
			}
		}
		for what, n := range outcomes {
			if n > 1 {
				w.t.Errorf("call %s of %s has %d outcomes", what, name, n)
			}
		}
		for what, n := range written {
			if n > 1 {
				w.t.Errorf("%s of %s was written %d times", what, name, n)
			}
		}
	}
	if w.outcome == nil || !w.outcome.Status.Finished() {
		return
	}
	for _, r := range w.records("c") {
		if !r.Status.Settled() {
			w.t.Errorf("call %s is %s once the run is %s", r.Call, r.Status, w.outcome.Status)
		}
	}
	replayed, err := replay.Run(context.Background(), &engine.Runner{Log: w.log, Registry: w.registry()}, "c", nil)
	if err != nil || len(replayed.Differences) > 0 {
		w.t.Errorf("replayed: %v, %+v", err, replayed)
	}
	w.holdEdited()
}

// holdEdited holds that a replay finds where the log of a run was edited: that a call with a result
// has failed, or has written elsewhere, or that the run came to something else.
func (w *world) holdEdited() {
	edits := map[string][2]string{"": {`"output":`, `"output":"edited","was":`}}
	for _, r := range w.records("c") {
		if r.Status == journal.Done && len(r.Writes) > 0 {
			edits[r.Call] = [][2]string{{`"status":"done"`, `"status":"failed"`}, {`"writes":["`, `"writes":["†edited","`}}[r.Position%2]
		}
	}
	for call, edit := range edits {
		log := &editedLog{w.log, call, edit}
		replayed, err := replay.Run(context.Background(), &engine.Runner{Log: log, Registry: w.registry()}, "c", nil)
		if err != nil || !slices.ContainsFunc(replayed.Differences, func(d replay.Difference) bool { return d.Call == call }) {
			w.t.Errorf("with %s edited to %s, the replay of call %q gives %+v, %v", edit[0], edit[1], call, replayed, err)
		}
	}
}

// editedLog is a log in which the outcomes of a call, or for no call the ends of runs, were edited.
type editedLog struct {
	store.Log
	call string
	edit [2]string
}

func (l *editedLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range l.Log.Journal(ctx, f) {
			isOutcome := e.Call == l.call && (e.Event == string(journal.Done) || e.Event == journal.EventRun)
			if e.Context == "c" && isOutcome {
				e.Data = strings.Replace(e.Data, l.edit[0], l.edit[1], 1)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// holdHistory holds that a history, also one that has followed the log, has the calls as the journal
// has them: at each seq, and as they stand.
func (w *world) holdHistory(name string) {
	ctx := context.Background()
	h := w.follow(name)
	head, err := w.log.Head(ctx, name)
	if err != nil {
		w.t.Error(err)
	}
	for at := range head + 1 {
		want, err := journaltest.Calls(ctx, w.log, name, at)
		if err != nil {
			w.t.Error(err)
		}
		lines, err := h.Lines(ctx, at)
		if err != nil {
			w.t.Error(err)
		}
		got, err := h.Records(ctx, lines)
		want = append([]journal.Record{}, want...)
		if err != nil || string(store.EncodeJSON(got)) != string(store.EncodeJSON(want)) {
			w.t.Errorf("%s at %d: %v\n%s\nand in the journal\n%s", name, at, err, store.EncodeJSON(got), store.EncodeJSON(want))
		}
		for i, line := range lines {
			if line.Word != journal.WordOf(&want[i]) || line.Tool != want[i].Tool || line.Attempts != want[i].Attempts || line.InBackground() != want[i].InBackground() {
				w.t.Errorf("%s at %d: %s is listed as %+v", name, at, store.EncodeJSON(want[i]), line)
			}
		}
	}
}

// follow returns the history of a context as it has followed the log.
func (w *world) follow(name string) *journal.History {
	h := w.followed[name]
	if h == nil {
		h = journal.HistoryOf(w.log, name)
		w.followed[name] = h
	}
	if err := h.Advance(context.Background()); err != nil {
		w.t.Error(err)
	}
	if _, err := h.Lines(context.Background(), 0); err != nil {
		w.t.Error(err)
	}
	return h
}

// result is all that a run comes to that nothing may change.
func (w *world) result() string {
	var b strings.Builder
	for _, record := range w.records("c") {
		if !record.Unstored { // whether that comes to its end is for the disturbances to say
			fmt.Fprintln(&b, describeRecord(record))
		}
	}
	if w.outcome != nil {
		fmt.Fprintln(&b, w.outcome.Status, w.outcome.Error, string(store.EncodeJSON(w.outcome.Output)))
	}
	for _, instance := range []string{"", "①", "②"} {
		for _, kind := range []string{"state", "out", "error"} {
			resolved, err := store.Resolver{Log: w.log, Context: "c"}.Resolve(context.Background(), store.KindPath(kind), instance)
			if err != nil {
				w.t.Error(err)
			}
			fmt.Fprintln(&b, kind, instance, resolved.Exists, string(store.EncodeJSON(resolved.Value)))
		}
	}
	return b.String()
}

// history is the order in which all of it happened.
func (w *world) happened() string {
	var b strings.Builder
	fmt.Fprintln(&b, w.order)
	for entry, err := range w.log.Journal(context.Background(), store.JournalFilter{}) {
		if err != nil {
			w.t.Error(err)
		}
		fmt.Fprintln(&b, entry.N, entry.Context, entry.Seq, entry.Call, entry.Event)
	}
	return b.String()
}
