package supervise

import (
	"time"

	"obelus/host/keep"
)

// When contexts whose time is over are removed: a while after the begin, and then now and again.
const (
	firstRemoval    = time.Minute
	removalInterval = time.Hour
)

// removeOld removes contexts whose time is over, as the project's setting keep says, until the
// supervisor is shut down.
func (s *Supervisor) removeOld() {
	timer := time.NewTimer(firstRemoval)
	defer timer.Stop()
	for {
		select {
		case <-s.running.Done():
			return
		case <-timer.C:
		}
		timer.Reset(removalInterval)
		times := s.config.Host.Generation().Settings().Keep
		if len(times) == 0 {
			continue
		}
		switch n, err := keep.Remove(s.running, s.log, times, s.config.Now()); {
		case err != nil && s.running.Err() == nil:
			s.config.Logger.Error("old contexts can't be removed", "error", err)
		case n > 0:
			s.config.Logger.Info("old contexts were removed", "contexts", n)
		}
	}
}
