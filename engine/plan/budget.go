package plan

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// Budget bounds what a run, with its delegates, may have models do.
type Budget struct {
	Requests int     // sent to models, repeated ones included; 0 for DefaultRequests, negative for no bound
	Tokens   int64   // of input and output; 0 for no bound
	Cost     float64 // in US dollars; 0 for no bound
}

// DefaultRequests is how many requests to models a run may send.
const DefaultRequests = 200

// CodeBudget is the code of the fault of a call that needs a model when the budget is spent.
const CodeBudget = "budget"

// Account is the [Ledger] of a run and its delegates. It is safe for concurrent use.
type Account struct {
	budget Budget
	notify func(Usage)

	mu      sync.Mutex
	spent   Usage
	under   map[*reservation]bool  // requests that are under way
	settled chan struct{}          // closed when the next of them is settled
	dearest map[string]reservation // by model: the tokens of its largest request, and the cost of its dearest token
}

// reservation is what a request may use at most.
type reservation struct {
	tokens int64
	cost   float64
}

// NewAccount is an account with a usage so far. notify, which may be nil, is called with the usage
// of each request.
func NewAccount(budget Budget, spent Usage, notify func(Usage)) *Account {
	if budget.Requests == 0 {
		budget.Requests = DefaultRequests
	}
	return &Account{budget: budget, spent: spent, notify: notify, under: map[*reservation]bool{}, settled: make(chan struct{}), dearest: map[string]reservation{}}
}

// Reserve implements [Ledger]. A request waits while others are under way that may use what is left
// with it. So a budget is overspent by one request at most, if none uses more than it reserved.
func (a *Account) Reserve(ctx context.Context, most Usage) (settle func(Usage), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if err := a.checkSpent(); err != nil {
			return nil, err
		}
		r := a.reservationFor(most)
		if len(a.under) == 0 || a.hasRoom(r) {
			a.under[&r] = true
			return func(u Usage) { a.settle(&r, u) }, nil
		}
		settled := a.settled
		a.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			err = ctx.Err()
		}
		a.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// checkSpent returns an error if the budget is spent. Each request that is under way counts as one.
func (a *Account) checkSpent() error {
	b, s := a.budget, a.spent
	requests := addCounts(s.Requests, len(a.under), math.MaxInt)
	switch tokens := s.tokens(); {
	case b.Requests > 0 && requests >= b.Requests:
		return Faultf(CodeBudget, "the run's budget for models is spent: it has sent %d requests, and may send %d (setting budget.requests, or --budget)", requests, b.Requests)
	case b.Tokens > 0 && tokens >= b.Tokens:
		return Faultf(CodeBudget, "the run's budget for models is spent: it has used %d tokens, and may use %d (setting budget.tokens, or --budget)", tokens, b.Tokens)
	case b.Cost > 0 && s.Cost != nil && *s.Cost >= b.Cost:
		return Faultf(CodeBudget, "the run's budget for models is spent: it has cost %s USD, and may cost %s (setting budget.cost, or --budget)", dollars(*s.Cost), dollars(b.Cost))
	}
	return nil
}

// reservationFor returns what a request may use at most. Tokens that are not known are those of the
// largest request to the model so far, and a cost that is not known that of the dearest token; as
// long as there was none, all of the budget.
func (a *Account) reservationFor(most Usage) reservation {
	r := reservation{most.tokens(), math.Inf(1)}
	dearest, known := a.dearest[most.Model]
	if r.tokens == 0 {
		r.tokens = math.MaxInt64
		if known {
			r.tokens = dearest.tokens
		}
	}
	switch {
	case most.Cost != nil:
		r.cost = *most.Cost
	case dearest.cost > 0:
		r.cost = dearest.cost * float64(r.tokens)
	}
	return r
}

// hasRoom reports whether the budget has room for a request beside those that are under way.
func (a *Account) hasRoom(r reservation) bool {
	tokens, cost := addCounts(a.spent.tokens(), r.tokens, math.MaxInt64), r.cost
	if a.spent.Cost != nil {
		cost += *a.spent.Cost
	}
	for other := range a.under {
		tokens, cost = addCounts(tokens, other.tokens, math.MaxInt64), cost+other.cost
	}
	b := a.budget
	return (b.Tokens <= 0 || tokens <= b.Tokens) && (b.Cost <= 0 || cost <= b.Cost)
}

// settle counts the usage of a request in place of its reservation.
func (a *Account) settle(r *reservation, used Usage) {
	var u Usage
	u.Add(used)                            // without negative numbers
	if a.notify != nil && u.Requests > 0 { // it was sent
		a.notify(u)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.under, r)
	if tokens := u.tokens(); tokens > 0 {
		dearest := a.dearest[u.Model]
		dearest.tokens = max(dearest.tokens, tokens)
		if u.Cost != nil {
			dearest.cost = max(dearest.cost, *u.Cost/float64(tokens))
		} else if dearest.cost > 0 { // the provider has not said it, this time
			u.Cost = new(dearest.cost * float64(tokens))
		}
		a.dearest[u.Model] = dearest
	}
	a.spent.Add(u)
	close(a.settled)
	a.settled = make(chan struct{})
}

// Spend implements [Ledger].
func (a *Account) Spend(u Usage) { a.settle(nil, u) }

// dollars writes an amount without needless zeros.
func dollars(amount float64) string { return fmt.Sprintf("%.6g", amount) }

// Spent returns what has been spent so far.
func (a *Account) Spent() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}
