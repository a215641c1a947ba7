package history

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Why is the origin of a value: the messages that it is made of, the calls that wrote them, the
// values that those read, and so on back to foreign messages (cmd/SURFACE.md, why).
type Why struct {
	Ref string `json:"ref"`
	// Set where it differs from the context around it: in a delegate.
	Context string `json:"context,omitempty"`
	Value   any    `json:"value"`
	Missing bool   `json:"missing,omitempty"` // there was no value
	// Its origin stands before, nearer to the top, as does the value if it is an object or an
	// array: it is null here.
	Again bool     `json:"again,omitempty"`
	From  []Origin `json:"from,omitempty"` // newest first
}

// Origin is a message that a value is made of.
type Origin struct {
	Seq    int64        `json:"seq"`
	Path   string       `json:"path"` // the path of the write
	Method store.Method `json:"method,omitempty"`
	Data   any          `json:"data"` // the value written there
	// The call that wrote it; none for a foreign message.
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	Kind string `json:"kind,omitempty"` // kind of a foreign message: input, state …
	// It does not fit the value that it joins, and was read as onto a missing value.
	Misfit bool `json:"misfit,omitempty"`
	// The reads of the call stand before, as do the data if they are an object or an array: they
	// are null here.
	Again bool  `json:"again,omitempty"`
	Reads []Why `json:"reads,omitempty"` // the values that the call read
	If    any   `json:"if,omitempty"`    // the call's condition, which held

	Corrected plan.Values `json:"corrected,omitempty"` // arguments that a person corrected
	// What corrected arguments were, and the references that had given that, as far as the log has it.
	Was   plan.Values       `json:"was,omitempty"`
	Refs  map[string]string `json:"was_refs,omitempty"`
	Given bool              `json:"given,omitempty"` // a person gave the call's result
	// Of a call that failed and wrote its failure: code and message.
	Handled     plan.Values `json:"handled,omitempty"`
	journal.Who             // corrected or rejected it

	Answered *journal.Answered `json:"answered,omitempty"`  // of a latent call that a model answered
	SetAside *journal.SetAside `json:"set_aside,omitempty"` // an answer to it that does not count

	Planned *Planned `json:"planned,omitempty"` // of a call that a planner issued
}

// Planned describes arguments of a call that the plan's function computed, or a model.
type Planned struct {
	ByModel   bool     `json:"by_model,omitempty"` // a model did, not a function
	Tick      int      `json:"tick"`               // the tick that it planned
	Arguments []string `json:"arguments"`
	// The values granted to it then; empty in logs of older versions.
	Saw []Why `json:"saw,omitempty"`
}

// Explain returns the origin of an expression's value in a context, as an instance sees it, as of a
// seq or, with 0, as of now.
func Explain(ctx context.Context, c journal.Context, e *expr.Expr, at int64, instance string) (why *Why, err error) {
	err = c.Together(ctx, func(newest int64) error {
		why, err = explain(ctx, c, e, cmp.Or(at, newest), instance)
		return err
	})
	return why, err
}

func explain(ctx context.Context, c journal.Context, e *expr.Expr, at int64, instance string) (*Why, error) {
	v, found, err := get(ctx, c, e, at, instance)
	if err != nil {
		return nil, err
	}
	x := &explainer{ctx: ctx, log: c.Log, seen: &seen{c.Log, map[store.Query][]store.Op{}, map[store.Query]bool{}}, told: map[told]bool{}, kept: map[told]*store.Message{}, plans: map[journal.TickOf]journal.PlanEvent{}}
	why := &Why{Ref: e.String(), Value: v}
	for _, path := range found {
		read, err := x.read(c.Name, path, at, instance)
		if err != nil {
			return nil, err
		}
		why.From = append(why.From, read.From...)
	}
	return why, nil
}

// explainer follows values back. Each value at each time is followed once.
type explainer struct {
	ctx  context.Context
	log  store.Reader
	seen *seen // the same
	told map[told]bool
	// Messages that were read: many calls may have read the writes of one.
	kept  map[told]*store.Message
	plans map[journal.TickOf]journal.PlanEvent
}

