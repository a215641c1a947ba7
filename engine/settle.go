package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"obelus/store"
)

// settle takes what a call gave back: it stages the messages that the call
// writes, and records how it ended.
func (t *tick) settle(ctx context.Context, res *result) error {
	i := res.index
	c, call := t.change(i), t.plan.Calls[i]
	if log, broken := errors.AsType[*logError](res.err); broken {
		return log.err
	}
	if res.waits == nil {
		if err := t.arrive(ctx, func(*arrivals) moment { return t.replayed(i).settled }); err != nil {
			return err
		}
	}
	t.free(i)
	c.record.Attempts += res.attempts
	if c.record.Reason != givenByPerson { // else how long it took is known
		c.record.Duration = t.since(c)
	}
	if call.captured {
		c.record.Given = capture(res)
	}
	if res.waits != nil {
		t.waitInside(i, res)
		return nil
	}
	c.record.Retry = false
	if call.Output == nil {
		t.end(i, t.keepOut(i, res))
		return nil
	}
	paths, value, err := res.paths, res.value.Value, error(nil)
	if paths == nil {
		paths, value, err = call.place(&res.value, res.err)
	}
	if err == nil {
		c.record.Handled = handledFailure(call, res)
		err = t.write(ctx, i, paths, value, res.value.Loose)
		if err != nil && res.err != nil { // else nobody would know of it
			err = fmt.Errorf("%w (the call had failed: %s)", err, res.err)
		}
	}
	if log, broken := errors.AsType[*logError](err); broken {
		return log.err
	}
	t.end(i, err)
	return nil
}

// since is how long a call has been at work, in milliseconds. The clock may have
// been set back.
func (t *tick) since(c *callState) float64 {
	return float64(max(t.runner.now().Sub(c.began), 0).Microseconds()) / 1000
}

// keepOut holds what a call without an output path gave back to what its tool
// says. Of a thought it is kept, for the latent calls after it.
func (t *tick) keepOut(i int, res *result) error {
	c, call := t.change(i), t.plan.Calls[i]
	switch {
	case res.err != nil:
		return res.err
	case c.record.Thought != nil && !call.asks && !call.hasGiven:
		return nil // it is its parameters
	case c.record.Thought != nil:
		c.record.Thought = Values{"call": c.record.Thought["call"], "output": res.value.Value}
	case res.value.To != "":
		return faultf("output", "the result was sent to %s, and the call has no _outputPath", res.value.To)
	case res.value.Message != nil || res.paths != nil:
		return nil // it has no value, or is replayed
	}
	_, err := call.result(res.value.Value, res.value.Loose)
	return err
}

// waitInside records that a call's delegate waits.
func (t *tick) waitInside(i int, res *result) {
	c := t.change(i)
	if c.record.Unstored { // nobody goes on with it
		t.fail(i, map[string]any{"message": "its delegate waits, in context " + c.record.Child, "code": "delegate"})
		return
	}
	c.record.Status, c.record.WaitingOn, c.seen = Waiting, res.waits, res.seen
	c.record.Reason = "its delegate waits, in context " + c.record.Child
	t.inside[c.record.Child] = i
	t.note(i)
}

// logError is a log that can't be read, and no fault of the call.
type logError struct{ err error }

func (e *logError) Error() string { return e.err.Error() }

// unreadLog is what becomes of a call for which the log could not be read: it is
// cut off where nobody waits for it any more.
func unreadLog(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errCut
	}
	return &logError{err}
}

// free gives back the place that a worker took.
func (t *tick) free(i int) {
	c := t.change(i)
	if !c.working {
		return
	}
	c.working = false
	t.occupy(i, -1)
	t.unpark(t.plan.Calls[i].activity)
}

// end records how a call ended.
func (t *tick) end(i int, err error) {
	if err != nil {
		t.fail(i, failureOf(err))
		return
	}
	c := t.change(i)
	c.record.Status, c.record.Error = Done, nil
	t.note(i)
	t.release(i, true)
}

func (t *tick) fail(i int, fields map[string]any) {
	c := t.change(i)
	c.record.Status, c.record.Error = Failed, fields
	t.note(i)
	t.release(i, true)
}

// failureOf gives an error the form that the journal and error messages have.
func failureOf(err error) map[string]any {
	var failure *Failure
	if errors.As(err, &failure) {
		return readable(failure.Fields)
	}
	var inside *insideError
	if errors.As(err, &inside) {
		return inside.fields
	}
	code := "runtime"
	var structural *fault
	if errors.As(err, &structural) {
		code = structural.code
	}
	fields := map[string]any{"message": mendText(err.Error()), "code": code}
	var traced interface{ Trace() string }
	if errors.As(err, &traced) && traced.Trace() != "" {
		fields["traceback"] = traced.Trace()
	}
	return fields
}

// readable are the fields of a failure, as far as an error message can hold them.
func readable(fields map[string]any) map[string]any {
	if store.CheckDepth(map[string]any{"error": fields}) == nil {
		return fields
	}
	kept := map[string]any{}
	for key, v := range fields {
		switch v.(type) {
		case map[string]any, []any:
		default:
			kept[key] = v
		}
	}
	return kept
}

// handledFailure is what is recorded of a failure that goes to the call's last alternative; nil of
// anything else.
func handledFailure(c *Call, res *result) Values {
	failure, failed := errors.AsType[*Failure](res.err)
	if !failed || res.paths != nil || len(c.Output.Alternatives) < 2 {
		return nil
	}
	handled := Values{"message": failure.Error()}
	if code, ok := failure.Fields["code"].(string); ok {
		handled["code"] = code
	}
	return handled
}

