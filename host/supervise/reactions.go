package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/lazyregexp"
	"obelus/host"
	"obelus/host/once"
	"obelus/host/schedule"
	"obelus/store"
)

// reactor starts the plans of the project's setting serve.on when runs end or halt: those of this
// process, and of others that append to the log meanwhile. A plan's context is named by the end, so
// that it is started once.
type reactor struct {
	*reader
	generation func() *host.Generation
	startRun   func(ctx context.Context, s Start) (*Run, error)
	tasks      *sync.WaitGroup // goroutines of the supervisor
	holding    sync.Mutex      // held while a plan for held calls is started
}

// reactionName matches the names of the contexts of plans that were started so. They start no
// other.
var reactionName = lazyregexp.New(`^on-(done|failed|held)-[0-9a-f]{32}$`)

// recentEnds is how far back ends are looked for that were recorded while no supervisor followed
// the log, as when one that is shut down lets its last calls end.
const recentEnds = time.Hour

// catchUp starts the plans for recent ends, unless they were started. It leaves out ends that are
// older than the first plan for their occasion by more than longestTurn: the setting may be newer
// than they are.
func (c *reactor) catchUp() {
	if c.generation().Settings().Serve.On == (host.Reactions{}) {
		return
	}
	since := time.Now().Add(-recentEnds)
	first := map[string]time.Time{}
	for _, occasion := range []string{"done", "failed", "held"} {
		at, err := c.firstStart(occasion, since)
		if err != nil {
			c.logError("recent ends of runs can't be found", err)
			return
		}
		first[occasion] = at
	}
	var names []string
	for info, err := range c.log.Contexts(c.ctx, store.ContextFilter{Since: since}) {
		if err != nil {
			c.logError("recent ends of runs can't be found", err)
			return
		}
		if c.wants(info.Context) {
			names = append(names, info.Context)
		}
	}
	isNewer := func(end *runEnd) bool {
		from := first[end.occasion]
		return !from.IsZero() && !end.date.Before(from.Add(-longestTurn))
	}
	for _, name := range names {
		c.repeat(name, func() error { return c.react(name, isNewer) })
	}
}

// longestTurn is how long the first plan for an occasion may have waited for its turn, and so have
// been started after other ends.
const longestTurn = time.Minute

// firstStart returns when the first plan for an occasion was started, some time before since if it
// was before that; the zero time if none was.
func (c *reactor) firstStart(occasion string, since time.Time) (first time.Time, err error) {
	for info, err := range c.log.Contexts(c.ctx, store.ContextFilter{Prefix: "on-" + occasion + "-"}) {
		if err != nil {
			return first, err
		}
		if first.IsZero() || info.Created.Before(first) {
			first = info.Created
		}
		if first.Before(since) {
			break
		}
	}
	return first, nil
}

// wants reports whether there may be a plan for the end of a run.
func (c *reactor) wants(name string) bool {
	return c.generation().Settings().Serve.On != (host.Reactions{}) && !reactionName().MatchString(name) && !schedule.IsRecord(name) && c.ctx.Err() == nil
}

// notice starts a plan, in the background, if there is one for the way in which the run of a
// context has ended or halted.
func (c *reactor) notice(name string) {
	if c.wants(name) {
		c.tasks.Go(func() { c.repeat(name, func() error { return c.react(name, nil) }) })
	}
}

// prepare reads how the run of a context has ended, while no other can have begun there, and
// returns a function that has notice's effect for that end.
func (c *reactor) prepare(name string) (start func()) {
	if !c.wants(name) {
		return func() {}
	}
	end, err := c.readEnd(name)
	if err != nil {
		return func() { c.notice(name) }
	}
	return func() {
		if end != nil {
			c.tasks.Go(func() { c.repeat(name, func() error { return c.start(end) }) })
		}
	}
}

// repeat calls a function until it has no error that may pass.
func (c *reactor) repeat(name string, do func() error) {
	for err := do(); err != nil; err = do() {
		if !isTemporary(err) && !isUnwritable(err) {
			c.logError("the plan for the end of a run can't be started", err, "context", name)
			return
		}
		select {
		case <-time.After(maxWait):
		case <-c.ctx.Done():
			return
		}
	}
}

// react reads how the run of a context has ended, and starts the plan for that if the end is
// picked; a nil function picks all.
func (c *reactor) react(name string, picks func(*runEnd) bool) error {
	end, err := c.readEnd(name)
	if err != nil || end == nil || picks != nil && !picks(end) {
		return err
	}
	return c.start(end)
}

// start starts the plan for an end, unless there is none or it was started.
func (c *reactor) start(end *runEnd) error {
	on := c.generation().Settings().Serve.On
	file := map[string]string{"done": on.Done, "failed": on.Failed, "held": on.Held}[end.occasion]
	if file == "" {
		return nil
	}
	if end.occasion == "held" {
		c.holding.Lock()
		defer c.holding.Unlock()
		if err := c.omitTold(end, file); err != nil || len(end.holds) == 0 {
			return err
		}
	}
	name := "on-" + end.occasion + "-" + once.Digest(end.id)
	if _, err := c.log.Head(c.ctx, name); !errors.Is(err, store.ErrNoContext) {
		return cmp.Or(err, once.CheckBegun(c.ctx, c.log, name, file))
	}
	run, err := c.startRun(c.ctx, Start{
		Start: engine.Start{Context: name, Once: true, Labels: map[string]string{onLabel: end.context}}, patient: true,
		Prepare: func(_ context.Context, start *Start) (err error) {
			start.Request, start.Registry, err = c.generation().Plan(file)
			start.Input = store.Some(end.input())
			return err
		},
	})
	if err == nil {
		select {
		case <-run.Recorded():
			return nil
		case <-run.Ended():
			_, err = run.Wait(c.ctx)
		}
	}
	if isTaken(err) {
		return once.CheckBegun(c.ctx, c.log, name, file)
	}
	if errors.Is(err, ErrStopping) {
		return nil
	}
	return err
}

