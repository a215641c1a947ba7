package engine_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// flying is a log that does something before it appends a step that is written while the
// next one is made. All appends take a while.
type flying struct {
	store.Log
	before  func()
	beside  func() // before any other append
	flights atomic.Int32
	landed  atomic.Int32
}

func (l *flying) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	flies := strings.Contains(string(debug.Stack()), "startCommit")
	if flies {
		if l.flights.Add(1); l.before != nil {
			l.before()
		}
	} else if l.beside != nil {
		l.beside()
	}
	time.Sleep(time.Millisecond)
	appended, err := l.Log.Append(ctx, b)
	if flies {
		l.landed.Add(1)
	}
	return appended, err
}

// fanOf is a plan of calls that end together while others go on, each with one after it that
// reads what it gave and †state.n.
func fanOf(t *testing.T) engine.Start {
	request := &plan.Request{Context: messages(t, `{"type": "state", "n": 1}`), Output: store.Some("†out")}
	add := func(call map[string]any) { request.Calls = append(request.Calls, plan.Source{Call: call}) }
	for i := range 4 {
		add(map[string]any{"_tool": "sleep", "seconds": 1, "value": i, "_outputPath": fmt.Sprint("†state.a", i)})
		add(map[string]any{"_tool": "next", "value": fmt.Sprint("†state.a", i, " * 10 + †state.n"), "_outputPath": fmt.Sprint("†out.b", i)})
	}
	for i := range 3 {
		add(map[string]any{"_tool": "sleep", "seconds": 10, "value": i, "_outputPath": fmt.Sprint("†state.c", i)})
	}
	return engine.Start{Context: "c", Request: request}
}

// What a step was to launch that was written as the run was stopped has not begun: it is not
// in doubt where it must not run twice, and runs when the run is resumed.
func TestPipeline_StopBeforeCommit(t *testing.T) {
	for _, strange := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { stopFlight(t, strange) })
	}
}

// stopFlight stops a run during a flight. Somebody else may append after that.
func stopFlight(t *testing.T, strange bool) {
	run, stop := context.WithCancel(t.Context())
	memory := memory.New()
	ran, log := &counter{}, &flying{Log: memory, before: stop}
	stranger := sync.OnceFunc(func() { // what has not begun is told with the next append, also if that is done again
		strangerAppends(t, memory, `{"type": "state", "m": 1}`)
	})
	log.beside = func() {
		if strange && log.landed.Load() > 0 {
			stranger()
		}
	}
	r := newRunner(log, map[string]activity{"sleep": sleep, "next": ran.of(value)})
	r.Registry.Activities["next"].NotIdempotent = true
	r.Drain = time.Minute
	s := fanOf(t)
	s.Request.Calls[8].Call.(map[string]any)["seconds"] = 1.0015 // it ends during the flight
	outcome, err := r.Run(run, s)
	if err != nil || outcome.Status != journal.RunInterrupted || log.flights.Load() == 0 {
		t.Fatal(err, outcome, log.flights.Load())
	}
	blocked := 0
	for _, record := range outcome.Calls {
		switch record.Status {
		case journal.Blocked:
			blocked++
		case journal.Done:
		default:
			t.Errorf("call %s is %s", record.Call, record.Status)
		}
	}
	if blocked < 3 {
		t.Errorf("%d calls have not begun", blocked)
	}
	log.before = nil
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || outcome.Status != journal.RunDone || ran.String() != "1.2×1 1.4×1 1.6×1 1.8×1" {
		t.Error(err, outcome, ran)
	}
}

// What began at once, since nobody could see it, is undone with the step that was to follow
// the one in which somebody else's append came between: it begins anew, with what that says.
func TestPipeline_PureCallsAreUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memory.New()
		log, tried := &flying{Log: memory}, &counter{}
		log.before = func() {
			if log.flights.Load() > 1 {
				return
			}
			time.Sleep(time.Millisecond) // for those who begin at once
			strangerAppends(t, memory, `{"type": "state", "n": 2}`)
		}
		r := newRunner(log, map[string]activity{"sleep": sleep})
		r.Registry.Activities["next"] = &plan.Registered{Name: "next", Activity: able{run: tried.of(value)}}
		outcome, err := r.Run(t.Context(), fanOf(t))
		if err != nil || outcome.Status != journal.RunDone || log.flights.Load() == 0 {
			t.Fatal(err, outcome, log.flights.Load())
		}
		again := 0
		for _, record := range outcome.Calls[:8] {
			if record.Tool != "next" {
				continue
			}
			out, err := store.Resolver{Log: memory, Context: "c"}.Resolve(t.Context(), store.MustParsePath(record.Writes[0]), "")
			if err != nil || record.Attempts != 1 {
				t.Error(err, record)
			}
			if reads := record.Reads["†state.n"]; reads > 2 != strings.HasSuffix(fmt.Sprint(out.Value), "2") {
				t.Errorf("call %s has read †state.n as of %d, and gives %v", record.Call, reads, out.Value)
			}
			if n := tried.runs["c/"+record.Call]; n > 1 {
				again++
			}
		}
		if again == 0 {
			t.Errorf("nothing that began at once began anew: %s", tried)
		}
		entries := entriesOf(t, log)
		for i := range 8 {
			done := fmt.Sprintf(" 1.%d done", i+1)
			if n := countEnding(entries, done); n != 1 {
				t.Errorf("the journal has%s %d times", done, n)
			}
		}
	})
}

