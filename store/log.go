package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Log is a set of contexts, each an append-only list of messages with a journal beside it. All
// methods may be called from several goroutines at once. An append is visible to every read that
// begins after it.
//
// Code that only reads takes a [Reader], code that also appends a [ReadAppender].
type Log interface {
	ReadAppender
	Admin
}

// Appender adds to contexts.
type Appender interface {
	// Append adds a batch, all of it or nothing, durably. It gives [ErrNoContext] where the context
	// is absent and the batch does not create it, a [*HeldError] where another holder has the
	// lease, and a [*ConflictError] where the context is not at the expected seq.
	Append(ctx context.Context, b Batch) (Appended, error)
}

// ReadAppender is a log to which messages are added in the light of those that it holds.
type ReadAppender interface {
	Reader
	Appender
}

// OpReader is the part of a log that a [Resolver] reads.
type OpReader interface {
	// Touching yields, newest first, the operations of one instance (or the
	// global ones, for an empty instance) that stand at the path, above it or
	// below it: all that can bear on its value. An operation for which
	// [Op.Touches] names several such paths comes once.
	Touching(ctx context.Context, q Query) iter.Seq2[Op, error]
}

// Reader reads contexts.
//
// Iterators yield at most one error, last. While the body of a loop over messages, entries or
// contexts is at work, nothing of the log is held for it, however long that takes: they are read in
// pages, as the log was when the first was read, or as it grows; where the context was pruned in
// between, and perhaps made anew, they end with [ErrNoContext]. That of Touching holds its
// resources until the loop ends.
type Reader interface {
	OpReader

	// Head is the seq of a context's newest message, 0 while it has none;
	// [ErrNoContext] if there is no such context.
	Head(ctx context.Context, context string) (int64, error)

	// Messages yields a context's messages, oldest first unless the filter
	// says otherwise.
	Messages(ctx context.Context, f Filter) iter.Seq2[*Message, error]

	// Journal yields the journal's entries in their order.
	Journal(ctx context.Context, f JournalFilter) iter.Seq2[Entry, error]

	// Info describes a context; [ErrNoContext] if there is no such context.
	Info(ctx context.Context, context string) (ContextInfo, error)

	// Contexts yields the contexts that a filter picks, the one that was
	// appended to last first. It may miss one that is appended to meanwhile.
	Contexts(ctx context.Context, f ContextFilter) iter.Seq2[ContextInfo, error]

	// CountContexts counts the contexts that a filter picks, by [Standing].Status.
	CountContexts(ctx context.Context, f ContextFilter) (map[string]int64, error)

	// Kinds lists the kinds of a context's data, with the instances that hold them ("" for global
	// data), sorted by instance and then kind, each pair once. An absent context has none.
	Kinds(ctx context.Context, context string) ([]KindOf, error)

	// Holder names the holder of a context's lease at present, in words; ""
	// if the lease is free, or there is no such context.
	Holder(ctx context.Context, context string) (string, error)

	// Await waits until the journal of all contexts has an entry after a position, and returns the
	// newest position. It hears of appends of other processes too, after a second at the latest. It
	// may return early. Filters find the changes: [JournalFilter].After finds the entries,
	// [ContextFilter].Since the contexts, and [ContextFilter].Due the contexts with something to do.
	Await(ctx context.Context, after int64) (newest int64, err error)

	// Logs yields the lines that a filter picks, oldest first unless it says otherwise. A fork has
	// the lines of its origin up to the time of the newest journal entry that it shares. An absent
	// context has none.
	Logs(ctx context.Context, f LogFilter) iter.Seq2[LogLine, error]

	// Code gives a set of scripts by its digest; [ErrNoCode] if none is kept
	// under it.
	Code(ctx context.Context, digest string) (*Code, error)

	// Exchanges returns the exchanges that were appended with the journal entry at a position, in
	// their order.
	Exchanges(ctx context.Context, n int64) ([]Exchange, error)
}