// seen is a log that caches the queries to it: many calls may have read parts of one array, which
// is read as a whole.
type seen struct {
	store.OpReader
	ops map[store.Query][]store.Op // from the newest to the last that was read
	all map[store.Query]bool       // queries whose operations are all in ops
}

// Touching implements [store.OpReader].
func (s *seen) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return func(yield func(store.Op, error) bool) {
		known := s.ops[q]
		for _, op := range known {
			if !yield(op, nil) {
				return
			}
		}
		if s.all[q] {
			return
		}
		n := 0
		for op, err := range s.OpReader.Touching(ctx, q) {
			if n++; n <= len(known) {
				continue
			}
			if err == nil {
				s.ops[q] = append(s.ops[q], op)
			}
			if !yield(op, err) || err != nil {
				return
			}
		}
		s.all[q] = true
	}
}

// scalar returns a value that is short enough to repeat; nil for any other.
func scalar(v any) any {
	switch v.(type) {
	case map[string]any, []any:
		return nil
	}
	return v
}

type told struct {
	context, path, instance string
	// The newest message of the value, or, without a path, the message itself.
	newest int64
}

// read explains a value that something read.
func (x *explainer) read(name string, path store.Path, at int64, instance string) (Why, error) {
	resolved, err := store.Resolver{Log: x.seen, Context: name, At: at}.Resolve(x.ctx, path, instance)
	if err != nil {
		return Why{}, err
	}
	why := Why{Ref: path.String(), Value: resolved.Value, Missing: !resolved.Exists}
	key := told{name, path.String(), instance, journal.NewestSeq(resolved.From)}
	if why.Again = x.told[key] && resolved.Exists; why.Again {
		why.Value = scalar(why.Value)
		return why, nil
	}
	x.told[key] = true
	if len(resolved.From) > fewOrigins && x.toldAll(name, resolved.From) {
		why.Again, why.Value = true, scalar(why.Value)
		return why, nil
	}
	for _, seq := range resolved.From {
		origin, err := x.origin(name, seq, path)
		if err != nil {
			return Why{}, err
		}
		origin.Misfit = slices.Contains(resolved.Misfits, seq)
		why.From = append(why.From, origin)
	}
	return why, nil
}

// fewOrigins is the number of origins up to which they are repeated although all of them stand
// before.
const fewOrigins = 8

// toldAll reports whether all of some messages stand before: an element of an array has the origins
// of the whole array.
func (x *explainer) toldAll(name string, seqs []int64) bool {
	return !slices.ContainsFunc(seqs, func(seq int64) bool { return !x.told[told{context: name, newest: seq}] })
}

// origin explains one message.
func (x *explainer) origin(name string, seq int64, path store.Path) (Origin, error) {
	m, err := x.message(name, seq)
	if err != nil {
		return Origin{}, err
	}
	o := Origin{Seq: seq, Path: m.Path.String(), Method: m.Method, Call: m.Call}
	if m.Producer == nil {
		o.Kind = m.Kind
		for _, within := range path.Prefixes() { // as far as the message goes
			if data, ok := store.Dig(m.Data.Value, within); ok {
				o.Path, o.Data = within.String(), data
			}
		}
		return o, nil
	}
	o.Data, _ = store.Dig(m.Data.Value, m.Path)
	producer, _ := m.Producer.(map[string]any)
	o.Tool, _ = producer["_tool"].(string)
	key := told{context: name, newest: seq}
	if o.Again = x.told[key]; o.Again {
		o.Data = scalar(o.Data)
		return o, nil
	}
	x.told[key] = true
	return o, x.explainCall(name, m, producer, &o)
}