// What began in vain may end when its tick has long been over, and a step of the next one is
// in flight: nothing is appended for it.
func TestPipeline_ResultInVainIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memory.New()
		log, late := &flying{Log: memory}, time.Now().Add(30*time.Second)
		log.before = func() {
			if log.flights.Load() > 1 {
				time.Sleep(10 * time.Millisecond) // what comes meanwhile is to be made a step of
				return
			}
			time.Sleep(time.Millisecond) // for those who begin at once
			strangerAppends(t, memory, `{"type": "state", "n": 2}`)
		}
		r := newRunner(log, map[string]activity{"sleep": sleep})
		vain := atomic.Bool{}
		r.Registry.Activities["next"] = &plan.Registered{Name: "next", Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			time.Sleep(aMoment) // now the flight has begun
			if log.flights.Load() == 1 && log.landed.Load() == 0 && !vain.Swap(true) {
				time.Sleep(time.Until(late))
			}
			return value(ctx, in)
		}}}
		planner := plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			switch ask.Tick {
			case 1:
				return &plan.Solution{Calls: fanOf(t).Request.Calls}, nil
			case 2:
				s := &plan.Solution{}
				for i, after := range []time.Duration{-8, -8, -8, -3, 1000, 1000, 1000} { // the fourth is in the open step when the late one comes
					seconds := (time.Until(late) + after*time.Millisecond).Seconds()
					s.Calls = append(s.Calls, plan.Source{Call: map[string]any{"_tool": "sleep", "seconds": seconds, "value": i, "_outputPath": fmt.Sprint("†two.a", i)}})
				}
				return s, nil
			}
			return &plan.Solution{Output: "done"}, nil
		})
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Context: messages(t, `{"type": "state", "n": 1}`), Planner: planner}})
		if err != nil || outcome.Status != journal.RunDone || !vain.Load() || log.flights.Load() < 2 {
			t.Fatal(err, outcome, vain.Load(), log.flights.Load())
		}
		written := map[string]int{}
		for m, err := range memory.Messages(t.Context(), store.Filter{Context: "c"}) {
			if err != nil {
				t.Fatal(err)
			}
			if written[m.Call]++; m.Call != "" && written[m.Call] > 1 {
				t.Errorf("call %s has written %d times", m.Call, written[m.Call])
			}
		}
	})
}

// While an earlier tick has left calls at work their outcomes are appended as they come, and
// no step of the next one is in flight.
func TestPipeline_NotOverDetachedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &flying{Log: memory.New(), before: func() { time.Sleep(time.Second) }}
		r := newRunner(log, map[string]activity{"sleep": sleep, "next": value})
		r.Drain = time.Minute
		planner := plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			switch ask.Tick {
			case 1:
				return &plan.Solution{Calls: []plan.Source{
					{Call: map[string]any{"_tool": "sleep", "seconds": 1.5, "value": 1}},
					{Call: map[string]any{"_tool": "next", "value": 1, "_outputPath": "†state.n"}},
				}}, nil
			case 2:
				return &plan.Solution{Calls: fanOf(t).Request.Calls}, nil
			}
			return &plan.Solution{Output: "done"}, nil
		})
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: planner}})
		if err != nil || outcome.Status != journal.RunDone || log.flights.Load() != 0 {
			t.Fatal(err, outcome, log.flights.Load())
		}
		entries := entriesOf(t, log)
		for _, call := range []string{"1.1", "1.2", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11"} {
			if n := countEnding(entries, " "+call+" done"); n != 1 {
				t.Errorf("the journal has %d outcomes of %s", n, call)
			}
		}
	})
}

// Who appends before each flight does not hold the run up: a step that has met another's
// append is written as all others are.
func TestPipeline_ConstantForeignAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memory.New()
		log, tried := &flying{Log: memory}, &counter{}
		log.before = func() {
			strangerAppends(t, memory, `{"type": "state", "n": 2}`)
			if log.flights.Load() > 100 {
				panic("it goes on and on")
			}
		}
		r := newRunner(log, map[string]activity{"sleep": sleep})
		r.Registry.Activities["next"] = &plan.Registered{Name: "next", Activity: able{run: tried.of(value)}}
		outcome, err := r.Run(t.Context(), fanOf(t))
		if err != nil || outcome.Status != journal.RunDone || log.flights.Load() == 0 {
			t.Fatal(err, outcome, log.flights.Load(), tried)
		}
	})
}

// Nothing of a run is appended once it has come to its end, however it does.
func TestPipeline_CommitEndsBeforeItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, broken := &flying{Log: memory.New()}, atomic.Bool{}
		log.before = func() { broken.Store(true) }
		r := newRunner(log, map[string]activity{"sleep": sleep, "next": value})
		r.Now = func() time.Time {
			if broken.Load() && log.landed.Load() == 0 && strings.Contains(string(debug.Stack()), "makeNext") {
				panic("the clock is broken")
			}
			return time.Now()
		}
		defer func() {
			if p := recover(); fmt.Sprint(p) != "the clock is broken" {
				t.Error("it went on:", p)
			}
			if log.flights.Load() != 1 || log.landed.Load() != 1 {
				t.Errorf("of %d flights %d have landed", log.flights.Load(), log.landed.Load())
			}
		}()
		s := fanOf(t)
		for _, src := range s.Request.Calls[8:] {
			src.Call.(map[string]any)["seconds"] = 1.0015
		}
		_, _ = r.Run(t.Context(), s)
	})
}

// A log that panics beside the run brings it down as one does that the run waits for.
func TestPipeline_PanicEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &flying{Log: memory.New(), before: func() { panic("the log has broken down") }}
		r := newRunner(log, map[string]activity{"sleep": sleep, "next": value})
		defer func() {
			if p := recover(); !strings.Contains(fmt.Sprint(p), "the log has broken down") {
				t.Error("it went on:", p)
			}
		}()
		_, _ = r.Run(t.Context(), fanOf(t))
	})
}