// Admin looks after a log as a whole.
type Admin interface {
	// Prune removes contexts, as [Reader.Contexts] gave them, with all that they
	// hold, all of them or none. It gives a [*ChangedError] where one was
	// appended to since, a [*NeededError] where a fork that stays needs one of
	// them, a [*HeldError] where one is being run, and [ErrNoContext]. It is the
	// one way in which a log forgets.
	Prune(ctx context.Context, contexts ...ContextInfo) error

	// Close ends the log: later calls give [ErrClosed].
	Close() error
}

// KeepName is how long the name of a pruned context stays taken that a batch with [Batch].Once
// made: a request that is repeated within this time changes the log once.
const KeepName = 30 * 24 * time.Hour

// PrunedNameError is the [ErrExists] of a name that stays taken since its context was pruned.
type PrunedNameError struct {
	Context string
	At      time.Time
}

// Error says since when the name is taken, and for how long.
func (e *PrunedNameError) Error() string {
	return fmt.Sprintf("%s was pruned on %s, and its name stays taken for %d days: give another name", e.Context, e.At.Format(time.DateOnly), int(KeepName.Hours()/24))
}

// Unwrap makes it an [ErrExists].
func (e *PrunedNameError) Unwrap() error { return ErrExists }

const (
	// AnySeq as [Batch.ExpectSeq] appends wherever the context's log ends.
	AnySeq = -1

	// NoEntries as [Batch.ExpectN] appends if the context's journal is empty.
	NoEntries = -1
)

// Batch is the content of one [Appender.Append] to one context.
type Batch struct {
	Context string

	// ExpectSeq is the seq at which the context must be, or [AnySeq]. 0 also
	// stands for a context that the batch creates.
	ExpectSeq int64

	// ExpectN is the position in the journal after which the context must have no entries, 0 for
	// any, or [NoEntries]. For a batch that makes a fork, the entries that the fork shares count. A
	// standing that is computed from the journal needs it, so that it misses no entry that is
	// appended meanwhile.
	ExpectN int64

	// Create makes the context if it is absent. It does nothing to one that
	// exists.
	Create *Origin

	// Once makes the context or fails: with Create, it gives [ErrExists] if the context exists. The
	// name stays taken for a while after the context is pruned ([KeepName]).
	Once bool

	// Messages get their context and seq from the log, and the present time where they have no
	// date. A date before the newest of the context is raised to it; so is the date of an entry.
	// Messages must be well formed: [Message.Check] checks that, and Append does not.
	Messages []Message

	// Journal entries get their context, n and seq from the log, and the present time where they
	// have no date. They follow the messages, except for the messages that an entry's Ahead puts
	// after it; the last entry is ahead of none, and no entry is ahead of more than the one before
	// it.
	Journal []Entry

	// Code holds the scripts that the calls of the journal entries ran. Each set is kept once, by
	// its digest.
	Code []*Code

	// Logs are lines of the context's calls, which get their N and Line from the log. A batch of lines
	// alone does not count as an append in [ContextInfo.Updated].
	Logs []LogLine

	// KeepLogs bounds the lines of a call, in bytes as [LogLine.Size] counts them. For each call with
	// lines in the batch, the oldest lines beyond the bound are deleted; its newest line always stays.
	KeepLogs int64

	// Standing, if it is set, replaces the context's. While the context is being run, numbers of
	// calls other than Held may be behind, as [ContextInfo.Updated]; Status and Due never are. A
	// batch of a standing alone does not count as an append there.
	Standing *Standing

	// Wake makes the context due now where [Standing].Wakes is set.
	Wake bool

	// Lease, if it is set, makes this the append of the one that runs the
	// context: see [Lease]. A batch without messages and journal entries may
	// have one too: it only takes the lease, renews it or gives it back, and
	// does not count as an append in [ContextInfo.Updated].
	Lease *Lease
}