// explainCall adds the origins of the call that wrote a message: its reads, a person's decisions
// about it, and the arguments that a planner computed.
func (x *explainer) explainCall(name string, m *store.Message, producer map[string]any, o *Origin) error {
	record, n, err := x.writer(name, m)
	if err != nil || n == 0 {
		return err
	}
	if o.Reads, err = x.reads(name, record, n); err != nil {
		return err
	}
	if record.If != nil {
		o.If = producer["_if"]
	}
	o.Answered, o.SetAside = record.Answered, record.SetAside
	o.Given, o.Handled = record.Reason == journal.ReasonGiven, record.Handled
	if h := record.Hold; h != nil && h.Decision == journal.Rejected {
		o.Who = h.Who
	}
	if h := record.Hold; h != nil && len(h.Corrected) > 0 {
		o.Corrected, o.Who, o.Was, o.Refs = plan.Values{}, h.Who, h.Was, h.Refs
		for _, argument := range h.Corrected {
			o.Corrected[argument] = h.Arguments[argument]
		}
	} else if err := x.addPlanCorrections(name, record, o); err != nil {
		return err
	}
	if _, hasOutput := producer["_output"]; hasOutput && record.Answered == nil && record.Model == nil {
		if o.Answered, err = x.unchecked(name, record.Tick); err != nil {
			return err
		}
	}
	o.Planned, err = x.planned(name, record, producer)
	return err
}

// addPlanCorrections adds what a person corrected of the call before its plan ran.
func (x *explainer) addPlanCorrections(name string, record journal.Record, o *Origin) error {
	event, err := x.plan(name, record.Tick)
	if err != nil || event.Decision == nil {
		return err
	}
	for key, value := range event.Decision.Set {
		place, isOfCall := strings.CutPrefix(key, record.Call+".")
		if !isOfCall {
			continue
		}
		if o.Corrected == nil {
			o.Corrected, o.Was, o.Who = plan.Values{}, plan.Values{}, event.Decision.Who
		}
		o.Corrected[place] = value
		was, had := event.Decision.Shown[key]
		if text, isText := was.(string); isText && expr.IsExpr(text) {
			if o.Refs == nil {
				o.Refs = map[string]string{}
			}
			o.Refs[place] = text
		} else if had {
			o.Was[place] = was
		}
	}
	return nil
}

// Correction is [journal.Correction] of a corrected argument.
func (o *Origin) Correction(name string) string {
	return journal.Correction(o.Corrected[name], o.Who, o.Was, o.Refs, name)
}

// unchecked describes an answer of a model's plan in a log of an older version; nil for any other
// plan.
func (x *explainer) unchecked(name string, tick int) (*journal.Answered, error) {
	plan, err := x.plan(name, tick)
	if err != nil || !plan.ByModel || plan.Question != nil {
		return nil, err
	}
	return &journal.Answered{How: journal.Unchecked, Tick: tick}, nil
}

// isCorrected reports whether a person has corrected an argument of a call, or something in it.
func isCorrected(record journal.Record, plan journal.PlanEvent, argument string) bool {
	if record.Hold != nil && slices.Contains(record.Hold.Corrected, argument) {
		return true
	}
	if plan.Decision == nil {
		return false
	}
	for key := range plan.Decision.Set {
		if place, ok := strings.CutPrefix(key, record.Call+"."); ok && (place == argument || strings.HasPrefix(place, argument+".")) {
			return true
		}
	}
	return false
}

// planned describes the arguments of a call that a planner computed; nil if there are none.
func (x *explainer) planned(name string, record journal.Record, producer map[string]any) (*Planned, error) {
	plan, err := x.plan(name, record.Tick)
	if err != nil || !plan.Planner {
		return nil, err
	}
	p := &Planned{Tick: record.Tick, ByModel: plan.ByModel}
	given := map[string]any{} // without the properties that the tool filled in
	if calls, err := journal.In(x.log, name).PlanMessage(x.ctx, plan.MessageSeq()); err == nil && record.Position <= len(calls) {
		given, _ = calls[record.Position-1].(map[string]any)
	}
	for _, argument := range jsonvalue.SortedKeys(producer) {
		if _, ok := given[argument]; !ok {
			continue
		}
		t, err := expr.ParseTemplate(producer[argument], argument)
		if err == nil && !strings.HasPrefix(argument, "_") && len(t.Reads()) == 0 && !isCorrected(record, plan, argument) {
			p.Arguments = append(p.Arguments, argument)
		}
	}
	if p.Arguments == nil {
		return nil, nil
	}
	for _, text := range jsonvalue.SortedKeys(plan.Saw) {
		path, err := store.ParsePath(text)
		if err != nil {
			continue
		}
		why, err := x.read(name, path, plan.Start, record.Instance)
		if err != nil {
			return nil, err
		}
		p.Saw = append(p.Saw, why)
	}
	return p, nil
}

