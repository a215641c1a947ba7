package schedule

import "time"

// period is a time in which a zone keeps one offset from UTC.
type period struct {
	start, end time.Time // zero without a beginning or an end
	offset     time.Duration
}

// periodOf returns the period of an instant in a zone.
func periodOf(at time.Time, zone *time.Location) period {
	at = at.In(zone)
	_, seconds := at.Zone()
	p := period{offset: time.Duration(seconds) * time.Second}
	p.start, p.end = at.ZoneBounds()
	if !p.end.IsZero() && !p.end.After(at) {
		// Beyond the table of a zone, package time takes each year for one of 365 days, and ends the
		// period before the last day of a leap year.
		p.end = at.Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return p
}

// clock returns the local time of an instant, with UTC in place of the zone.
func (p period) clock(at time.Time) time.Time { return at.UTC().Add(p.offset) }

// instant returns the instant of a local time, with UTC in place of the zone.
func (p period) instant(clock time.Time) time.Time { return clock.Add(-p.offset) }

// Next returns the first time after another at which the schedule is due, in UTC. It is zero if
// there is none within five years.
func (s *Schedule) Next(after time.Time) time.Time {
	now := periodOf(after, s.zone)
	for from := now.clock(after); ; {
		clock := s.fields.Next(s.afterRepeated(now, from))
		if clock.IsZero() {
			return time.Time{}
		}
		if due := now.instant(clock); now.end.IsZero() || due.Before(now.end) {
			return due
		}
		next := periodOf(now.end, s.zone)
		first := next.clock(now.end) // the first local time of the next period
		if !s.everyHour && clock.Before(first) {
			return now.end.UTC() // a local time that is left out
		}
		now, from = next, first.Add(-1)
	}
}

// afterRepeated returns a local time, or the last one of the period before if the local times up to
// there come for the second time and do not count again.
func (s *Schedule) afterRepeated(now period, clock time.Time) time.Time {
	if s.everyHour || now.start.IsZero() {
		return clock
	}
	last := periodOf(now.start.Add(-1), s.zone).clock(now.start).Add(-1)
	if clock.Before(last) {
		return last
	}
	return clock
}
