package ops

import (
	"context"
	"errors"
	"io/fs"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host"
)

// Checked is a plan with its problems. Request is nil if the file can't be read as a plan, and Plan
// is nil if it has errors.
type Checked struct {
	Request  *plan.Request
	Plan     *plan.Plan
	Problems []plan.Problem
}

// CheckFile checks a plan's file as a run would begin with it, whose context may be an empty one,
// without a name. Its error is an [fs.ErrNotExist] if there is no such file.
func (p Project) CheckFile(ctx context.Context, file string, start engine.Start) (Checked, error) {
	request, registry, err := p.Host.Plan(file)
	if problems, ok := host.Problems(err); ok && !errors.Is(err, fs.ErrNotExist) {
		return Checked{Problems: problems}, nil
	}
	if err != nil {
		return Checked{}, err
	}
	start.Request = request
	return p.CheckPlan(ctx, start, registry)
}

// CheckPlan checks a plan as a run would begin with it.
func (p Project) CheckPlan(ctx context.Context, start engine.Start, registry *plan.Registry) (Checked, error) {
	compiled, err := p.Host.Generation().Settings().Runner(p.Log, registry).Check(ctx, start)
	checked := Checked{Request: start.Request, Plan: compiled, Problems: []plan.Problem{}}
	var refused *plan.PlanError
	var policy *plan.PolicyError
	var message *plan.MessageError
	switch {
	case err == nil:
		checked.Problems = append(checked.Problems, compiled.Warnings...)
		return checked, nil
	case errors.As(err, &refused):
		checked.Problems = refused.Problems
	case errors.As(err, &policy) && len(start.Approve.Tools) > 0: // not the settings' own policy
		checked.refuse("", plan.CodeUnknownTool, err)
	case errors.As(err, &policy):
		checked.refuse(host.SettingsFile, plan.CodeUnknownTool, err)
	case errors.As(err, &message):
		checked.refuse(start.Request.Name, plan.CodeSchema, err)
	default:
		return checked, err
	}
	checked.Plan = nil
	return checked, nil
}

// refuse adds an error that is the only problem of a plan.
func (c *Checked) refuse(file, code string, err error) {
	c.Problems = append(c.Problems, plan.Problem{File: file, Severity: plan.SeverityError, Code: code, Message: err.Error()})
}
