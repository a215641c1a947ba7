package term

import (
	"io"
	"os"
	"testing"
	"time"
)

type noMode struct{}

func (noMode) ApplyMode() error { return nil }

// TestTypedLines_InterruptEndsTheInput holds that none of those before takes it.
func TestTypedLines_InterruptEndsTheInput(t *testing.T) {
	lines := &TypedLines{term: New(io.Discard, io.Discard), whole: noMode{}, interrupts: make(chan os.Signal, 1)}
	for range 2000 {
		_, before := lines.Running(t.Context())
		before()
		ctx, end := lines.Running(t.Context())
		lines.interrupts <- os.Interrupt
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the interrupt has gone elsewhere")
		}
		end()
	}
}