// place decides which alternative a result goes to (the table of protocol §5).
func (c *Call) place(res *Result, wrong error) (paths []store.Path, value any, err error) {
	alternatives := c.Output.Alternatives
	failure, failed := errors.AsType[*Failure](wrong)
	switch {
	case failed && len(alternatives) > 1:
		res.Loose = failure.Loose
		return alternatives[len(alternatives)-1], failure.Fields, nil
	case wrong != nil:
		return nil, nil, wrong
	case res.Message != nil:
		return c.placeMessage(res.Message, res.Loose)
	}
	paths = alternatives[0]
	if res.To != "" {
		path, err := store.ParsePath(res.To)
		if err != nil {
			return nil, nil, &fault{"output", err}
		}
		var ok bool
		if paths, ok = c.Output.holding(path); !ok {
			return nil, nil, faultf("output", "the result was sent to %s, which its _outputPath %s does not declare", path, c.Output.Source)
		}
	}
	value, err = c.result(res.Value, res.Loose)
	return paths, value, err
}

// result holds a result to what the tool says of it.
func (c *Call) result(value any, loose bool) (any, error) {
	if c.tool.output == nil {
		return value, nil
	}
	if loose {
		value = c.tool.output.Lists(value)
	}
	if err := c.tool.output.Validate(value, "result"); err != nil {
		return nil, &fault{CodeSchema, fmt.Errorf("the result breaks the tool's _output schema: %w", err)}
	}
	return value, nil
}

// placeMessage finds the first alternative whose paths are exactly what a
// message contains. The paths of one alternative get the values that the
// message has there, so the value comes as a function of the path.
func (c *Call) placeMessage(message map[string]any, loose bool) ([]store.Path, any, error) {
	kind, _ := message["kind"].(string)
	data := message["data"]
	for _, paths := range c.Output.Alternatives {
		if values, ok := contained(paths, kind, data); ok {
			for _, path := range paths {
				var err error
				if values[path], err = c.result(values[path], loose); err != nil {
					return nil, nil, err
				}
			}
			return paths, values, nil
		}
	}
	return nil, nil, faultf("output", "the message that it gave back, %s, is what no alternative of its _outputPath %s writes", store.EncodeJSON(message), c.Output.Source)
}

// byPath is a value for each path that is written.
type byPath map[store.Path]any

// contained tells whether data holds a value at each of the paths and nothing
// beside them.
func contained(paths []store.Path, kind string, data any) (byPath, bool) {
	values := byPath{}
	for _, path := range paths {
		v, ok := store.Dig(data, path)
		if !ok || kind != "" && path.Kind() != kind {
			return nil, false
		}
		values[path] = v
	}
	var covered func(v any, at store.Path) bool
	covered = func(v any, at store.Path) bool {
		if slices.ContainsFunc(paths, func(p store.Path) bool { return p == at }) {
			return true
		}
		within := map[string]any{}
		switch v := v.(type) {
		case map[string]any:
			within = v
		case []any:
			for i, e := range v {
				within[strconv.Itoa(i)] = e
			}
		}
		for key, e := range within {
			if !covered(e, at.Child(key)) {
				return false
			}
		}
		return len(within) > 0
	}
	return values, covered(data, store.KindPath(paths[0].Kind()))
}

// write stages the messages of a result, all or none.
func (t *tick) write(ctx context.Context, i int, paths []store.Path, value any, loose bool) error {
	c, call := t.change(i), t.plan.Calls[i]
	now, before := t.runner.date(), t.view.Seq()
	data := func(path store.Path) any {
		if values, ok := value.(byPath); ok {
			return values[path]
		}
		return value
	}
	err := func() error {
		for _, path := range paths {
			m, err := t.message(ctx, i, path, data(path), loose)
			if err != nil {
				return err
			}
			m.Date, m.Written = now, store.FormatDate(now)
			t.wroteNow(i)
			t.view.Stage(m)
		}
		return t.checkDeclared(ctx, call, paths, data)
	}()
	if err != nil {
		t.view.Unstage(before)
		t.authors.forget(before)
		return err
	}
	c.wrote, c.record.Writes = paths, make([]string, len(paths))
	for n, path := range paths {
		c.record.Writes[n] = path.String()
	}
	return nil
}

// message is what a result says at one of its paths, where it fits what is there.
func (t *tick) message(ctx context.Context, i int, path store.Path, v any, loose bool) (m store.Message, err error) {
	call := t.plan.Calls[i]
	if loose && holdsEmpty(v) {
		if v, err = t.declaredLists(ctx, call, path, v); err != nil {
			return m, err
		}
	}
	if size, most := store.SizeOf(v), positive(t.runner.Result, DefaultResult); size > most {
		return m, faultf("result", "the result at %s has %d bytes, and may have %d: the setting limits.result allows no more", path, size, most)
	}
	m = store.Message{
		Type: store.TypeData, Kind: path.Kind(), Instance: call.Instance, Data: store.Wrap(path, v), HasData: true,
		Producer: t.issued(i), Call: t.calls[i].record.Call, Path: path, Method: call.Method,
	}
	if err := store.CheckDepth(m.Data); err != nil {
		return m, &fault{CodeSchema, fmt.Errorf("the result at %s is %w", path, err)}
	}
	op, _ := m.Op()
	err = t.joins(ctx, i, func(r store.Resolver) error { return r.CheckOp(ctx, op) })
	if _, misfit := errors.AsType[*fault](err); err != nil && !misfit {
		err = &logError{err}
	}
	return m, err
}
