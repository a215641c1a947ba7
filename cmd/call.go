package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/usage"
	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/visible"
	"obelus/store"
)

func callCommand(a *app) *cobra.Command {
	var scopes []string
	c := &cobra.Command{
		Use:   "call TOOL [key=value…]",
		Short: "run one activity, without a plan; its result goes to stdout",
		Long: `Run one activity: a plan of one call. Parameters are key=text or key:=json, and
dots nest: address.city=Bonn. In a context named by -c a parameter may be a
reference, and --scopes lets the activity see a part of it. What a plan says of a
call can be said here too: _outputPath=†state.city, where the tool wants its own.`,
		Example: `  obelus call lookupOrders customerId=c-1042
  obelus call decide orders:='[{"total": 12}]' --scopes state`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return callActivity(c.Context(), a, args[0], args[1:], scopes)
		},
	}
	c.Flags().Var((*cli.Words)(&scopes), "scopes", "let the activity see these kinds or paths, such as state or input.user: `KIND,...`")
	registerLogLevel(a, c)
	a.allow.Register(c)
	a.models.RegisterRun(c)
	a.registerRaw(c)
	return c
}

func callActivity(ctx context.Context, a *app, tool string, pairs, scopes []string) error {
	call, err := cli.ReadPairs(pairs)
	if err != nil {
		return err
	}
	if len(scopes) > 0 {
		list := make([]any, len(scopes))
		for i, scope := range scopes {
			list[i] = scope
		}
		call["_scopes"] = list
	}
	if err := a.openProject(""); err != nil {
		return err
	}
	registry := a.host.Generation().Registry()
	request, err := newCallRequest(a, registry, tool, call)
	if err != nil {
		return err
	}
	err = runAndReport(ctx, a, engine.Start{Request: request}, registry, runOptions{singleCall: true})
	if refused, ok := errors.AsType[*plan.PlanError](err); ok {
		for i := range refused.Problems {
			refused.Problems[i].Message += usage.HintTextArgument(refused.Problems[i].Message, pairs)
		}
	}
	return err
}

// callResult returns the result of the only call of a run: the value that it wrote, before its
// method joined that with the value that was there.
func callResult(ctx context.Context, a *app, outcome *journal.Outcome) (any, error) {
	for m, err := range a.log.Messages(ctx, store.Filter{Context: outcome.Context, Newest: true}) {
		if err != nil {
			return nil, err
		}
		if m.Call == outcome.Calls[0].Call {
			op, _ := m.Op()
			return op.Value, nil
		}
	}
	return outcome.Output, nil
}

// newCallRequest returns a plan of one call, with the call's result as its output.
func newCallRequest(a *app, registry *plan.Registry, tool string, call map[string]any) (*plan.Request, error) {
	if given, ok := call["_tool"]; ok {
		return nil, exit.Usagef("_tool=%v: the tool is named first: %s", given, visible.Command("obelus", "call", fmt.Sprint(given)))
	}
	call["_tool"] = tool
	output, err := callOutput(registry, tool, call)
	if err != nil {
		return nil, err
	}
	if call["_instance"] == "*" {
		return nil, exit.Usage("_instance=*: one call is run, so name one instance")
	}
	instance := call["_instance"]
	if known, ok := registry.Tool(tool); ok && instance == nil {
		instance = known.Suggested("_instance")
	}
	request := &plan.Request{Calls: []plan.Source{{Call: call}}}
	if instance == nil { // an output reads no instance
		request.Output = store.Some(output)
	}
	return request, nil
}

// callOutput gives the call an output path if it has none, and returns the expression that reads
// its result.
func callOutput(registry *plan.Registry, tool string, call map[string]any) (string, error) {
	if given, ok := call["_outputPath"].(string); ok {
		return outputExpression(given)
	}
	known, _ := registry.Tool(tool)
	path := known.ResultPath()
	call["_outputPath"] = path
	return outputExpression(path)
}

// outputExpression returns an expression that reads a result from whichever alternative it went to.
func outputExpression(path string) (string, error) {
	output, err := expr.ParseOutput(path)
	if err != nil {
		return "", exit.Usagef("_outputPath: %s", err)
	}
	var alternatives []string
	for _, paths := range output.Alternatives {
		alternatives = append(alternatives, paths[0].String())
	}
	return strings.Join(alternatives, " || "), nil
}
