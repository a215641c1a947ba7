package ops

import (
	"context"
	"errors"
	"testing"
)

// TestEnterPrompt holds that as many requests are computed at once as may be, and that another waits
// for its place, no longer than its context lasts.
func TestEnterPrompt(t *testing.T) {
	var leave []func()
	for range mostPrompts {
		l, err := enterPrompt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := enterPrompt(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("one too many: %v", err)
	}
	entered := make(chan error)
	go func() {
		l, err := enterPrompt(t.Context())
		if err == nil {
			l()
		}
		entered <- err
	}()
	leave[0]()
	if err := <-entered; err != nil {
		t.Error(err)
	}
	leave[1]()
}
