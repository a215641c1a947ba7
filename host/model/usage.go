package model

import (
	"fmt"
	"strconv"
	"strings"

	"obelus/engine/plan"
)

// tokens is the usage of a request by the provider's count; nil for a count that it does not give.
type tokens struct {
	known                                           bool
	input, output, cacheRead, cacheWrite, reasoning *amount
	apart                                           bool // the input is without the cached tokens
	cost                                            *amount
}

// amount is a number as a provider gives it, also as text: of tokens, or of US dollars. It is -1
// for what is no number, or a negative one.
type amount float64

// UnmarshalJSON implements [json.Unmarshaler]. It fails with nothing.
func (a *amount) UnmarshalJSON(text []byte) error {
	*a = -1
	if n, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64); err == nil && n >= 0 {
		*a = amount(n)
	}
	return nil
}

// maxCount is above every number of tokens that a request can use.
const maxCount = 1e12

// count returns the number of tokens, and -1 for none.
func (a *amount) count() int64 {
	if a == nil || *a >= maxCount || *a != amount(int64(*a)) {
		return -1
	}
	return int64(*a)
}

// usageOf returns the usage of one request for the meter.
func (r *reply) usageOf(c *Config, sent, maxTokens int) plan.Usage {
	t := &r.usage
	u := plan.Usage{Served: r.served, Finish: r.finish, Input: t.input.count(), Output: t.output.count(),
		CacheRead: t.cacheRead.count(), CacheWrite: t.cacheWrite.count(), Reasoning: t.reasoning.count()}
	if t.apart && u.Input >= 0 {
		u.Input += max(u.CacheRead, 0) + max(u.CacheWrite, 0)
	}
	if t.cost != nil {
		cost := float64(*t.cost)
		u.Cost = &cost
	}
	u = checkUsage(u, exchanged{1, sent, r.received, r.written(), maxTokens})
	if c.Price != nil {
		cost := c.Price.cost(u)
		u.Cost = &cost
	}
	return u
}

// exchanged says how much requests can have used. All but maxTokens is the sum of all of them.
type exchanged struct {
	requests, sent, received int // the numbers of requests and of bytes
	written                  int // bytes that the model wrote
	maxTokens                int // that one answer may have
}

// maxRequests bounds how many requests one answer can have taken, and maxMS how long, in
// milliseconds: a day.
const (
	maxRequests = 1000
	maxMS       = 24 * 60 * 60 * 1000
)

// maxAdded bounds how many tokens a provider adds to a prompt by itself, as for functions.
const maxAdded = 4096

// A prompt of at least minDoubted bytes, with more than mostPerToken of them for each token that
// the provider counts, was read in part alone: texts have 3 to 5, and a schema may not count.
const (
	minDoubted   = 16 << 10
	mostPerToken = 12
)

// mostInput returns the largest number of tokens that requests can have read: no token is less than
// a byte.
func mostInput(requests, sent int) int64 { return int64(sent) + int64(requests)*maxAdded }

// checkUsage returns a usage with counts that can be. A number of tokens that is negative, or
// larger than the bytes and the bound of the answer allow, is estimated as a missing one is: a
// token for each 4 bytes. A part of them that is larger than the whole counts as 0, a cost above a
// dollar for each token as none, and a number of requests that can't be as 1.
func checkUsage(u plan.Usage, of exchanged) plan.Usage {
	if of.requests < 1 || of.requests > maxRequests {
		of.requests = 1
	}
	u.Requests = of.requests
	if u.Input <= 0 || u.Input > mostInput(of.requests, of.sent) {
		u.Input, u.Estimated = estimate(of.sent), true
	}
	if isCutShort := of.sent >= minDoubted && int64(of.sent) > u.Input*mostPerToken; isCutShort {
		u.Warning = fmt.Sprintf("the provider counts %d tokens of a prompt of %s: it may have read a part of it alone, as a server does whose window is too small", u.Input, byteSize(of.sent))
	}
	lacksOutput := u.Output <= 0 && of.written > 0
	mostOutput := max(int64(of.received), int64(of.requests)*int64(of.maxTokens))
	if lacksOutput || u.Output > mostOutput {
		u.Output, u.Estimated = estimate(of.written), true
	}
	u.Output = max(u.Output, 0)
	u.CacheRead, u.CacheWrite, u.Reasoning = partOf(u.Input, u.CacheRead), partOf(u.Input, u.CacheWrite), partOf(u.Output, u.Reasoning)
	if u.CacheRead+u.CacheWrite > u.Input {
		u.CacheRead, u.CacheWrite = 0, 0
	}
	if u.Cost != nil && (*u.Cost < 0 || *u.Cost > float64(u.Input+u.Output)) {
		u.Cost = nil
	}
	return u
}

// partOf returns a part of a number of tokens; 0 if it can't be one.
func partOf(whole, part int64) int64 {
	if part < 0 || part > whole {
		return 0
	}
	return part
}

// mostUsage returns the most that a request can use, for the budget.
func (c *Client) mostUsage(p *prompt, body []byte) plan.Usage {
	u := plan.Usage{Model: c.config.Name, Requests: 1, Input: mostInput(1, len(body)), Output: int64(p.params.MaxTokens)}
	if price := c.config.Price; price != nil {
		dearest := max(price.Input, price.CacheRead, price.CacheWrite)
		cost := (&Price{Input: dearest, Output: price.Output}).cost(u)
		u.Cost = &cost
	}
	return u
}

// estimate returns about how many tokens a text has.
func estimate(bytes int) int64 { return int64((bytes + 3) / 4) }

// cost returns the cost of tokens, in US dollars. Where the cache has no price, the price of the
// input applies.
func (p *Price) cost(u plan.Usage) float64 {
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	plain := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return (float64(plain)*p.Input + float64(u.CacheRead)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output) / 1e6
}
