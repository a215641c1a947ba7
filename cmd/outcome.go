package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/term"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/lazyregexp"
	"obelus/store"
)

// conclusion prints how a run has ended, once: as soon as its output is known, though calls of it
// go on in the background.
type conclusion struct {
	began  time.Time
	before func(*journal.Outcome) error // prints warnings and hints first; may be nil

	printed bool
	status  error // the exit status
}

// maxNamed is how many calls in the background are named.
const maxNamed = 3

// watch has the conclusion printed as soon as it is known, and ends the progress before that.
func (c *conclusion) watch(ctx context.Context, a *app, runner *engine.Runner, p *term.Progress) {
	runner.Concluded = func(o *journal.Outcome) {
		if o.Status.Finished() && !c.printed {
			p.End()
			_ = c.print(context.WithoutCancel(ctx), a, o) // whatever has been interrupted, it is known
			if run := a.current.Load(); run != nil {
				run.concluded.Store(c)
			}
		}
		var left []string
		for _, r := range o.Calls {
			if r.InBackground() && r.Status != journal.InDoubt && len(left) < maxNamed {
				left = append(left, fmt.Sprintf("%s (%s)", r.Call, human.Printable(r.Tool)))
			}
		}
		if len(left) == 0 {
			left = []string{"those of delegates or of earlier ticks"}
		} else if rest := o.Background - len(left); rest > 0 {
			left = append(left, fmt.Sprintf("%d others", rest))
		}
		status := ""
		if !o.Status.Finished() {
			status = fmt.Sprintf("the run is %s, and goes on if something comes; ", o.Status)
		}
		a.term.Infof("%swaiting for calls in the background: %s; interrupt to stop waiting", status, strings.Join(left, ", "))
	}
}

// print prints the conclusion, unless that is done, and returns the exit status.
func (c *conclusion) print(ctx context.Context, a *app, o *journal.Outcome) error {
	if c.printed {
		if o.Background > 0 && ctx.Err() != nil {
			a.term.Noticef("interrupted: the calls in the background go on by: %s resume -c %s", a.commandPrefix(), o.Context)
		}
		return c.status
	}
	c.printed = true
	if c.before != nil {
		if c.status = c.before(o); c.status != nil {
			return c.status
		}
	}
	c.status = reportOutcome(ctx, a, o, c.began)
	return c.status
}

// reportOutcome prints how a run ended that began at a time, and returns the exit status for it.
// What it reads of the log for that, it reads although the command was interrupted; if it can't be
// read, the outcome is printed all the same.
func reportOutcome(ctx context.Context, a *app, outcome *journal.Outcome, began time.Time) error {
	reading := context.WithoutCancel(ctx)
	unread := cmp.Or(reportEarlierFailures(reading, a, outcome), reportSummary(reading, a, outcome, time.Since(began)))
	if unread != nil && outcome.Status != journal.RunDone {
		a.term.Error(unread)
	}
	explainOutcome(a, outcome)
	if a.json {
		ended := map[string]any{"context": outcome.Context, "status": outcome.Status, "output": outcome.Output}
		if outcome.Background > 0 {
			ended["background"] = outcome.Background
		}
		if err := a.term.NDJSON(ended); err != nil {
			return err
		}
	} else if outcome.Status == journal.RunDone || outcome.Status == journal.RunFailed {
		if err := a.printValue(outcome.Output); err != nil {
			return err
		}
	}
	switch outcome.Status {
	case journal.RunDone:
		return cmp.Or(unread, ctx.Err())
	case journal.RunWaiting:
		return exit.Waiting
	case journal.RunInterrupted:
		return exit.Interrupted
	}
	return exit.Failed
}

// maxEarlierFailures is how many failures of earlier ticks are printed one by one.
const maxEarlierFailures = 3

// reportEarlierFailures prints which calls failed in ticks after which the planner went on. The
// outcome of the run does not show them.
func reportEarlierFailures(ctx context.Context, a *app, outcome *journal.Outcome) error {
	if outcome.Status != journal.RunDone && outcome.Status != journal.RunFailed || outcome.First >= outcome.Tick {
		return nil
	}
	if err := reportRefusedPlans(ctx, a, outcome); err != nil {
		return err
	}
	failed, err := journal.In(a.log, outcome.Context).FailedBefore(ctx, outcome.First, outcome.Tick)
	for i, r := range failed {
		if i == maxEarlierFailures {
			a.term.Error(fmt.Errorf("%d more calls failed in earlier ticks: %s calls -c %s lists them", len(failed)-i, a.commandPrefix(), outcome.Context))
			break
		}
		a.term.Error(fmt.Errorf("call %s (%s) failed, and the plan went on: %s", r.Call, human.Printable(r.Tool), view.Failure(r, a.verbose)))
	}
	return err
}

// reportRefusedPlans prints which plans of a run were refused, after which its planner was asked
// again.
func reportRefusedPlans(ctx context.Context, a *app, outcome *journal.Outcome) error {
	in := journal.In(a.log, outcome.Context)
	plans, err := in.Plans(ctx, outcome.First)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.Refused == nil || p.Tick == outcome.Tick { // the last one is the run's own error
			continue
		}
		m, err := in.MessageAt(ctx, p.Start+1)
		if err != nil {
			return err
		}
		why := ""
		if m != nil {
			data, _ := m.Data.Value.(map[string]any)
			failure, _ := data["error"].(map[string]any)
			why, _ = failure["message"].(string)
		}
		a.term.Error(fmt.Errorf("the plan of tick %d was refused, and its planner asked again: %s", p.Tick, human.FirstLine(why)))
	}
	return nil
}

