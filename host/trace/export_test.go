package trace

import "time"

// SetPause sets the pause before a second try.
func (s *Sender) SetPause(d time.Duration) { s.pause = d }

// CloseIdle closes the connections of a sender.
func (s *Sender) CloseIdle() { s.client.CloseIdleConnections() }
