package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"obelus/host"
)

var (
	forkedRuns = flag.Int("forked-runs", 6, "how many random runs TestFork_DecidesNothing forks at each of their messages")
	firstRun   = flag.Uint64("first-forked-run", 1, "the seed of the first of them")
)

// bank counts the payments of calls, by the call's key.
type bank struct {
	mu   sync.Mutex
	paid map[string][]float64
}

// Pay notes a payment.
func (b *bank) Pay(key string, amount float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid[key] = append(b.paid[key], amount)
}

// of returns the payments of a context and of its delegates.
func (b *bank) of(context string) map[string][]float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(b.paid)
	maps.DeleteFunc(all, func(key string, _ []float64) bool {
		in, _, _ := strings.Cut(key, "/")
		return in != context && !strings.HasPrefix(in, context+".")
	})
	return all
}

// awaited is a call that is held, or a plan, which is no call.
type awaited struct {
	Context, Call, Hash string
	Arguments           map[string]any
}

// inbox returns what a context and its delegates hold.
func (s *site) inbox(context string) (all []awaited) {
	s.t.Helper()
	status, text := s.ask("GET", "/v1/contexts/"+context+"/approvals", "", bearer(host.MayRead)...)
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != 200 {
		s.t.Fatal(status, text, err)
	}
	return all
}

// randomPayments returns a plan whose calls pay, read each other, and are delegated.
func randomPayments(r *rand.Rand, mode string) string {
	var calls []map[string]any
	for i := range 2 + r.IntN(3) {
		amount := any(float64(i + 1))
		if i > 0 && r.IntN(2) == 0 {
			amount = fmt.Sprintf("†state.c%d", r.IntN(i))
		}
		call := map[string]any{"_tool": []string{"pay", "pay", "idle"}[r.IntN(3)], "amount": amount, "_outputPath": fmt.Sprintf("†state.c%d", i)}
		if r.IntN(4) == 0 {
			call["_delegate"] = "payer"
		}
		calls = append(calls, call)
	}
	text, _ := json.Marshal(map[string]any{"calls": calls, "mode": mode, "output": "†state"})
	return string(text)
}

// decideAll has a person decide about all that a run holds, again and again, until it holds nothing,
// and returns the keys of the calls that were approved.
func (s *site) decideAll(r *rand.Rand, context string) (approved map[string]bool) {
	s.t.Helper()
	approved = map[string]bool{}
	for range 20 {
		all := s.inbox(context)
		if len(all) == 0 {
			return approved
		}
		for _, h := range all {
			path, body := "/v1/contexts/"+h.Context+"/approve", `{"hash":"`+h.Hash+`"}`
			if h.Call != "" {
				body = `{}`
			}
			if h.Call != "" {
				path = "/v1/contexts/" + h.Context + "/calls/" + h.Call + "/approve"
				switch r.IntN(4) {
				case 0:
					body = `{"set":{"amount":1000}}`
				case 1:
					path, body = strings.TrimSuffix(path, "approve")+"reject", `{"reason":"no"}`
				}
			}
			if status, text := s.ask("POST", path, body, bearer(host.MayDecide)...); status != 200 {
				s.t.Fatal(path, status, text)
			}
			approved[h.Context+"/"+h.Call] = strings.HasSuffix(path, "/approve")
		}
		s.goOn(context)
	}
	s.t.Fatalf("%s holds calls for ever", context)
	return nil
}

// goOn has a run go on until it ends or halts, by a token that may run, or waits until it has done so
// by itself.
func (s *site) goOn(context string) {
	s.t.Helper()
	s.await("the run of "+context+" halts", func() bool {
		status, text := s.ask("POST", "/v1/contexts/"+context+"/resume", `{"wait":true}`, bearer(host.MayRun)...)
		if status != 200 && status != 409 && status != 422 {
			s.t.Fatal(status, text)
		}
		return status != 409
	})
}

// TestFork_DecidesNothing holds that a token that may run gets nothing paid by forks of a run, at
// any of its messages, that a person has decided about: neither by its approvals, corrections and
// releases, nor by how it was started. Of a lazy plan every call counts as a payment.
func TestFork_DecidesNothing(t *testing.T) {
	for seed := *firstRun; seed < *firstRun+uint64(*forkedRuns); seed++ {
		r, b := rand.New(rand.NewPCG(seed, 0)), &bank{paid: map[string][]float64{}}
		mode := []string{"eager", "lazy"}[r.IntN(2)]
		files := withTokens(map[string]string{
			"activities/pay.lua": `Activity.register("pay", { idempotent = true }, function(call, _, _, key) bank:Pay(key, call.amount); return call.amount end)
				Activity.register("idle", function(call, _, _, key) if lazy then bank:Pay(key, call.amount) end; return call.amount end)
				Delegate.register("payer", { calls = { { _tool = "pay", amount = "†input.amount", _outputPath = "†a" } }, output = "†a" })`,
			"plans/p.json": randomPayments(r, mode),
		})
		files["obelus.lua"] = strings.Replace(files["obelus.lua"], "return {", `return { approve = { "pay" },`, 1)
		s := serve(t, files, map[string]any{"bank": b, "lazy": mode == "lazy"}, withSecrets)
		run, starter, how := bearer(host.MayRun), bearer(host.MayRun), ""
		if r.IntN(3) == 0 { // a person starts the run, and releases it thereby
			starter, how = bearer(host.MayDecide), []string{`,"approve":"never"`, `,"mode":"eager"`, `,"mode":"eager","approve":"never"`}[r.IntN(3)]
		}
		if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/p.json","context":"c","wait":true`+how+`}`, starter...); status != 200 {
			t.Fatal(status, text)
		}
		s.decideAll(r, "c")
		var info struct{ Messages int }
		_, text := s.ask("GET", "/v1/contexts/c", "", run...)
		if err := json.Unmarshal([]byte(text), &info); err != nil || info.Messages == 0 {
			t.Fatal(text, err)
		}
		var forks []string
		for from, at := "c", 1; at <= info.Messages; at++ {
			name := fmt.Sprintf("f%d", at)
			if status, text := s.ask("POST", "/v1/contexts/"+from+"/fork", fmt.Sprintf(`{"context":%q,"at":%d}`, name, at), run...); status == 422 {
				continue // within a step
			} else if status != 200 {
				t.Fatal(status, text)
			}
			s.goOn(name)
			s.ask("POST", "/v1/contexts/"+name+"/fork", fmt.Sprintf(`{"context":"g%d"}`, at), run...)
			s.goOn(fmt.Sprintf("g%d", at))
			forks = append(forks, name, fmt.Sprintf("g%d", at))
		}
		for _, name := range forks {
			if paid := b.of(name); len(paid) > 0 {
				t.Fatalf("seed %d: in %s, which nobody decided about: %v\n%s %s", seed, name, paid, how, files["plans/p.json"])
			}
		}
		for _, name := range forks[max(0, len(forks)-4):] {
			approved := s.decideAll(r, name)
			for key, amounts := range b.of(name) {
				if mode == "eager" && !approved[key] || len(amounts) != 1 {
					t.Errorf("seed %d: call %s paid %v; approved were %v\n%s %s", seed, key, amounts, approved, how, files["plans/p.json"])
				}
			}
		}
	}
}