// Lease is the right to run a context, which one holder has at a time. A runner takes it with its
// first append, shows it with each of the others, which renews it, and gives it back with its last.
// The lease is checked before [Batch.ExpectSeq] and within the append, so an append of a former
// holder never reaches the log; an append that fails leaves the lease as it was. Appends without a
// lease are not checked against it.
//
// A free lease can be taken: one that was never taken, was given back, has lapsed, or whose
// holder's process is known to be dead. Otherwise the append gives a [*HeldError], also to another
// runner of the same process. The holder of a lapsed lease may still append as long as no other has
// taken it: that renews it.
//
// Leases lapse by the machine's clock: the clocks of machines that share a log must differ by much
// less than For.
type Lease struct {
	// Epoch is which holding it is, as [Appended.Epoch] told it; 0 to take
	// the lease.
	Epoch int64

	// For is how long from now on the lease holds, to the millisecond. 0
	// gives it back with this append; with an epoch of 0 too, it is taken for
	// this append alone. As long as half of For is left, the lease is not
	// written anew.
	For time.Duration
}

// Origin is where a context comes from: nowhere, a call of another context that
// made it for its delegate, or another context that it goes on from.
type Origin struct {
	Parent string // a context, or empty
	Call   string // the call in it, "1.2"

	// Fork is the context that the new one begins like: the fork shares its messages up to At, and
	// the journal entries that were written before the next one, and costs the same however many
	// there are. Reads of the shared part carry the fork's name. A fork can't be made of a context
	// that exists ([ErrExists]), nor at any seq (see [ForkError]).
	Fork string
	At   int64
}

// Appended is the place of an append: the context's newest seq and the journal's newest position
// after it. Date is the date of the last message or entry, or now for an empty batch.
type Appended struct {
	Seq   int64
	N     int64
	Date  time.Time
	Epoch int64 // of the lease, if the batch had one
}

// Positions is how many positions in the journal a batch takes: one for each
// entry, and one for each message that they come with.
func Positions(b *Batch) int64 {
	if len(b.Journal) == 0 {
		return 0
	}
	return int64(len(b.Messages) + len(b.Journal))
}

// Place gives entry i of a batch that comes after a seq and a position of the
// journal its own.
func (b *Batch) Place(i int, seq, n int64) (Seq, N int64) {
	before := int64(len(b.Messages) - b.Journal[i].Ahead)
	return seq + before, n + before + int64(i) + 1
}

// Entry is one event of the journal. The store keeps entries beside the messages and in the same
// transactions, and does not interpret them.
type Entry struct {
	// N is its position in the journal of all contexts, growing. The messages
	// of its batch have positions too, so that all that happened can be told in
	// one order.
	N       int64
	Context string // empty for an entry that prune left, which concerns no context
	Seq     int64  // the context's message that it follows; 0 for none
	Date    time.Time
	Call    string // the call that it concerns, "1.2", or empty
	Event   string // what happened, a word
	Data    string // JSON: more about it; empty for none
	Ahead   int    // number of its batch's messages that follow it; 0 once it is in the log

	// Exchanges are appended with the entry; entries that are read have none, see [Reader].
	Exchanges []Exchange
}

// Query asks for what bears on a path.
type Query struct {
	Context  string
	Path     Path
	Instance string
	At       int64 // the newest seq that counts; 0 for all
}

// Filter picks messages of a context. Its zero fields pick all.
type Filter struct {
	Context string
	After   int64 // only messages after this seq
	At      int64 // only messages up to this seq
	Type    Type
	Kind    string
	Path    Path      // only messages that touch it, in any instance
	Since   time.Time // only messages of this date or later
	Schema  bool      // only messages that declare a schema
	Newest  bool      // newest first
}

// JournalFilter picks journal entries. Its zero fields pick all.
type JournalFilter struct {
	Context string // empty for all contexts
	After   int64  // only entries after this position
	At      int64  // only entries up to this position; 0 for all
	Seq     int64  // for one context: only entries from when it had reached this seq
	Event   string // only entries of this event; without Call, those that concern no call
	Call    string
	Newest  bool // newest first
	Bare    bool // entries come without their data
}

