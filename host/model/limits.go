package model

import (
	"context"
	"sync"
	"time"
)

// Limits keep the requests of a process within the limits in the settings of each model. The
// clients of a model share them, also a client that was made after the settings changed. The zero
// Limits are ready. They are safe for concurrent use.
type Limits struct {
	mu     sync.Mutex
	models map[limitKey]*limiter
}

// limitKey is a model with its limits: changed limits begin anew.
type limitKey struct {
	name, url, model      string
	concurrency, rpm, tpm int
}

// of returns what limits the requests to a model.
func (l *Limits) of(key limitKey) *limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.models == nil {
		l.models = map[limitKey]*limiter{}
	}
	if l.models[key] == nil {
		l.models[key] = newLimiter(key)
	}
	return l.models[key]
}

// window is how far back requests and tokens count.
const window = time.Minute

// limiter bounds the requests to one model: how many at once, and how many, with how many tokens,
// within any minute.
type limiter struct {
	slots chan struct{} // nil for no limit
	// turn is held by the first request that waits for the window, so that requests are sent in the
	// order in which they came.
	turn     chan struct{}
	rpm, tpm int

	mu     sync.Mutex
	recent []*sent // of the last minute, the oldest first
}

// sent is a request within the window.
type sent struct {
	at     time.Time
	tokens int64 // a guess until the answer is there
}

func newLimiter(key limitKey) *limiter {
	l := &limiter{turn: make(chan struct{}, 1), rpm: key.rpm, tpm: key.tpm}
	if key.concurrency > 0 {
		l.slots = make(chan struct{}, key.concurrency)
	}
	return l
}

// acquire waits until a request of about so many tokens may be sent. The function that it returns
// is to be called once, with the tokens that the request has used, or a negative number if it was
// not sent.
func (l *limiter) acquire(ctx context.Context, guess int64) (release func(used int64), err error) {
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	leave := func() {
		if l.slots != nil {
			<-l.slots
		}
	}
	if l.rpm == 0 && l.tpm == 0 {
		return func(int64) { leave() }, nil
	}
	s, err := l.enter(ctx, guess)
	if err != nil {
		leave()
		return nil, err
	}
	return func(used int64) {
		l.correct(s, used)
		leave()
	}, nil
}

// enter waits until the window has room for a request, and counts it there.
func (l *limiter) enter(ctx context.Context, guess int64) (*sent, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.turn }()
	for {
		s, wait := l.try(guess)
		if s != nil {
			return s, nil
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// try counts a request if the window has room for it, and else says when it may have. A request
// that is larger than the window is let into an empty one.
func (l *limiter) try(guess int64) (*sent, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for len(l.recent) > 0 && now.Sub(l.recent[0].at) >= window {
		l.recent = l.recent[1:]
	}
	tokens := guess
	for _, s := range l.recent {
		tokens += s.tokens
	}
	if len(l.recent) > 0 && (l.rpm > 0 && len(l.recent) >= l.rpm || l.tpm > 0 && tokens > int64(l.tpm)) {
		return nil, window - now.Sub(l.recent[0].at)
	}
	s := &sent{now, guess}
	l.recent = append(l.recent, s)
	return s, 0
}

// correct replaces the guessed tokens of a request by the tokens used. A request that was not sent
// is forgotten: used is below 0.
func (l *limiter) correct(s *sent, used int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if used >= 0 {
		s.tokens = used
		return
	}
	for i, other := range l.recent {
		if other == s {
			l.recent = append(l.recent[:i:i], l.recent[i+1:]...)
			return
		}
	}
}

// sleep waits, unless ctx is done first: then it returns its error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
