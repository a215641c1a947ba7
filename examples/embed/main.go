// Command embed is a Go program with Obelus inside: it brings an activity in Go and an object for
// its Lua scripts, runs a plan over a log in a file, and prints the status of the plan's calls.
//
//	go run ./examples/embed
//
// With arguments it is the command obelus, with that activity and that object:
//
//	go run ./examples/embed help
//	go run ./examples/embed -C examples/embed/project \
//		run plans/order.lua -i item=tea -i count:=2 -i price:=4
package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"obelus/cmd"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

//go:embed project
var files embed.FS

// stock holds the shop's items. Scripts call its methods, several at once.
type stock struct {
	mu    sync.Mutex
	items map[string]int
}

// Take takes items out of the stock, as far as there are any.
func (s *stock) Take(item string, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.items[item])
	s.items[item] -= n
	return n
}

// payment and receipt are the parameters and the result of charge: its tool follows from them.
type payment struct {
	Amount float64 `json:"amount" jsonschema:"in euros"`
}

type receipt struct {
	Charged float64 `json:"charged"`
	Key     string  `json:"key"`
}

// charge is an activity in Go. A failure is an outcome, which a plan may handle; any other error
// is a fault. The key is the same however often a call is tried, so that a bank charges once.
func charge(ctx context.Context, p payment) (receipt, error) {
	if p.Amount > 100 {
		return receipt{}, plan.NewFailure("%v is over the limit", p.Amount)
	}
	return receipt{Charged: p.Amount, Key: plan.InvocationOf(ctx).Key}, nil
}

// shop is the part of the host's configuration that this program brings.
func shop() host.Config {
	return host.Config{
		Objects: map[string]any{"stock": &stock{items: map[string]int{"tea": 3}}},
		Activities: []plan.Registered{
			{Name: "charge", Activity: engine.Typed(charge), Timeout: time.Second, NotIdempotent: true},
		},
	}
}

func main() {
	host.Worker() // first, so that a project may say isolate = "process"
	if len(os.Args) > 1 {
		os.Exit(cmd.Main(cmd.Config{Host: shop()}))
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	project, err := fs.Sub(files, "project")
	if err != nil {
		return err
	}
	config := shop()
	config.FS, config.Stderr = project, os.Stderr
	h, err := host.Open(config)
	if err != nil {
		return err
	}
	defer h.Close()

	dir, err := os.MkdirTemp("", "embed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, err := sqlite.Open(filepath.Join(dir, "log.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer log.Close()

	request, registry, err := h.Plan("plans/order.lua")
	if err != nil {
		return err
	}
	runner := h.Generation().Settings().Runner(log, registry)
	outcome, err := runner.Run(ctx, engine.Start{
		Context: "order-1", Request: request,
		Input: store.Some(map[string]any{"item": "tea", "count": 5, "price": 4}),
	})
	if err != nil {
		return err
	}
	fmt.Println(outcome.Status, string(store.EncodeJSON(outcome.Output)))

	records, err := journal.In(log, "order-1").Records(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		fmt.Println(r.Call, r.Tool, r.Status, r.Writes)
	}
	return nil
}