// Picks reports whether an entry is of the filter's event and call. It does not look at the
// filter's context and positions.
func (f JournalFilter) Picks(e Entry) bool {
	if f.Event != "" && (e.Event != f.Event || f.Call == "" && e.Call != "") {
		return false
	}
	return f.Call == "" || e.Call == f.Call
}

// Newest is the last of a journal's entries that pass a filter, if there is one.
func Newest(ctx context.Context, log Reader, f JournalFilter) (last Entry, ok bool, err error) {
	f.Newest = true
	for entry, err := range log.Journal(ctx, f) {
		return entry, err == nil, err
	}
	return Entry{}, false, nil
}

// KindOf is a kind that has data, and the instance of the data, "" where it is global.
type KindOf struct{ Instance, Kind string }

// Later is the time for [ContextInfo.Updated]: now, to the microsecond, or just after the append
// before if now is not later, as when the clock was set back.
func Later(now, before time.Time) time.Time {
	now = now.Truncate(time.Microsecond)
	if !now.After(before) {
		now = before.Add(time.Microsecond)
	}
	return now
}

// ContextInfo describes one context.
type ContextInfo struct {
	Context  string
	Origin   Origin
	Shares   []string // for a fork: the contexts whose messages it shares
	Messages int64    // number of messages, and so the newest seq
	Created  time.Time

	// Updated is when it was appended to last, to the microsecond and later than all before that.
	// While the context is being run it may be behind, by a little more than a second.
	Updated time.Time

	// Bytes is the size of its messages as JSON: data, schemas and calls. Messages that a fork shares
	// don't count. It may be behind as Updated may.
	Bytes int64

	Standing Standing
	Holder   string // of its lease, in words; "" if that is free
	Lapsed   bool   // the lease is free and was not given back: its holder died, or stood still too long
}

// Errors that callers branch on.
var (
	// ErrNoContext: there is no context of that name.
	ErrNoContext = NewError(NotFound, "no such context")
	// ErrExists: there is a context of that name already.
	ErrExists = NewError(Refused, "there is such a context already")
	// ErrClosed: the log has been closed.
	ErrClosed = errors.New("the log is closed")
)

// ConflictError is an append that expected the context at another seq, or without newer entries in
// its journal: another append came in between. Read again, check again, try again.
type ConflictError struct {
	Context          string
	Expected, Actual int64 // seqs; both 0 where the journal has newer entries
}

func (e *ConflictError) Error() string {
	if e.Expected == e.Actual {
		return fmt.Sprintf("the journal of context %s has entries that were not expected: something else has appended to it", e.Context)
	}
	return fmt.Sprintf("context %s is at %d, not at %d: something else has appended to it", e.Context, e.Actual, e.Expected)
}

// ForkError is a fork at a seq that allows none: beyond the context's messages, or within one
// batch, between a plan, an error or a call's write and the journal entry about it.
type ForkError struct {
	Context       string
	At, Head      int64 // Head is 0 in the second case
	Before, After int64 // the nearest seqs that allow a fork; Before is 0 if there is none
}

func (e *ForkError) Error() string {
	switch {
	case e.Head > 0:
		return fmt.Sprintf("context %s can't be forked at %d: it holds the messages 1 to %d", e.Context, e.At, e.Head)
	case e.After == 0:
		return fmt.Sprintf("context %s can't be forked: it holds no messages", e.Context)
	case e.Before == 0:
		return fmt.Sprintf("context %s can't be forked at %d, in the midst of what was appended at once: fork at %d", e.Context, e.At, e.After)
	}
	return fmt.Sprintf("context %s can't be forked at %d, in the midst of what was appended at once: fork at %d or %d", e.Context, e.At, e.Before, e.After)
}

// Class implements the interface of [ClassOf].
func (e *ForkError) Class() Class { return Refused }

