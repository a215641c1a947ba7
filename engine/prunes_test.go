package engine_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

var prunes = flag.Duration("prunes", 2*time.Second, "how long contexts are pruned while others use them, in each kind of log")

// TestPrune_BesideOthers: what is read of a context, or appended to it, while it is pruned and made
// anew again and again, is of one context or none, and never looks like damage.
func TestPrune_BesideOthers(t *testing.T) {
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{Synchronous: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	for name, log := range map[string]store.Log{"sqlite": file, "memory": memory.New()} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { log.Close() })
			pruneBesideOthers(t, log)
		})
	}
}

func pruneBesideOthers(t *testing.T, log store.Log) {
	request := readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "value", "value": "†state.a", "_outputPath": "†state.b"}]`)
	ctx, cancel := context.WithTimeout(t.Context(), *prunes)
	defer cancel()
	uses := map[string]func(r *rand.Rand, name string) error{
		"prune": func(_ *rand.Rand, name string) error {
			info, err := log.Info(ctx, name)
			if err == nil {
				err = log.Prune(ctx, info)
			}
			return err
		},
		"append": func(r *rand.Rand, name string) error {
			some := make([]store.Message, 1+r.IntN(90))
			for i := range some {
				some[i] = store.Message{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"n": i})}
			}
			_, err := engine.Append(ctx, log, name, some)
			return err
		},
		"run": func(_ *rand.Rand, name string) error {
			_, err := newRunner(log, map[string]activity{"value": value}).Run(ctx, engine.Start{Context: name, Request: request})
			return err
		},
		"outcome": func(_ *rand.Rand, name string) error {
			_, err := engine.ReadOutcome(ctx, log, name)
			return err
		},
		"calls": func(_ *rand.Rand, name string) error {
			_, err := journal.In(log, name).CurrentRecords(ctx)
			return err
		},
		"messages": func(_ *rand.Rand, name string) error {
			for _, err := range log.Messages(ctx, store.Filter{Context: name}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"value": func(_ *rand.Rand, name string) error {
			for _, err := range log.Touching(ctx, store.Query{Context: name, Path: store.MustParsePath("†state")}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	var all sync.WaitGroup
	for use, do := range uses {
		for worker := range 2 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), uint64(len(use))))
				for ctx.Err() == nil {
					name := fmt.Sprintf("r%d", r.IntN(4))
					if err := do(r, name); store.ClassOf(err) == store.Damaged {
						t.Errorf("%s of %s: %v", use, name, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
}
