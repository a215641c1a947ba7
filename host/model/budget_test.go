package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

var budgets = flag.Int("budgets", 200, "how many random runs are held to a budget while servers say any usage")

// oddCounts are numbers of tokens that no request has used.
var oddCounts = []string{
	"-100", "-1", "-9223372036854775808", "9223372036854775807", "18446744073709551616", "1e300", "-1e300", "1e12", "1000001.0", "0.5", "0", "null", `"many"`, `"-7"`, `"NaN"`, `"Infinity"`, `"-Inf"`, "[]", "{}", "true", "NaN",
}

// liar is a server whose answers take a random time and say a random usage.
type liar struct {
	mu        sync.Mutex
	random    *rand.Rand
	wire      string
	maxTokens int
	rate      float64 // of a token in US dollars, as it says; 0 if it says none
	sent      int
}

// RoundTrip implements [http.RoundTripper].
func (l *liar) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.sent++
	count := func(most int) (string, int) {
		if l.random.IntN(3) == 0 {
			return oddCounts[l.random.IntN(len(oddCounts))], 0
		}
		n := 1 + l.random.IntN(most)
		return fmt.Sprint(n), n
	}
	input, in := count(300)
	output, out := count(l.maxTokens)
	cost := strings.Replace(oddCounts[l.random.IntN(len(oddCounts))], "0.5", "0.5e9", 1)
	if in > 0 && out > 0 && l.rate > 0 {
		cost = fmt.Sprint(l.rate * float64(in+out))
	}
	took := time.Duration(l.random.IntN(5000)) * time.Millisecond
	status := http.StatusOK
	if l.random.IntN(10) == 0 {
		status = http.StatusServiceUnavailable
	}
	l.mu.Unlock()
	time.Sleep(took)
	body := whole(`{"content":"1"}`, `"usage":{"prompt_tokens":`+input+`,"completion_tokens":`+output+`,"cost":`+cost+`}`)
	if l.wire == wireAnthropic {
		body = messages(`"1"`, `"stop_reason":"end_turn","usage":{"input_tokens":`+input+`,"output_tokens":`+output+`,"cache_read_input_tokens":`+input+`}`)
	}
	body = strings.ReplaceAll(body, "NaN", "-0.0") // without which it is no JSON
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestBudget_WhateverServersSay holds that a run overspends its budget by one request at most, that
// it spends all of it before a call is refused, and that what it has used makes sense: of requests
// side by side to servers that say any usage.
func TestBudget_WhateverServersSay(t *testing.T) {
	for seed := range *budgets {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 0))
			l := &liar{random: random, wire: []string{wireOpenAI, wireAnthropic}[seed%2], maxTokens: 500 + random.IntN(2000)}
			c := Config{Name: "wise", Wire: l.wire, Model: "m", URL: "http://localhost/v1", Mode: modeText, Concurrency: random.IntN(8)}
			c.MaxTokens = l.maxTokens
			var b plan.Budget
			b.Requests = -1
			switch random.IntN(4) {
			case 0:
				b.Tokens = 1 + random.Int64N(30000)
			case 1:
				b.Cost, c.Price = 0.001+random.Float64(), &Price{Input: 10 * random.Float64(), Output: 50 * random.Float64()}
			case 2:
				l.wire, c.Wire = wireOpenAI, wireOpenAI
				b.Cost, l.rate = 0.001+random.Float64(), 1e-5+random.Float64()/1e3
			default:
				b.Requests = 1 + random.IntN(30)
			}
			client, err := NewClient(c, Options{Transport: l})
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var largest plan.Usage
			account := plan.NewAccount(b, plan.Usage{}, func(u plan.Usage) {
				mu.Lock()
				defer mu.Unlock()
				if u.Input < 0 || u.Output < 0 || u.Input > 10000 || u.Output > 10000 || u.CacheRead > u.Input || u.Cost != nil && !(*u.Cost >= 0) {
					t.Errorf("seed %d: %+v", seed, u)
				}
				if largest.Cost == nil || u.Cost != nil && *u.Cost > *largest.Cost {
					largest.Cost = u.Cost
				}
				largest.Input = max(largest.Input, u.Input+u.Output)
			})
			var wait sync.WaitGroup
			var refused error
			calls := 1 + random.IntN(60)
			for range calls {
				wait.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := client.Ask(ctx, question(), plan.NewMeter(account, nil))
					if fault, ok := errors.AsType[*plan.Fault](err); ok && fault.Code == plan.CodeBudget {
						mu.Lock()
						refused = err
						mu.Unlock()
					} else if _, failed := errors.AsType[*plan.Failure](err); err != nil && !failed {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
			wait.Wait()
			spent, cost, dearest := account.Spent(), 0.0, l.rate*float64(largest.Input) // also where it is not said
			if spent.Cost != nil {
				cost, dearest = *spent.Cost, max(dearest, *largest.Cost)
			}
			tokens := spent.Input + spent.Output
			const rounding = 1e-9
			if b.Tokens > 0 && tokens-largest.Input >= b.Tokens || b.Cost > 0 && cost-dearest > b.Cost+rounding || b.Requests > 0 && l.sent > b.Requests {
				t.Errorf("seed %d: budget %+v: %d requests, %d tokens, %v USD; the largest request %d, %v", seed, b, l.sent, tokens, cost, largest.Input, dearest)
			}
			if isSpent := b.Tokens > 0 && tokens >= b.Tokens || b.Cost > 0 && cost >= b.Cost || l.sent == b.Requests; refused != nil && !isSpent || refused == nil && l.sent < calls {
				t.Errorf("seed %d: budget %+v: %d requests of %d calls, %d tokens, %v USD: %v", seed, b, l.sent, calls, tokens, cost, refused)
			}
		})
	}
}