// HeldError is a lease that another holder has: it was taken before, or has been taken over since.
type HeldError struct {
	Context string

	// Holder names the holder of the lease for people: "process 1234 on host x" or "this process".
	// It is empty if the lease was lost and is free again.
	Holder string
}

func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("context %s is no longer held by who ran it: its lease was given back or taken over; read the context again and take the lease anew", e.Context)
	}
	return fmt.Sprintf("context %s is being run by %s: wait until that has finished, or stop it", e.Context, e.Holder)
}

// Class implements the interface of [ClassOf].
func (e *HeldError) Class() Class { return Busy }

// CheckContext refuses a text that can't name a context.
func CheckContext(name string) error {
	if name == "." || name == ".." {
		return fmt.Errorf("%q is no name for a context: in an address it means a folder, and nothing could reach the context over HTTP", name)
	}
	return CheckStoredContext(name)
}

// CheckStoredContext refuses a text that is no context's name in any log: older logs may have names
// that [CheckContext] refuses.
func CheckStoredContext(name string) error {
	for _, r := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			return fmt.Errorf("%q is no name for a context: it has up to 64 of A-Z, a-z, 0-9, . _ and -", name)
		}
	}
	if name == "" || len(name) > 64 {
		return fmt.Errorf("%q is no name for a context: it has 1 to 64 letters, digits, . _ and -", name)
	}
	return nil
}

// ChangedError is a context that can't be pruned since it was appended to after it
// had been looked at. Look at it again.
type ChangedError struct{ Context string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("context %s can't be pruned: it has been appended to meanwhile", e.Context)
}

// NeededError is a context that can't be pruned since a fork shares its
// messages.
type NeededError struct{ Context, Fork string }

func (e *NeededError) Error() string {
	return fmt.Sprintf("context %s can't be pruned: its fork %s shares what it holds", e.Context, e.Fork)
}

// Class implements the interface of [ClassOf].
func (e *NeededError) Class() Class { return Refused }

// Picks reports whether the filter picks a message, apart from its context and path.
func (f *Filter) Picks(m *Message) bool {
	return m.Seq > f.After && (f.At == 0 || m.Seq <= f.At) &&
		(f.Type == "" || m.Type == f.Type) && (f.Kind == "" || m.Kind == f.Kind) &&
		(f.Since.IsZero() || !m.Date.Before(f.Since)) && (!f.Schema || m.Schema != nil)
}

// Code is a set of scripts as they were when calls ran them. It is kept with
// the log, once, so that what happened can be read beside what made it happen.
type Code struct {
	Digest  string   // of the whole set, in hex
	Scripts []Script // sorted by path
}

// Script is one version of a script.
type Script struct {
	Path   string // below the project, with slashes
	SHA256 string // of its source, in hex
	Source []byte // must not be changed
}

// ErrNoCode: no scripts of that digest have been kept.
var ErrNoCode = errors.New("no such scripts are kept")

// Dates returns the dates that a log gives to the messages of a batch and then to its journal
// entries, appended to dates. An item keeps its own date, or gets now. A date before newest, the
// newest of the context, or before the date of the item ahead is raised to that one: a clock may
// have been set back, or another machine's may be ahead.
func (b *Batch) Dates(dates []time.Time, now, newest time.Time) []time.Time {
	later := func(date time.Time) time.Time {
		if date = dateOr(date, now); date.After(newest) {
			newest = date
		}
		return newest
	}
	first, more := len(dates), len(b.Messages)+len(b.Journal)
	dates = slices.Grow(dates, more)[:first+more]
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

// IsAside reports whether the batch has no messages and no journal entries, and is not the one that
// only makes its context: it does not count as an append in [ContextInfo.Updated].
func (b *Batch) IsAside() bool {
	return len(b.Messages)+len(b.Journal) == 0 && (b.Lease != nil || b.Standing != nil || len(b.Logs) > 0)
}
