package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/store"
)

// runView is a run's page.
type runView struct {
	address
	Summary   history.Summary
	Word      string // the status to show
	Head      int64  // the newest seq
	Live      bool   // the newest moment is shown
	ForksHere bool   // the author may fork the context at the moment that is shown
	Moment    moment
	Problem   string // why the run failed or is stuck
	Hint      string // what may be done about it
	Tabs      []tab
	Stale     bool             // the scripts have changed since
	Kin       []kin            // parent, fork, delegates and forks
	Acts      acts             // that the author may do
	Held      *heldPlan        // the plan that waits for a decision; nil for none
	outcome   *journal.Outcome // as it stands now; nil for a context that can't be read
	Facts     []fact           // its input and its output
	Panel     *panel           // the call that is shown at the side
	Body      any              // of the tab
	Template  string           // that shows it
	Name      string           // that a person has given, for decisions

	Inputs      []field      // of values that the run waits for
	Equivalents []equivalent // of the acts

	Replayed *replayed // the result of a replay that was asked for

	// Refused is the error of a form, Form its values, and RefusedAct the act that it was for.
	Refused, RefusedAct string
	Form                url.Values
}

// fact is a value on the first screen of a run, cut short.
type fact struct{ Name, Text, Query string }

// mostFact is how many characters of a value stand on the first screen of a run.
const mostFact = 200

// addFacts adds the input and the output of the run at the moment that is shown.
func (l reader) addFacts(ctx context.Context, v *runView) error {
	input, err := l.evaluate(ctx, v.Context, "†input", v.At, "")
	if missing := (*history.MissingError)(nil); err != nil && !errors.As(err, &missing) {
		return err
	}
	if err == nil {
		v.Facts = append(v.Facts, fact{"input", cutText(encode(input), mostFact), v.With("tab", tabState, "why", "input")})
	}
	output, is, err := l.outputAt(ctx, v)
	if is {
		v.Facts = append(v.Facts, fact{"output", cutText(argumentText(output), mostFact), v.With("tab", tabOutput)})
	}
	return err
}

// tab is a tab of a run.
type tab struct {
	Name, Title string
	Count       int // 0 for none
	Failed      int
}

// kin is a context that belongs to a run's.
type kin struct {
	Relation string // parent, forked from, delegate, fork
	Context  string
	Status   string
}

// moment is what had happened when a context had reached a seq.
type moment struct {
	Seq  int64
	Date string
	Text string
}

func (p *Page) run(r *http.Request) (*content, error) {
	ctx, a := r.Context(), readAddress(r)
	info, err := p.config.Log.Info(ctx, a.Context)
	if err != nil {
		return nil, err
	}
	if a.At >= info.Messages {
		a.At = 0
	}
	summary, err := p.config.Waiting.Summarize(ctx, info)
	if err != nil {
		return nil, err
	}
	v := &runView{address: a, Summary: summary, Head: info.Messages, Live: a.At == 0, Name: claimedName(r)}
	v.ForksHere = p.config.Author(r).Role >= host.MayRun
	if err := p.read.fillHead(ctx, v); err != nil {
		return nil, err
	}
	lines, err := p.read.Lines(ctx, a.Context, a.At)
	if err != nil {
		return nil, err
	}
	v.Tabs = tabsOf(lines, shownSeq(v))
	if v.Word != "damaged" {
		if err := p.read.addFacts(ctx, v); err != nil {
			return nil, err
		}
	}
	if err := p.read.fillKin(ctx, v, info); err != nil {
		return nil, err
	}
	if v.Acts, err = p.read.actsOf(ctx, p.config.Author(r), v, lines); err != nil {
		return nil, err
	}
	if inside := v.heldInside(lines); inside > 0 {
		if v.Held, err = p.heldPlanOf(r, a.Context); err != nil {
			return nil, err
		}
		v.Acts.DecidesPlan = p.config.Author(r).Role >= host.MayDecide
		v.Acts.HeldInside = v.Acts.DecidesPlan && (v.Held == nil || inside > 1)
	}
	if v.Acts.Append && len(v.Acts.Waits) > 0 {
		if v.Inputs, err = p.read.waitFields(ctx, a.Context, v.Acts.Waits); err != nil {
			return nil, err
		}
	}
	message, err := p.read.sampleMessage(ctx, a.Context, v.Acts.Waits)
	if err != nil {
		return nil, err
	}
	v.Equivalents = equivalentsOf(v, message, p.callerOf(r))
	v.Stale = staleIn(lines, p.config.Host.Generation())
	if v.Moment, err = p.read.momentOf(ctx, a.Context, shownSeq(v)); err != nil {
		return nil, err
	}
	var ticks []engine.Tick
	if a.Tab == tabGraph || a.Tab == tabTimeline || a.Call != "" {
		if ticks, err = p.read.Ticks(ctx, a.Context, a.At); err != nil {
			return nil, err
		}
	}
	if v.Body, v.Template, err = p.read.tabBody(ctx, v, lines, ticks); err != nil {
		return nil, err
	}
	if a.Call != "" {
		if v.Panel, err = p.read.panelOf(ctx, v.address, lines, ticks); err != nil {
			return nil, err
		}
	}
	return &content{Title: a.Context, Section: "runs", Template: "run", Data: v, Still: !v.Live}, nil
}