// TestBudget_OfCassettes holds that a cassette's usage counts as a server's does.
func TestBudget_OfCassettes(t *testing.T) {
	request := question()
	for _, count := range []int64{-100, math.MinInt64, math.MaxInt64, 1 << 40, 0} {
		cost := float64(count)
		taped := &Cassette{}
		for range 3 {
			taped.entries = append(taped.entries, &tape{Entry: Entry{Request: request.JSON(), Hash: request.Hash(), Answer: Recorded{Value: []byte(`{"word":"a"}`)},
				Usage: plan.Usage{Requests: int(count), Input: count, Output: count, CacheRead: count, CacheWrite: count, Reasoning: count, Cost: &cost, MS: cost}}})
		}
		account := plan.NewAccount(plan.Budget{Tokens: 140}, plan.Usage{}, nil)
		asked := 0
		for range 3 {
			a, err := taped.Asker(nil, ReplayOnly).Ask(t.Context(), request, plan.NewMeter(account, nil))
			if err == nil {
				asked++
			} else if fault, ok := errors.AsType[*plan.Fault](err); !ok || fault.Code != plan.CodeBudget {
				t.Error(err)
			}
			if a != nil && (a.Usage.Took < 0 || a.Usage.Took > 24*time.Hour) {
				t.Errorf("it took %v", a.Usage.Took)
			}
		}
		if u := account.Spent(); asked != 2 || u.Requests != 2 || u.Input < 100 || u.Input > 400 || u.Output < 1 || u.Output > 20 || u.CacheRead+u.CacheWrite+u.Reasoning != 0 || u.Cost != nil && *u.Cost != 0 || !u.Estimated {
			t.Errorf("%d: %d answers, %+v", count, asked, u)
		}
	}
}

// TestBudget_Saturates holds that sums of usages neither wrap nor become what no JSON has.
func TestBudget_Saturates(t *testing.T) {
	dear, free := math.MaxFloat64, -1.0
	most := plan.Usage{Requests: math.MaxInt, Input: math.MaxInt64, Output: math.MaxInt64, CacheRead: math.MaxInt64, Cost: &dear}
	sum := most
	sum.Add(most)
	sum.Add(plan.Usage{Requests: -1, Input: -1, Output: math.MinInt64, Cost: &free})
	if sum.Requests != math.MaxInt || sum.Input != math.MaxInt64 || sum.Output != math.MaxInt64 || *sum.Cost != math.MaxFloat64 {
		t.Errorf("%+v", sum)
	}
	if text := store.EncodeJSON(map[string]any{"usage": sum}); !strings.Contains(string(text), "9223372036854775807") {
		t.Errorf("%s", text)
	}
	below := plan.Usage{Input: -100, Output: -1} // as logs have it that were written before
	below.Add(plan.Usage{Input: 5, Output: 6})
	account := plan.NewAccount(plan.Budget{Tokens: 10}, below, nil)
	if _, err := account.Reserve(t.Context(), plan.Usage{}); err == nil || below.Input != 5 || below.Output != 6 {
		t.Errorf("%+v, %v", below, err)
	}
	if _, err := plan.NewAccount(plan.Budget{Tokens: 10}, most, nil).Reserve(t.Context(), plan.Usage{}); err == nil {
		t.Error("no budget counts any more")
	}
}
