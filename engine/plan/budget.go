package plan

import (
	"fmt"
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

	mu       sync.Mutex
	spent    Usage
	reserved int // requests that were allowed and have not been counted yet
}

// NewAccount is an account with a usage so far. notify, which may be nil, is called with the usage
// of each request.
func NewAccount(budget Budget, spent Usage, notify func(Usage)) *Account {
	if budget.Requests == 0 {
		budget.Requests = DefaultRequests
	}
	return &Account{budget: budget, spent: spent, notify: notify}
}

// Allow implements [Ledger]. Requests that are under way count as one each: their tokens and their
// cost are known only later, so that requests at the same time may overspend a budget.
func (a *Account) Allow() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, s := a.budget, a.spent
	switch tokens := s.Input + s.Output; {
	case b.Requests > 0 && s.Requests+a.reserved >= b.Requests:
		return Faultf(CodeBudget, "the run's budget for models is spent: it has sent %d requests, and may send %d (setting budget.requests, or --budget)", s.Requests+a.reserved, b.Requests)
	case b.Tokens > 0 && tokens >= b.Tokens:
		return Faultf(CodeBudget, "the run's budget for models is spent: it has used %d tokens, and may use %d (setting budget.tokens, or --budget)", tokens, b.Tokens)
	case b.Cost > 0 && s.Cost != nil && *s.Cost >= b.Cost:
		return Faultf(CodeBudget, "the run's budget for models is spent: it has cost %s USD, and may cost %s (setting budget.cost, or --budget)", dollars(*s.Cost), dollars(b.Cost))
	}
	a.reserved++
	return nil
}

// dollars writes an amount without needless zeros.
func dollars(amount float64) string { return fmt.Sprintf("%.6g", amount) }

// Spend implements [Ledger].
func (a *Account) Spend(u Usage) {
	if a.notify != nil {
		a.notify(u)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserved = max(a.reserved-1, 0)
	a.spent.Add(u)
}

// Spent returns what has been spent so far.
func (a *Account) Spent() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}