// runEnd is how a root run has ended or halted.
type runEnd struct {
	occasion string // done, failed or held
	context  string
	date     time.Time
	plan     string
	id       string // tells it from other ends, of this run and of others
	error    string // why it has failed; empty for no error
	call     string // the first call that has failed or is held; empty for none
	labels   map[string]string
	holds    []hold // all that waits for a person; of held
}

// hold is a call or a lazy plan that waits for a person's decision. One that is decided and held
// again is another.
type hold struct {
	list  string         // of the input in which it stands: calls or plans
	call  string         // its name; empty for a plan
	shown map[string]any // as it stands there
}

func (h hold) key() string { return h.list + " " + string(store.EncodeJSON(h.shown)) }

// onLabel is the label of a plan that was started for an end: the context of the run.
const onLabel = "on"

// omitTold leaves in an end the calls and plans that the plan in a file was not started for yet,
// and names the end by them. Runs of another plan do not count, whatever their labels say.
func (c *reactor) omitTold(end *runEnd, file string) error {
	told := map[string]bool{}
	for info, err := range c.log.Contexts(c.ctx, store.ContextFilter{Prefix: "on-held-", Plan: file, Labels: map[string]string{onLabel: end.context}}) {
		if err != nil {
			return err
		}
		for m, err := range c.log.Messages(c.ctx, store.Filter{Context: info.Context, Kind: "input"}) {
			if err != nil {
				return err
			}
			for _, list := range []string{"calls", "plans"} {
				input, _ := m.Data.Value.(map[string]any)
				all, _ := input[list].([]any)
				for _, v := range all {
					shown, _ := v.(map[string]any)
					told[hold{list: list, shown: shown}.key()] = true
				}
			}
		}
	}
	end.holds = slices.DeleteFunc(end.holds, func(h hold) bool { return told[h.key()] })
	id := []string{end.context}
	end.call = ""
	for _, h := range end.holds {
		id = append(id, h.key())
		end.call = cmp.Or(end.call, h.call)
	}
	end.id = strings.Join(id, "\n")
	return nil
}

// input returns the input of the plan that is started.
func (e *runEnd) input() map[string]any {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	labels := map[string]any{}
	for name, value := range e.labels {
		labels[name] = value
	}
	input := map[string]any{
		"context": e.context, "plan": orNull(e.plan), "status": e.occasion, "error": orNull(e.error), "call": orNull(e.call), "labels": labels,
	}
	if e.occasion == "held" {
		lists := map[string][]any{"calls": {}, "plans": {}}
		for _, h := range e.holds {
			lists[h.list] = append(lists[h.list], h.shown)
		}
		input["calls"], input["plans"] = lists["calls"], lists["plans"]
	}
	return input
}

// readEnd reads how the run of a root context has ended or halted. It returns nil for a delegate's,
// and for a run that goes on or waits for something else than a person's decision.
func (c *reactor) readEnd(name string) (*runEnd, error) {
	root, err := c.rootOf(name)
	if err != nil || root != name {
		return nil, err
	}
	at := journal.In(c.log, name)
	last, err := at.CurrentRun(c.ctx)
	if err != nil {
		return nil, err
	}
	entry, _, err := store.Newest(c.ctx, c.log, store.JournalFilter{Context: name, Event: journal.EventRun})
	if err != nil {
		return nil, err
	}
	end := &runEnd{context: name, date: entry.Date, plan: last.Plan, labels: last.Event.Labels}
	switch last.Status {
	case journal.RunDone:
		end.occasion = "done"
	case journal.RunFailed:
		end.occasion = "failed"
		records, err := at.Records(c.ctx)
		if err != nil {
			return nil, err
		}
		end.describeFailure(last.Outcome(name, records))
	case journal.RunWaiting:
		return c.readHeld(at, end)
	default:
		return nil, nil
	}
	end.id = fmt.Sprintf("%s\n%d", name, entry.N)
	return end, nil
}

// describeFailure sets the reason why a run has failed, and the call to blame.
func (e *runEnd) describeFailure(outcome *journal.Outcome) {
	e.error = outcome.Error
	for _, r := range outcome.Calls {
		if !r.Blamed() {
			continue
		}
		text, ok := r.Error["message"].(string)
		if !ok {
			text = string(store.EncodeJSON(r.Error))
		}
		e.call, e.error = r.Call, cmp.Or(e.error, fmt.Sprintf("call %s (%s): %s", r.Call, r.Tool, text))
		return
	}
}

// readHeld completes the end of a run that waits for a person to decide about calls, or to release
// a plan; nil if it does not.
func (c *reactor) readHeld(at journal.Context, end *runEnd) (*runEnd, error) {
	held, err := at.Holds(c.ctx)
	if err != nil {
		return nil, err
	}
	lazy, err := at.Lazy(c.ctx)
	if err != nil || len(held)+len(lazy) == 0 {
		return nil, err
	}
	for _, r := range held {
		since := ""
		if r.Hold != nil {
			since = r.Hold.Since
		}
		end.holds = append(end.holds, hold{"calls", r.Call, map[string]any{"context": r.Context, "call": r.Call, "tool": r.Tool, "since": since}})
	}
	for _, p := range lazy {
		end.holds = append(end.holds, hold{"plans", "", map[string]any{"context": p.Context, "tick": json.Number(strconv.Itoa(p.Tick)), "since": p.Since}})
	}
	end.occasion = "held"
	return end, nil
}
