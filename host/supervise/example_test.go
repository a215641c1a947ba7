package supervise_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/supervise"
	"obelus/store"
	"obelus/store/memory"
)

type payment struct {
	Amount float64 `json:"amount"`
}

type receipt struct {
	Paid float64 `json:"paid"`
}

func pay(_ context.Context, p payment) (receipt, error) { return receipt{Paid: p.Amount}, nil }

// project is a project in memory, with one plan and an activity in Go.
func project() (*host.Host, error) {
	return host.Open(host.Config{
		FS: fstest.MapFS{"plans/refund.json": {Data: []byte(`{
			"calls": [{"_tool": "pay", "amount": "†input.amount", "_outputPath": "†state.receipt"}],
			"output": "†state.receipt.paid"
		}`)}},
		Activities: []plan.Registered{{Name: "pay", Activity: engine.Typed(pay)}},
	})
}

// A worker without a web server: it runs a plan, and is shut down. store/sqlite keeps a log in a
// file.
func Example() {
	ctx := context.Background()
	h, err := project()
	if err != nil {
		fmt.Println(err)
		return
	}
	log := memory.New()
	defer log.Close()
	worker := supervise.New(supervise.Config{Host: h, Log: log})

	request, registry, err := h.Plan("plans/refund.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := worker.Start(ctx, supervise.Start{
		Start:    engine.Start{Context: "order-17", Request: request, Input: store.Some(payment{Amount: 40})},
		Registry: registry,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, outcome.Output, run.State())
	fmt.Println(worker.Shutdown(ctx))
	// Output:
	// done 40 ended
	// <nil>
}

// A worker that starts nothing: it goes on with a run that another process has begun, once the
// input is there for which the run waits.
func ExampleNew() {
	ctx := context.Background()
	h, err := project()
	if err != nil {
		fmt.Println(err)
		return
	}
	log := memory.New()
	worker := supervise.New(supervise.Config{Host: h, Log: log})
	defer worker.Shutdown(ctx)

	// Another process, as the commands obelus run and obelus append.
	request, registry, err := h.Plan("plans/refund.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	other := &engine.Runner{Log: log, Registry: registry}
	outcome, err := other.Run(ctx, engine.Start{Context: "order-19", Request: request})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status)
	input := store.Message{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"amount": 40})}
	if _, err := engine.Append(ctx, log, "order-19", []store.Message{input}); err != nil {
		fmt.Println(err)
		return
	}

	outcome, err = worker.Wait(ctx, "order-19")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, outcome.Output)
	// Output:
	// waiting
	// done 40
}

// A run that waits for a person goes on when the decision is recorded.
func ExampleSupervisor_Decide() {
	ctx := context.Background()
	h, err := project()
	if err != nil {
		fmt.Println(err)
		return
	}
	worker := supervise.New(supervise.Config{Host: h, Log: memory.New()})
	defer worker.Shutdown(ctx)

	always, err := plan.ParsePolicy("always")
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := worker.Start(ctx, supervise.Start{
		Start: engine.Start{Context: "order-18", Approve: always, Input: store.Some(payment{Amount: 40})},
		Prepare: func(_ context.Context, s *supervise.Start) (err error) { // when it is its turn
			s.Request, s.Registry, err = h.Plan("plans/refund.json")
			return err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status)

	if err := worker.Decide(ctx, journal.Decision{Context: "order-18", Call: "1.1", Who: journal.Who{By: "eva"}}); err != nil {
		fmt.Println(err)
		return
	}
	outcome, err = worker.Wait(ctx, "order-18")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, outcome.Output)
	// Output:
	// waiting
	// done 40
}
