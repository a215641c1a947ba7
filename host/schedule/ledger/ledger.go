// Package ledger keeps the state of schedules in a log. Runs are contexts that are named by their
// due times. A context beside them, schedule.NAME, records since when a schedule is known, and its
// runs that were skipped. Each record is a message, so that only one of several servers with the
// same decision can append it, and an entry of the journal, by which it is found.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/host/once"
	"obelus/host/schedule"
	"obelus/store"
)

// The events in the journal of the context of a schedule.
const (
	eventSeen = "schedule" // the schedule is new, or has other times; data is a seenEvent
	eventSkip = "skip"     // runs are skipped; data is a skipEvent
)

// kindSkip is the kind of the messages about skipped runs; those about new times are of kindSeen.
const (
	kindSeen = "schedule"
	kindSkip = "skipped"
)

// seenEvent is data of a message and of an entry.
type seenEvent struct {
	Cron  string `json:"cron"`
	Zone  string `json:"zone"`
	Since string `json:"since"`
}

// skipEvent is data of a message and of an entry.
type skipEvent struct {
	From   string          `json:"from"`
	Until  string          `json:"until"`
	Count  int             `json:"count"`
	Reason schedule.Reason `json:"reason"`
	Error  string          `json:"error,omitempty"`
}

// Skip is a row of due times that were skipped.
type Skip struct {
	schedule.Skipped
	Error string // why the run was refused
}

// Run is a run of a schedule.
type Run struct {
	Context    string
	Due        time.Time
	Status     journal.RunStatus
	Unfinished bool      // it has neither ended nor been cancelled
	Ended      time.Time // when it ended; zero if it is unfinished
}

// State is the state of a schedule as a log has it.
type State struct {
	Cron, Zone string    // with which it was seen last; empty if it never was
	Since      time.Time // when it was seen so first
	Skips      []Skip    // the newest first
	Run        *Run      // the newest; nil before the first

	head int64 // seq of the schedule's own context
}

// maxSkips bounds the skips that are read.
const maxSkips = 20

// Status returns the part of the state that decisions depend on.
func (s *State) Status() schedule.Status {
	st := schedule.Status{Known: s.Since}
	if len(s.Skips) > 0 && s.Skips[0].Until.After(st.Known) {
		st.Known = s.Skips[0].Until
	}
	if s.Run != nil {
		if s.Run.Due.After(st.Known) {
			st.Known = s.Run.Due
		}
		st.Unfinished, st.Ended = s.Run.Unfinished, s.Run.Ended
	}
	return st
}

// Read reads the state of the schedule of a name.
func Read(ctx context.Context, log store.Reader, name string, now time.Time) (s State, err error) {
	at := schedule.RecordName(name)
	if s.head, err = log.Head(ctx, at); err != nil && !errors.Is(err, store.ErrNoContext) {
		return s, err
	}
	if err == nil {
		if err := s.readRecord(ctx, log, at); err != nil {
			return s, err
		}
	}
	newest, err := newestRun(ctx, log, name, now)
	if err != nil || newest == "" {
		return s, err
	}
	s.Run, err = readRun(ctx, log, name, newest)
	return s, err
}

// readRecord reads the schedule's own context.
func (s *State) readRecord(ctx context.Context, log store.Reader, at string) error {
	entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: at, Event: eventSeen})
	if err != nil {
		return err
	}
	if ok {
		var seen seenEvent
		if err := decode(entry, &seen, func() (err error) { s.Since, err = parseTime(seen.Since); return err }); err != nil {
			return err
		}
		s.Cron, s.Zone = seen.Cron, seen.Zone
	}
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: at, Event: eventSkip, Newest: true}) {
		if err != nil || len(s.Skips) == maxSkips {
			return err
		}
		var e skipEvent
		var k Skip
		err := decode(entry, &e, func() (err error) {
			if k.From, err = parseTime(e.From); err == nil {
				k.Until, err = parseTime(e.Until)
			}
			return err
		})
		if err != nil {
			return err
		}
		k.Count, k.Reason, k.Error = e.Count, e.Reason, e.Error
		s.Skips = append(s.Skips, k)
	}
	return nil
}

