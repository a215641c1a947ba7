package web

import (
	"fmt"
	"sync"

	"obelus/store"
)

// delta is a piece of a model's text in progress, as an event has it.
type delta struct{ context, call, text string }

// writing hands what models are writing to the clients that follow their contexts. It is for
// display: a client that is slow misses pieces.
type writing struct {
	mu        sync.Mutex
	followers map[string]map[chan delta]bool // by context
}

// maxPieces is how many pieces wait for a client before it misses some.
const maxPieces = 256

// publish hands on a piece. It never waits.
func (w *writing) publish(context, call, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for pieces := range w.followers[context] {
		select {
		case pieces <- delta{context, call, text}:
		default:
		}
	}
}

// follow returns the pieces of a context from now on, until leave is called.
func (w *writing) follow(context string) (pieces <-chan delta, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followers == nil {
		w.followers = map[string]map[chan delta]bool{}
	}
	if w.followers[context] == nil {
		w.followers[context] = map[chan delta]bool{}
	}
	follower := make(chan delta, maxPieces)
	w.followers[context][follower] = true
	return follower, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.followers[context], follower)
		if len(w.followers[context]) == 0 {
			delete(w.followers, context)
		}
	}
}

// sendWritten sends a piece of a model's text in progress, without an id: a client that connects
// again does not get it again.
func (st *stream) sendWritten(d delta) error {
	data := store.EncodeJSON(map[string]any{"context": d.context, "call": d.call, "delta": d.text})
	return st.flush(fmt.Appendf(nil, "event: model\ndata: %s\n\n", data))
}

// sendPieces sends the pieces that wait.
func (st *stream) sendPieces() error {
	for {
		select {
		case d := <-st.pieces:
			if err := st.sendWritten(d); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
