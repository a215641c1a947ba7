package main

import (
	"cmp"
	"context"
	"fmt"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

const activities = `
Activity.register("add", function(call) return call.n + 1 end)
Activity.register("sum", function(call)
  local total = 0
  for _, n in ipairs(call.all) do total = total + n end
  return total
end)`

const logging = `
local log = require("log")
Activity.register("tell", function(call)
  log.info("step", { n = call.n })
  return call.n + 1
end)`

// addPlan is the plan that the server runs.
const addPlan = `return {
  calls = { { _tool = "add", n = "†input.n", _outputPath = "†state.sum" } },
  output = "†state.sum",
}`

// scripts are two, so that a run loads only the activities that it needs.
var scripts = fstest.MapFS{
	"activities/steps.lua": {Data: []byte(activities)},
	"activities/tell.lua":  {Data: []byte(logging)},
	"plans/add.lua":        {Data: []byte(addPlan)},
}

// timeOurs times work by a runner over a new log, with the scripts loaded.
func timeOurs(s settings, file string, work func(r *engine.Runner, t *times, began time.Time) error) (t times, err error) {
	h, err := host.Open(host.Config{Log: logger, FS: scripts})
	if err != nil {
		return t, err
	}
	log, err := sqlite.Open(file, sqlite.Options{Synchronous: s.synchronous})
	if err != nil {
		return t, err
	}
	defer func() { err = cmp.Or(err, log.Close()) }()
	r := &engine.Runner{Log: log, Registry: h.Generation().Registry(), Parallel: s.parallel}
	before, err := usedSoFar()
	if err != nil {
		return t, err
	}
	began := time.Now()
	if err := work(r, &t, began); err != nil {
		return t, err
	}
	t.whole = time.Since(began)
	t.used, err = usedSince(before)
	return t, err
}

func call(tool, parameter string, value any, outputPath, method string) plan.Source {
	fields := map[string]any{"_tool": tool, parameter: value, "_outputPath": outputPath}
	if method != "" {
		fields["_outputMethod"] = method
	}
	return plan.Source{Call: fields}
}

// chain is a plan whose steps each read the result of the one before.
func chain(tool string, steps int) *plan.Request {
	request := &plan.Request{Output: store.Some(fmt.Sprintf("†state.s%d", steps))}
	for i := 1; i <= steps; i++ {
		value := any(0)
		if i > 1 {
			value = fmt.Sprintf("†state.s%d", i-1)
		}
		request.Calls = append(request.Calls, call(tool, "n", value, fmt.Sprintf("†state.s%d", i), ""))
	}
	return request
}

// fanout is a plan of steps that push to one list, and of one that adds them up.
func fanout(steps int) *plan.Request {
	request := &plan.Request{Output: store.Some("†state.sum")}
	for i := 1; i <= steps; i++ {
		request.Calls = append(request.Calls, call("add", "n", i, "†state.all", string(store.Push)))
	}
	request.Calls = append(request.Calls, call("sum", "all", "†state.all", "†state.sum", ""))
	return request
}

// complete runs a plan to its end.
func complete(r *engine.Runner, name string, request *plan.Request, want int) error {
	outcome, err := r.Run(context.Background(), engine.Start{Context: name, Request: request})
	if err == nil && (outcome.Status != journal.RunDone || fmt.Sprint(outcome.Output) != fmt.Sprint(want)) {
		err = fmt.Errorf("context %s is %s and gives %v, not %d", name, outcome.Status, outcome.Output, want)
	}
	return err
}

func ourChain(s settings, file, tool string, steps, part int) (times, error) {
	request := chain(tool, steps)
	return timeOurs(s, file, func(r *engine.Runner, t *times, began time.Time) error {
		done := 0
		if part > 0 {
			r.Observe = func(record journal.Record) {
				if record.Status == journal.Done {
					done++
					t.pass(done, steps, part, began)
				}
			}
		}
		return complete(r, "c", request, steps)
	})
}

func ourFanout(s settings, file string, steps int) (times, error) {
	request := fanout(steps)
	return timeOurs(s, file, func(r *engine.Runner, _ *times, _ time.Time) error {
		return complete(r, "c", request, sumTo(steps))
	})
}

func ourContexts(s settings, file string, contexts, steps int) (times, error) {
	request := chain("add", steps)
	return timeOurs(s, file, func(r *engine.Runner, _ *times, _ time.Time) error {
		var group errgroup.Group
		group.SetLimit(s.parallel)
		for c := range contexts {
			group.Go(func() error { return complete(r, fmt.Sprint("c", c), request, steps) })
		}
		return group.Wait()
	})
}