// decode reads the data of an entry, and then the times in it.
func decode(entry store.Entry, into any, times func() error) error {
	err := json.Unmarshal([]byte(entry.Data), into)
	if err == nil {
		err = times()
	}
	if err != nil {
		return fmt.Errorf("the entry %d of context %s can't be read: %w", entry.N, entry.Context, err)
	}
	return nil
}

// contexts is a log that lists contexts by the beginning of their names.
type contexts interface {
	store.Reader
	Contexts(ctx context.Context, f store.ContextFilter) iter.Seq2[store.ContextInfo, error]
}

// windows are the layouts of the beginnings of due times, from an hour to all.
var windows = []string{"20060102T15", "20060102", "200601", "2006", ""}

// ahead is how far the clock of another server may be ahead. What is due later has not been run.
const ahead = 24 * time.Hour

// newestRun returns the context of the newest run of a schedule; empty for none. It looks among the
// runs of the present hour first, then of the day, and so on: a schedule may have very many. A
// context that no run has begun is none of them, whatever its name is.
func newestRun(ctx context.Context, log contexts, name string, now time.Time) (string, error) {
	for _, window := range windows {
		var found []time.Time
		for info, err := range log.Contexts(ctx, store.ContextFilter{Prefix: schedule.RunPrefix(name) + now.UTC().Format(window)}) {
			if err != nil {
				return "", err
			}
			if due, ok := schedule.DueOf(name, info.Context); ok && due.Sub(now) <= ahead {
				found = append(found, due)
			}
		}
		slices.SortFunc(found, func(a, b time.Time) int { return b.Compare(a) })
		for _, due := range found {
			run := schedule.RunName(name, due)
			err := once.CheckBegun(ctx, log, run, "")
			if !errors.As(err, new(*once.OtherRunError)) {
				return run, err
			}
		}
	}
	return "", nil
}

func readRun(ctx context.Context, log store.Reader, name, at string) (*Run, error) {
	due, _ := schedule.DueOf(name, at)
	run := &Run{Context: at, Due: due}
	last, err := journal.In(log, at).CurrentRun(ctx)
	if err != nil {
		return nil, err
	}
	run.Status = last.Status
	if run.Unfinished = !last.Status.Finished() && !last.Unwanted(); run.Unfinished {
		return run, nil
	}
	entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: at, Event: journal.EventRun})
	if ok {
		run.Ended = entry.Date
	}
	return run, err
}

// See records that a schedule has other times than the state says, since a time. It is false if the
// log has changed since the state was read.
func (s *State) See(ctx context.Context, log store.Appender, name, cron, zone string, since time.Time) (bool, error) {
	return s.record(ctx, log, name, kindSeen, eventSeen, seenEvent{cron, zone, formatTime(since)})
}

// AddSkip records runs that are skipped. It is false if the log has changed since the state was
// read.
func (s *State) AddSkip(ctx context.Context, log store.Appender, name string, k Skip) (bool, error) {
	return s.record(ctx, log, name, kindSkip, eventSkip, skipEvent{formatTime(k.From), formatTime(k.Until), k.Count, k.Reason, k.Error})
}

// record appends a message and an entry with the same data to the schedule's own context.
func (s *State) record(ctx context.Context, log store.Appender, name, kind, event string, data any) (bool, error) {
	v, err := store.FromGo(data, kind)
	if err != nil {
		return false, err
	}
	appended, err := log.Append(ctx, store.Batch{
		Context: schedule.RecordName(name), ExpectSeq: s.head, Create: &store.Origin{},
		Messages: []store.Message{{Type: store.TypeData, Kind: kind, Data: store.Some(v)}},
		Journal:  []store.Entry{{Event: event, Data: string(store.EncodeJSON(v))}},
	})
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return false, nil
	}
	s.head = appended.Seq
	return err == nil, err
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func parseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) }