// plan is the event with which a tick began.
func (x *explainer) plan(name string, tick int) (journal.PlanEvent, error) {
	key := journal.TickOf{Context: name, Tick: tick}
	if plan, ok := x.plans[key]; ok {
		return plan, nil
	}
	for entry, err := range x.log.Journal(x.ctx, store.JournalFilter{Context: name, Event: journal.EventPlan}) {
		if err != nil {
			return journal.PlanEvent{}, err
		}
		// A damaged entry hides nothing else.
		if plan, err := journal.ReadPlanEvent(entry); err == nil {
			if plan.IsLazy() {
				if plan.Decision, err = journal.In(x.log, name).PlanDecision(x.ctx, plan.Tick, entry.N); err != nil {
					return journal.PlanEvent{}, err
				}
			}
			x.plans[journal.TickOf{Context: name, Tick: plan.Tick}] = plan
		}
	}
	return x.plans[key], nil
}

// message reads one message. The loop over the log has ended when the caller follows it further.
func (x *explainer) message(name string, seq int64) (*store.Message, error) {
	key := told{context: name, newest: seq}
	if m := x.kept[key]; m != nil {
		return m, nil
	}
	m, err := journal.In(x.log, name).MessageAt(x.ctx, seq)
	if err == nil && m == nil {
		err = errors.New("a message that a value is made of can't be found in the log")
	}
	x.kept[key] = m
	return m, err
}

// reads explains the values that a call read, as recorded at a position in the journal.
func (x *explainer) reads(name string, record journal.Record, n int64) ([]Why, error) {
	var all []Why
	for _, text := range jsonvalue.SortedKeys(record.Reads) {
		path, err := store.ParsePath(text)
		if err != nil {
			continue
		}
		why, err := x.read(name, path, cmp.Or(record.Reads[text], record.At), record.Instance)
		if err != nil {
			return nil, err
		}
		all = append(all, why)
	}
	inside, err := x.inside(record, n)
	return append(all, inside...), err
}

// writer finds the record of the call that wrote a message, and its position: the first in the
// journal from when the message was there. The position is 0 if there is none.
func (x *explainer) writer(name string, m *store.Message) (journal.Record, int64, error) {
	for entry, err := range x.log.Journal(x.ctx, store.JournalFilter{Context: name, Seq: m.Seq, Call: m.Call}) {
		if err != nil {
			return journal.Record{}, 0, err
		}
		if !journal.Status(entry.Event).Settled() {
			continue
		}
		r, err := journal.ReadRecord(entry)
		return r, entry.N, err
	}
	return journal.Record{}, 0, nil
}

// inside explains a delegate's output in its own context, as it was when the call settled, at a
// position in the journal.
func (x *explainer) inside(record journal.Record, n int64) ([]Why, error) {
	if record.Child == "" {
		return nil, nil
	}
	log := &journal.Truncated{Reader: x.log, Ends: map[string]journal.End{}}
	if err := log.Truncate(x.ctx, record.Child, n); err != nil {
		return nil, err
	}
	was, ok := log.Ends[record.Child]
	if !ok { // it was pruned; a context made since under its name is another
		return nil, nil
	}
	at := was.Seq
	last, err := journal.In(log, record.Child).LastRun(x.ctx)
	if err != nil || last.Event.Output == nil {
		return nil, err
	}
	output, err := journal.DecodeJSON(last.Event.Output)
	if err != nil {
		return nil, err
	}
	t, err := expr.ParseTemplate(output, "output")
	if err != nil {
		return nil, err
	}
	var found []store.Path
	_, _, err = t.Eval(x.ctx, finding(x.ctx, store.Resolver{Log: x.log, Context: record.Child, At: at}, "", &found))
	if err != nil && !errors.As(err, new(*expr.Error)) {
		return nil, err
	}
	var all []Why
	for _, path := range found {
		why, err := x.read(record.Child, path, at, "")
		if err != nil {
			return nil, err
		}
		why.Context = record.Child
		all = append(all, why)
	}
	return all, nil
}