// explainOutcome prints for a person what failed, what waits, and what to do.
func explainOutcome(a *app, outcome *journal.Outcome) {
	var waiting []string
	decides := false
	for _, r := range outcome.Calls {
		switch r.Status {
		case journal.Failed:
			a.term.Error(fmt.Errorf("call %s (%s): %s", r.Call, human.Printable(r.Tool), view.Failure(r, a.verbose)))
		case journal.Waiting:
			if explainWaiting(a, outcome.Context, r) {
				decides = true
				continue
			}
			waiting = append(waiting, fmt.Sprintf("call %s (%s) waits for %s", r.Call, human.Printable(r.Tool), strings.Join(r.WaitingOn, ", ")))
		case journal.Held:
			decides = true
			a.term.Noticef("call %s (%s) is held for a person: %[3]s approve -c %[4]s %[1]s, or reject; then %[3]s resume -c %[4]s", r.Call, human.Printable(r.Tool), a.commandPrefix(), outcome.Context)
		case journal.InDoubt:
			decides = true
			if r.Error != nil {
				a.term.Noticef("call %s (%s) failed in the try before: %s", r.Call, human.Printable(r.Tool), view.Failure(r, a.verbose))
			}
			a.term.Noticef("call %s (%s) had started when the process ended, and must not run twice: %s resume -c %s --retry %[1]s, or --skip %[1]s, or, if you know what it came to, --result %[1]s:=json",
				r.Call, human.Printable(r.Tool), a.commandPrefix(), outcome.Context)
		}
	}
	if outcome.Error != "" {
		a.term.Error(errors.New(outcome.Error))
	}
	if len(outcome.Stale) > 0 {
		a.term.Noticef("these had run without what was tried again, and keep their outcome: %s; to have them run anew: %s fork -c %s NEW, and run --from the call that was tried again -c NEW",
			strings.Join(outcome.Stale, ", "), a.commandPrefix(), outcome.Context)
	}
	switch {
	case outcome.Lazy != nil:
		a.explainLazy(outcome.Context)
	case len(waiting) > 0:
		a.term.Noticef("%s\n%s", strings.Join(waiting, "\n"), a.howToGive(outcome))
	case outcome.Status == journal.RunInterrupted && outcome.Context == "":
		a.term.Noticef("interrupted: nothing has been recorded")
	case outcome.Status == journal.RunInterrupted && outcome.Stopped:
		a.term.Noticef("stopped: a server of this log goes on with it, or: %s resume -c %s", a.commandPrefix(), outcome.Context)
	case outcome.Status == journal.RunInterrupted:
		a.term.Noticef("interrupted: it goes on only by: %s resume -c %s", a.commandPrefix(), outcome.Context)
	case outcome.Status == journal.RunCancelled:
		a.term.Noticef("cancelled: it goes on only by: %s resume -c %s", a.commandPrefix(), outcome.Context)
	case outcome.Status == journal.RunWaiting && !decides:
		a.term.Noticef("the run has not ended: %s calls -c %s shows why", a.commandPrefix(), outcome.Context)
	}
}

// explainLazy shows a plan that waits to be released, and says how.
func (a *app) explainLazy(name string) {
	shown, _, err := a.showPlan(context.Background(), name)
	if err != nil { // another has decided already
		a.term.Noticef("the plan is recorded: %s approvals -c %s shows whether it waits", a.commandPrefix(), name)
		return
	}
	a.term.Infof("%s", strings.Join(view.ShownPlan(shown), "\n"))
	a.term.Noticef("the plan is recorded: %s approve --plan=%s -c %s lets it run, by %[1]s resume -c %[3]s", a.commandPrefix(), shown.Hash, shown.Context)
}

// explainWaiting prints for which time a call waits, and in which delegate. It returns false for a
// call that waits for values.
func explainWaiting(a *app, context string, r journal.Record) bool {
	until := view.Until(r)
	if until != "" {
		a.term.Noticef("call %s (%s) waits %s: %s resume -c %s goes on then", r.Call, human.Printable(r.Tool), until, a.commandPrefix(), context)
	}
	if r.Child != "" {
		a.term.Noticef("call %s (%s) waits: %s (%[4]s calls -c %[5]s shows for what; %[4]s approvals -c %[6]s, what is held)", r.Call, human.Printable(r.Tool), r.Reason, a.commandPrefix(), r.Child, context)
	}
	return until != "" || r.Child != ""
}

// howToGive says how a run gets what it waits for: input in the line that goes on with it.
func (a *app) howToGive(outcome *journal.Outcome) string {
	var given []string
	for _, r := range outcome.Calls {
		for _, path := range r.WaitingOn {
			name, isInput := strings.CutPrefix(path, "†input.")
			if !isInput || !plainName().MatchString(name) {
				return fmt.Sprintf("append it, then go on: %s resume -c %s", a.commandPrefix(), outcome.Context)
			}
			part := "-i " + name + "=…"
			if list, err := replacedList(context.Background(), a.log, outcome.Context, store.Wrap(store.MustParsePath(path), "…")); err == nil && !list.IsZero() {
				part = giveList(list)
			}
			if !slices.Contains(given, part) {
				given = append(given, part)
			}
		}
	}
	return fmt.Sprintf("give it (name=text or name:=json), and go on: %s resume -c %s %s", a.commandPrefix(), outcome.Context, strings.Join(given, " "))
}

// A name that -i takes, and a shell too, as it is.
var plainName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.]*$`)
