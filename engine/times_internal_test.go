package engine

import (
	"testing"
	"time"

	"obelus/engine/internal/lease"
)

// TestConstants_PromisedTimes: a holder is replaced after 30 s, and calls run ahead for a
// millisecond.
func TestConstants_PromisedTimes(t *testing.T) {
	if lease.For != 30*time.Second || lease.RenewEvery > lease.For/2 || speculateFor > time.Millisecond {
		t.Errorf("a lease is for %s and kept each %s, calls run ahead for %s", lease.For, lease.RenewEvery, speculateFor)
	}
}
