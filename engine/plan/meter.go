package plan

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"obelus/store"
)

// Usage is the usage of a model by one request, or by several of them together, failed and repeated
// ones included.
type Usage struct {
	Model    string `json:"model,omitempty"`   // its name in the settings
	Served   string `json:"served,omitempty"`  // the model that the provider says answered
	Context  string `json:"context,omitempty"` // in whose run it was asked: a fork's calls share records
	Requests int    `json:"requests"`          // number of requests that were sent
	Mode     string `json:"mode,omitempty"`    // how the schema was given: schema, tools, json, text
	Finish   string `json:"finish,omitempty"`  // why the last answer ended, as the provider says

	// Request is the SHA-256 of the neutral request, in hex. Those that repair its answer leave it as
	// it is; in the record of a call it is that of the newest attempt, and empty where that sent none.
	Request string `json:"request,omitempty"`

	// Tokens. Input includes the cache's, Output the reasoning's.
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`

	Cost      *float64      `json:"cost,omitempty"`      // in US dollars; nil if it has no price
	Estimated bool          `json:"estimated,omitempty"` // the provider did not say: tokens are a guess
	Took      time.Duration `json:"-"`

	// Warning names a doubt about a request, such as that the provider cut its prompt; empty for none.
	Warning string `json:"warning,omitempty"`

	// Exchanges are the requests and answers that are to be kept with the record of the usage, in
	// their order; the log has them beside it.
	Exchanges []store.Exchange `json:"-"`

	// Group is, for a call that was answered together with others, the first of them, which alone has
	// the usage of them all. Request is the same for all of them.
	Group string  `json:"group,omitempty"`
	MS    float64 `json:"ms,omitempty"` // Took, in milliseconds
}

// Add adds the usage of another request. Texts about a single request become the other's. A
// negative number counts as 0, and a sum ends at the largest number that there is.
func (u *Usage) Add(v Usage) {
	u.Requests = addCounts(u.Requests, v.Requests, math.MaxInt)
	u.Input = addCounts(u.Input, v.Input, math.MaxInt64)
	u.Output = addCounts(u.Output, v.Output, math.MaxInt64)
	u.CacheRead = addCounts(u.CacheRead, v.CacheRead, math.MaxInt64)
	u.CacheWrite = addCounts(u.CacheWrite, v.CacheWrite, math.MaxInt64)
	u.Reasoning = addCounts(u.Reasoning, v.Reasoning, math.MaxInt64)
	u.Took += v.Took
	u.Exchanges = append(slices.Clip(u.Exchanges), v.Exchanges...)
	u.MS += v.MS
	u.Estimated = u.Estimated || v.Estimated
	if v.Cost != nil {
		cost := max(*v.Cost, 0)
		if u.Cost != nil {
			cost = min(cost+max(*u.Cost, 0), math.MaxFloat64) // JSON has no infinity
		}
		u.Cost = &cost
	}
	u.Model, u.Served, u.Mode, u.Finish = cmp.Or(v.Model, u.Model), cmp.Or(v.Served, u.Served), cmp.Or(v.Mode, u.Mode), cmp.Or(v.Finish, u.Finish)
	u.Warning = cmp.Or(v.Warning, u.Warning)
	u.Request = cmp.Or(u.Request, v.Request) // later ones repair its answer
}

// addCounts returns the sum of two counts, at most a bound. A negative one counts as 0.
func addCounts[T int | int64](a, b, most T) T {
	a, b = max(a, 0), max(b, 0)
	if a > most-b {
		return most
	}
	return a + b
}

// tokens returns the number of tokens of input and output.
func (u *Usage) tokens() int64 { return addCounts(u.Input, u.Output, math.MaxInt64) }

// And returns the usage with that of a later attempt, which asks anew; u may be nil.
func (u *Usage) And(v Usage) *Usage {
	if u == nil {
		return &v
	}
	sum := *u
	sum.Add(v)
	sum.Group, sum.Request = v.Group, v.Request
	return &sum
}

// Earlier returns the usage as one of earlier attempts alone, without its group and request; u may
// be nil.
func (u *Usage) Earlier() *Usage {
	if u == nil || u.Group == "" && u.Request == "" {
		return u
	}
	rest := *u
	rest.Group, rest.Request = "", ""
	return &rest
}

// TakeExchanges returns the exchanges and the usage without them; both are nil if u is.
func (u *Usage) TakeExchanges() ([]store.Exchange, *Usage) {
	if u == nil || u.Exchanges == nil {
		return nil, u
	}
	rest := *u
	rest.Exchanges = nil
	return u.Exchanges, &rest
}

// Within returns the usage if it was asked in the run of a context, or its record does not say.
func (u *Usage) Within(context string) *Usage {
	if u == nil || u.Context != "" && u.Context != context {
		return nil
	}
	return u
}

// Meter counts the usage of a model for one call or one plan. A nil Meter counts nothing and stops
// nothing. It is safe for concurrent use.
type Meter struct {
	ledger Ledger
	delta  func(text string)

	mu   sync.Mutex
	used Usage
}

// Ledger is the account of a run, which the meters of its calls and plans share.
type Ledger interface {
	// Reserve waits until another request may be sent, and reserves what it uses at most; a field
	// that is 0 is not known. The request counts once settle is called, which must be called once,
	// with its usage. The error is a [*Fault] with the code "budget", or that of the context.
	Reserve(ctx context.Context, most Usage) (settle func(Usage), err error)

	// Spend counts the usage of a request that had no reservation.
	Spend(Usage)
}

// NewMeter is a meter that counts in a ledger, and hands on texts as they are written to a
// function. Either may be nil.
func NewMeter(ledger Ledger, delta func(text string)) *Meter {
	return &Meter{ledger: ledger, delta: delta}
}

// Reserve waits until another request may be sent, and reserves what it uses at most, see [Ledger].
// A model calls it before each request, and returns its error as it is; settle is to be called once
// the request has been answered or has failed.
func (m *Meter) Reserve(ctx context.Context, most Usage) (settle func(Usage), err error) {
	if m == nil || m.ledger == nil {
		return m.Spend, nil
	}
	counted, err := m.ledger.Reserve(ctx, most)
	if err != nil {
		return nil, err
	}
	return func(u Usage) { m.count(u, counted) }, nil
}

// Spend counts the usage of a request that had no reservation.
func (m *Meter) Spend(u Usage) {
	if m == nil {
		return
	}
	if m.ledger == nil {
		m.count(u, func(Usage) {})
		return
	}
	m.count(u, m.ledger.Spend)
}

// count adds the usage of a request, and hands it on.
func (m *Meter) count(u Usage, settle func(Usage)) {
	u.MS = float64(u.Took.Microseconds()) / 1000
	m.mu.Lock()
	m.used.Add(u)
	m.mu.Unlock()
	settle(u)
}

// Keep has the log keep a request that was sent, with its answer, beside the record of the usage.
func (m *Meter) Keep(x store.Exchange) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Exchanges = append(m.used.Exchanges, x)
}

// Requests returns the number of requests that were sent so far.
func (m *Meter) Requests() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used.Requests
}

// Delta hands on text that the model is writing, for display alone: it is never recorded. An empty
// text marks the end of an answer: text after it belongs to another one, as where the request is
// sent again.
func (m *Meter) Delta(text string) {
	if m != nil && m.delta != nil {
		m.delta(text)
	}
}

// Used returns the usage so far, and nil without any request.
func (m *Meter) Used() *Usage {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used.Requests == 0 {
		return nil
	}
	used := m.used
	used.Exchanges = slices.Clip(used.Exchanges)
	return &used
}
