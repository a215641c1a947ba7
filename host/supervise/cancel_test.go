package supervise

import (
	"context"
	"errors"
	"testing"

	"obelus/engine/journal"
)

// TestCancel_DoneByAnotherProcess holds that a run is not called cancelled which another process
// has completed, while this one was about to go on with it.
func TestCancel_DoneByAnotherProcess(t *testing.T) {
	w := newWorker(t, nil)
	w.expect(w.start("a", "double", 1.0), journal.RunDone, "2")
	reached := make(chan struct{})
	_, err := w.begin(t.Context(), &Run{context: "a", unattended: true, resumes: true}, func(ctx context.Context, _ func(), _ func(*journal.Outcome)) (*journal.Outcome, error) {
		close(reached)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	if _, err := w.Cancel(t.Context(), "a", journal.Who{}); !errors.As(err, new(*journal.NoSuchCallError)) {
		t.Error(err)
	}
}
