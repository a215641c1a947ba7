package host

import (
	"context"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/worker"
)

// isolated is an activity whose calls run in workers, processes of their own.
type isolated struct {
	*activity
	workers *worker.Pool
}

var _ plan.Activity = isolated{}

// Run runs one call in a worker.
func (a isolated) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	return a.workers.Run(ctx, worker.Call{Script: a.script, Name: a.name, Timeout: a.timeout}, in)
}

// Worker lets this program run activities in processes of their own, for projects that set isolate
// = "process". A program that embeds Obelus calls it first in its main: in a process that was
// started as a worker it does not return.
func Worker() { worker.Main(openWorker) }

// openWorker returns the executor of a worker. Its project has no folder.
func openWorker(s worker.Setup) worker.Executor {
	c := Config{Dir: s.Dir, Stderr: s.Stderr, Log: s.Log}.withDefaults()
	g := &Generation{config: c, project: newProject(c, s.Limits), registry: plan.NewRegistry()}
	g.project.Grants, g.project.Scripts = s.Grants, s.Scripts
	return func(script *sandbox.Script, name string, timeout time.Duration, in plan.Invocation) (plan.Result, error) {
		a := &activity{gen: g, script: script, name: name, timeout: timeout}
		return a.Run(context.Background(), in)
	}
}
