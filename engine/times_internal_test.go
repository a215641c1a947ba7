package engine

import (
	"testing"
	"time"
)

// TestConstants_PromisedTimes: a holder is replaced after 30 s, and calls run ahead for a
// millisecond.
func TestConstants_PromisedTimes(t *testing.T) {
	if leaseFor != 30*time.Second || leaseRenew > leaseFor/2 || speculateFor > time.Millisecond {
		t.Errorf("a lease is for %s and kept each %s, calls run ahead for %s", leaseFor, leaseRenew, speculateFor)
	}
}
