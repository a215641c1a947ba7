package supervise

import "sync"

// Subscribe returns a channel that holds a token whenever there is news of a context, by this
// process or another one, until leave is called.
func (s *Supervisor) Subscribe(name string) (news <-chan struct{}, leave func()) {
	return s.subscribers.subscribe(name)
}

// subscribers notifies the followers of contexts of news.
type subscribers struct {
	mu       sync.Mutex
	channels map[string]map[chan struct{}]bool // by context
}

func newSubscribers() *subscribers {
	return &subscribers{channels: map[string]map[chan struct{}]bool{}}
}

// subscribe returns a channel that holds a token whenever there is news of a context, until leave
// is called.
func (t *subscribers) subscribe(name string) (news <-chan struct{}, leave func()) {
	own := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.channels[name] == nil {
		t.channels[name] = map[chan struct{}]bool{}
	}
	t.channels[name][own] = true
	return own, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.channels[name], own); len(t.channels[name]) == 0 {
			delete(t.channels, name)
		}
	}
}

// notify signals the subscribers of a context.
func (t *subscribers) notify(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for news := range t.channels[name] {
		signal(news)
	}
}

// signal leaves a token in a channel, unless it holds one.
func signal(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}
