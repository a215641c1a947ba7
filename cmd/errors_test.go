package cmd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/sqlite"
)

func TestExitStatus_OfErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want exit.Status
	}{
		{nil, exit.Done},
		{exit.Waiting, exit.Waiting},
		{context.Canceled, exit.Interrupted},
		{exit.Usage("which?"), exit.Refused},
		{&plan.PlanError{}, exit.Refused},
		{store.ErrNoContext, exit.Refused},
		{sqlite.ErrDamaged, exit.Refused},
		{&store.NeededError{}, exit.Refused},
		{sqlite.ErrLocked, exit.Busy},
		{&store.HeldError{}, exit.Busy},
		{&engine.BusyError{}, exit.Busy},
		{&store.ConflictError{}, exit.Failed},
		{&store.ChangedError{}, exit.Failed}, // a prune that gave up
		{&history.MissingError{}, exit.Failed},
		{errors.New("the disk is full"), exit.Failed},
	} {
		if got := exitStatus(test.err); got != test.want {
			t.Errorf("%T: %d, want %d", test.err, got, test.want)
		}
		if test.err == nil {
			continue
		}
		if got := exitStatus(fmt.Errorf("in a command: %w", test.err)); got != test.want {
			t.Errorf("a wrapped %T: %d, want %d", test.err, got, test.want)
		}
	}
}
