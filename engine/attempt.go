package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"obelus/engine/internal/crash"
	"obelus/engine/plan"
)

// errCut is the error of a call that was stopped with its run. An activity that gave up work of its
// own, even with the error of a context, has failed like any other.
var errCut = errors.New("it was cut off")

// longestBackoff is what can be doubled without an overflow.
const longestBackoff = time.Duration(math.MaxInt64 / 4)

// isRetried reports whether a call is to be tried again after an error of an attempt, which is
// counted from 1. Whether a call that timed out has had an effect is unknown: one that must run
// only once is not retried.
func isRetried(a plan.Attempts, once bool, attempt int, err error) bool {
	failure, failed := errors.AsType[*plan.Failure](err)
	return failed && failure.Fields["retry"] != false && attempt <= a.Retries &&
		!(once && failure.Fields["code"] == "timeout")
}

// backoff returns the pause after an attempt, which is counted from 1. jitter returns a duration
// below the given one; nil for a random one.
func backoff(a plan.Attempts, attempt int, jitter func(time.Duration) time.Duration) time.Duration {
	if jitter == nil {
		jitter = rand.N[time.Duration]
	}
	span := min(cmp.Or(a.Backoff, plan.DefaultBackoff), longestBackoff)
	for range attempt - 1 {
		span = min(2*span, longestBackoff)
	}
	return span/2 + jitter(span)
}

// runAttempt runs a call under its deadline. A later result is ignored, whatever it is: an activity
// seldom reports that it gave up for the deadline. A panic of a Go activity becomes an error of the
// call. A call that is told to stop may end in any way: without a result its error is [errCut]. A
// within that is not 0 is the time after which it is told to stop.
func runAttempt(ctx context.Context, name string, timeout, within time.Duration, do plan.ActivityFunc, in plan.Invocation) (_ plan.Result, err error) {
	timeout = cmp.Or(timeout, plan.DefaultTimeout)
	began := time.Now()
	deadline := began.Add(timeout)
	limited, cancel := context.WithDeadline(ctx, began.Add(cmp.Or(within, timeout)))
	defer cancel()
	late := func() bool { return !time.Now().Before(deadline) }
	defer func() {
		switch p := recover(); {
		case p != nil && ctx.Err() != nil:
			err = errCut
		case p != nil && late():
			err = timedOut(timeout, nil)
		case p != nil:
			err = crash.PanicError("the activity "+name+" broke down", p)
		}
	}()
	res, err := do(limited, in)
	if err != nil && ctx.Err() != nil {
		return plan.Result{}, errCut
	}
	if late() {
		return plan.Result{}, timedOut(timeout, err)
	}
	return plan.NormalizeResult(name, res, err)
}

// timedOut is the failure of a call whose time is over, with the place at which the
// activity, if it knows, was by then, or with what a model says of it.
func timedOut(after time.Duration, said error) error {
	fields := map[string]any{"message": fmt.Sprintf("timed out after %s", after), "code": "timeout"}
	if _, ok := errors.AsType[*plan.LateError](said); ok {
		fields["message"] = fmt.Sprintf("timed out after %s: %s", after, said)
	}
	if own, ok := errors.AsType[*plan.Failure](said); ok && own.Fields["code"] == "timeout" && own.Fields["script"] != nil {
		fields["script"] = own.Fields["script"]
	}
	return &plan.Failure{Fields: fields}
}