// Given returns a value of a form that was refused.
func (v *runView) Given(name string) string { return v.Form.Get(name) }

// shownSeq is the seq of the moment that is shown.
func shownSeq(v *runView) int64 {
	if v.At > 0 {
		return v.At
	}
	return v.Head
}

// until is the time of the moment that is shown.
func (v *runView) until() time.Time {
	text := v.Moment.Date
	if v.Live {
		if v.Summary.Status == journal.RunRunning || v.Summary.Status == journal.RunWaiting {
			return time.Now()
		}
		text = v.Summary.Updated // calls that have not ended were cut off by then
	}
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// fillHead adds the status and the problem of the run.
func (l reader) fillHead(ctx context.Context, v *runView) error {
	outcome, err := l.Outcome(ctx, v.Context)
	if damaged, ok := errors.AsType[*journal.DamagedError](err); ok {
		v.Word, v.Problem = "damaged", damaged.Error()
		return nil
	}
	if err != nil {
		return err
	}
	v.outcome, v.Summary.Status, v.Summary.Stopped = outcome, outcome.Status, outcome.Stopped
	if v.Word = string(outcome.Status); v.Summary.Held > 0 {
		v.Word = string(journal.Held)
	}
	v.Problem = cmp.Or(outcome.Error, journal.CauseOf(outcome.Calls))
	if reason, stuck := l.stuck(v.Context); stuck && outcome.Status != journal.RunDone {
		v.Problem, v.Hint = reason, "The server tries again by itself, and with every change of the scripts."
	}
	return nil
}

// tabsOf returns the tabs, with the number of things in them.
func tabsOf(lines []*journal.Line, messages int64) []tab {
	failed := 0
	for _, line := range lines {
		if line.Status == journal.Failed {
			failed++
		}
	}
	return []tab{
		{Name: tabGraph, Title: "Graph"}, {Name: tabTimeline, Title: "Timeline"}, {Name: tabCalls, Title: "Calls", Count: len(lines), Failed: failed},
		{Name: tabLog, Title: "Log", Count: int(messages)}, {Name: tabState, Title: "State"}, {Name: tabOutput, Title: "Output"},
	}
}

// mostKin bounds how many delegates and forks the head of a run lists.
const mostKin = 6

func (l reader) fillKin(ctx context.Context, v *runView, info store.ContextInfo) error {
	if info.Origin.Parent != "" {
		v.Kin = append(v.Kin, kin{Relation: "delegate of", Context: info.Origin.Parent})
	}
	if info.Origin.Fork != "" {
		v.Kin = append(v.Kin, kin{Relation: "forked from", Context: info.Origin.Fork})
	}
	children, err := l.Children(ctx, v.Context, mostKin)
	for _, child := range children {
		relation := "delegate"
		if child.Origin.Fork == v.Context {
			relation = "fork"
		}
		v.Kin = append(v.Kin, kin{Relation: relation, Context: child.Context, Status: child.Standing.Status})
	}
	return err
}

// staleIn reports whether calls ran with other scripts than those with which they would run now.
func staleIn(lines []*journal.Line, g *host.Generation) bool {
	type code struct{ digest, script string }
	current := map[code]bool{}
	return slices.ContainsFunc(lines, func(line *journal.Line) bool {
		of := code{line.Generation, line.Script}
		if line.Generation == "" || current[of] {
			return false
		}
		current[of] = g.RunsCode(line.Generation, line.Script)
		return !current[of]
	})
}

// momentOf describes the message at a seq.
func (l reader) momentOf(ctx context.Context, name string, seq int64) (moment, error) {
	m := moment{Seq: seq}
	c := journal.In(l.Log, name)
	message, err := c.MessageAt(ctx, seq)
	if err != nil || message == nil {
		return m, err
	}
	m.Date = store.FormatDate(message.Date)
	switch {
	case message.Call != "":
		m.Text = message.Call + " wrote " + message.Path.String()
	case message.Kind != "":
		m.Text = message.Kind + " was appended"
	default:
		m.Text = "a " + string(message.Type) + " message"
	}
	return m, nil
}

// Seq is the seq of the moment that is shown.
func (v *runView) Seq() int64 { return shownSeq(v) }

// Earlier and Later return a seq near the moment that is shown; Later returns 0 for now.
func (v *runView) Earlier(by int64) int64 { return max(1, shownSeq(v)-by) }

// Later is described at [runView.Earlier].
func (v *runView) Later(by int64) int64 {
	if shownSeq(v)+by >= v.Head {
		return 0
	}
	return shownSeq(v) + by
}

// tabBody returns the data of the tab, and the name of its template.
func (l reader) tabBody(ctx context.Context, v *runView, lines []*journal.Line, ticks []engine.Tick) (body any, template string, err error) {
	switch v.Tab {
	case tabTimeline:
		pauses, err := l.Pauses(ctx, v.Context, lines)
		return timelineOf(v.address, lines, ticks, pauses, v.until()), "timeline", err
	case tabCalls:
		body, err := l.callsOf(ctx, lines, v.address)
		return body, "calls", err
	case tabLog:
		body, err := l.logOf(ctx, v.address)
		return body, "log", err
	case tabState:
		body, err := l.stateOf(ctx, v.address)
		return body, "state", err
	case tabOutput:
		body, err := l.outputOf(ctx, v)
		return body, "output", err
	}
	body, err = l.graphOf(ctx, v.address, lines, ticks)
	return body, "graph", err
}

// outputView is the output of a run.
type outputView struct {
	Is      bool
	Past    bool // an earlier moment is shown
	Context string
	Tree    node
	IsText  bool   // it is a text
	Report  string // the text, as it is
}

func (l reader) outputOf(ctx context.Context, v *runView) (outputView, error) {
	output, is, err := l.outputAt(ctx, v)
	if err != nil || !is {
		return outputView{Past: !v.Live}, err
	}
	out := outputView{Is: true, Context: v.Context, Tree: newRoom().treeOf("output", "", output, "")}
	if text, ok := output.(string); ok {
		out.IsText, out.Report = true, cutText(text, mostShown)
	}
	return out, nil
}

// outputAt returns the output of the run that was the newest at the moment that is shown, if it was
// done then.
func (l reader) outputAt(ctx context.Context, v *runView) (output any, is bool, err error) {
	if v.Live {
		is = v.outcome != nil && v.outcome.Status == journal.RunDone
		if is {
			output = v.outcome.Output
		}
		return output, is, nil
	}
	for entry, err := range l.Log.Journal(ctx, store.JournalFilter{Context: v.Context, Event: journal.EventRun, Newest: true}) {
		if err != nil {
			return nil, false, err
		}
		if entry.Seq <= v.At {
			end, output, err := journal.ReadRunEvent(entry)
			return output, end.Status == journal.RunDone, err
		}
	}
	return nil, false, nil
}

// mostShown is how many characters of a value a page shows.
const mostShown = 64 << 10

// mostUndecided bounds how many failed calls have a form of their own above a run.
const mostUndecided = 10

// acts lists the acts on a run that its author may do.
type acts struct {
	Cancel, Resume, Append, Fork, Replay bool
	DecidesPlan                          bool // a plan waits for a decision, which the author may take
	HeldInside                           bool // a delegate waits for one

	// Retry and the like are for calls, by their numbers.
	Undecided []journal.Record // failed or in doubt: they can be retried, skipped or given a result
	Held      []journal.Record // the first that waits for a person
	Others    int              // failed calls beyond those
	Waits     []string         // the paths that the run waits for
	By        string           // name of the author, if a token says it
}

// heldInside counts the decisions that a run as it is now waits for beside those about its own
// calls: about its plan, and those of its delegates.
func (v *runView) heldInside(lines []*journal.Line) int {
	if !v.Live || v.Summary.Status != journal.RunWaiting {
		return 0
	}
	own := journal.Pick(journal.OfTick(lines, v.Summary.Tick), func(line *journal.Line) bool { return line.Status == journal.Held })
	return v.Summary.Held - len(own)
}

// actsOf returns the acts on a run that make sense as it stands, and that its author may do.
func (l reader) actsOf(ctx context.Context, author Author, v *runView, lines []*journal.Line) (all acts, err error) {
	if author.Role < host.MayRun || !v.Live {
		return all, nil
	}
	status := v.Summary.Status
	all.Fork = author.Role >= host.MayDecide && slices.ContainsFunc(lines, func(line *journal.Line) bool { return line.Tick == v.Summary.Tick && line.Status.Settled() })
	all.Append = status != journal.RunCancelled
	isLeft := func(line *journal.Line) bool { return line.InBackground() && line.Status == journal.Interrupted }
	goesOn := slices.Contains([]journal.RunStatus{journal.RunRunning, journal.RunWaiting, journal.RunInterrupted}, status)
	rests := slices.Contains([]journal.RunStatus{journal.RunWaiting, journal.RunInterrupted, journal.RunCancelled}, status)
	all.Cancel = goesOn || v.Summary.Background > 0
	all.Resume = rests || slices.ContainsFunc(lines, isLeft)
	all.Replay = status == journal.RunDone || status == journal.RunFailed
	if author.Signed {
		all.By = author.Name
	}
	var undecided, held, waits []*journal.Line
	for _, line := range journal.OfTick(lines, v.Summary.Tick) {
		switch line.Status {
		case journal.Waiting:
			waits = append(waits, line)
		case journal.Failed, journal.InDoubt:
			undecided = append(undecided, line)
		case journal.Held:
			held = append(held, line)
		}
	}
	waiting, err := l.Records(ctx, v.Context, waits[:min(len(waits), mostWaiting)])
	if err != nil {
		return all, err
	}
	for _, r := range waiting {
		for _, path := range r.WaitingOn {
			if !slices.Contains(all.Waits, path) {
				all.Waits = append(all.Waits, path)
			}
		}
	}
	if author.Role < host.MayDecide {
		return all, nil
	}
	all.Others = max(0, len(undecided)-mostUndecided)
	if all.Undecided, err = l.Records(ctx, v.Context, undecided[:len(undecided)-all.Others]); err != nil {
		return all, err
	}
	all.Held, err = l.Records(ctx, v.Context, held[:min(len(held), 1)])
	return all, err
}

// mostWaiting bounds the calls of which the page says what they wait for.
const mostWaiting = 200
