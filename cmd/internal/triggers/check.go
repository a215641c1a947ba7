// Package triggers shows and checks the settings by which a server starts plans by itself.
package triggers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/memory"
)

// Check returns the problems of schedules, hooks and reactions with their plans and their input.
// The plans themselves are checked with all others.
func Check(ctx context.Context, g *host.Generation) (problems []plan.Problem) {
	report := func(code string, err error, names ...string) {
		names = append([]string{"serve"}, names...)
		problems = append(problems, plan.Problem{
			File: host.SettingsFile, Line: g.SettingLine(names...), Severity: plan.SeverityError, Code: code,
			Message: fmt.Sprintf("%s: %s", strings.Join(names, "."), err),
		})
	}
	for _, s := range g.Settings().Serve.Schedules {
		request, registry, err := g.Plan(s.Plan)
		if errors.Is(err, fs.ErrNotExist) {
			report(plan.CodeSyntax, err, "schedules", s.Name, "plan")
		}
		if err != nil {
			continue
		}
		input := request.Lists("input", s.InputAt(s.When.Next(time.Now())), registry.Schemas...)
		err = g.Settings().Runner(memory.New(), registry).Accepts(ctx, engine.Start{Request: request, Input: store.Some(input)})
		if message, ok := errors.AsType[*plan.MessageError](err); ok && message.Input {
			report(plan.CodeSchema, message.Err, "schedules", s.Name, "input")
		}
	}
	reportAbsent := func(file string, names ...string) {
		if _, _, err := g.Plan(file); file != "" && errors.Is(err, fs.ErrNotExist) {
			report(plan.CodeSyntax, err, names...)
		}
	}
	for _, h := range g.Settings().Serve.Hooks {
		reportAbsent(h.Plan, "hooks", h.Name, "plan")
	}
	on := g.Settings().Serve.On
	reportAbsent(on.Done, "on", "done")
	reportAbsent(on.Failed, "on", "failed")
	reportAbsent(on.Held, "on", "held")
	return problems
}
