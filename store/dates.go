package store

import "time"

// Dates returns the dates that a log gives to what a batch adds to a context, appended to dates:
// first those of the messages, then those of the journal entries. An item keeps its own date, or
// gets now; a date before newest (the newest of the context) or before that of the item ahead is
// raised to it, since a clock may have been set back, or another machine's may be ahead.
func (b *Batch) Dates(dates []time.Time, now, newest time.Time) []time.Time {
	later := func(date time.Time) time.Time {
		if date = dateOr(date, now); date.After(newest) {
			newest = date
		}
		return newest
	}
	first := len(dates)
	for range len(b.Messages) + len(b.Journal) {
		dates = append(dates, time.Time{})
	}
	messages, entries := dates[first:][:len(b.Messages)], dates[first:][len(b.Messages):]
	next := 0
	for i := range b.Journal {
		for ; next < len(messages)-b.Journal[i].Ahead; next++ {
			messages[next] = later(b.Messages[next].Date)
		}
		entries[i] = later(b.Journal[i].Date)
	}
	for ; next < len(messages); next++ {
		messages[next] = later(b.Messages[next].Date)
	}
	return dates
}

// Began returns the time from which a batch dates: now, or the date of its earliest journal entry.
// A context that it makes is as old.
func (b *Batch) Began(now time.Time) time.Time {
	for i := range b.Journal {
		if date := dateOr(b.Journal[i].Date, now); date.Before(now) {
			now = date
		}
	}
	return now
}

func dateOr(date, otherwise time.Time) time.Time {
	if date.IsZero() {
		return otherwise
	}
	return date.UTC().Truncate(time.Millisecond)
}
