package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"obelus/engine/plan"
	"obelus/store"
)

// Recording says when a [Cassette] asks the model.
type Recording int

// Kinds of recording.
const (
	ReplayOnly    Recording = iota // never: a request that is not recorded is an error
	RecordMissing                  // where a request is not recorded
	RecordAll                      // always; a new answer replaces the recorded ones of the same request
)

// Cassette is a file of requests with the answers that a model gave, so that tests need no model. A
// request is found by its hash, in any order; each answer is used once. A cassette is safe for
// concurrent use.
type Cassette struct {
	path string

	// Name is what errors call the cassette; empty for its path.
	Name string

	// How says how a request is recorded, in errors; empty for "obelus test --record".
	How string

	// Scrub takes secrets out of a text. A request that has one is not recorded. Nil stands for that
	// of the client that is asked.
	Scrub func(string) string

	mu      sync.Mutex
	entries []*tape // entries of one hash are in the order of their recording
	changed bool
}

// tape is an entry with what became of it.
type tape struct {
	Entry
	given bool // since the cassette was rewound
	used  bool // ever
	fresh bool // it was recorded by this process
}

// Entry is one request with its answer.
type Entry struct {
	Request  json.RawMessage `json:"request"`
	Hash     string          `json:"hash"`
	Answer   Recorded        `json:"answer"`
	Usage    plan.Usage      `json:"usage"`
	Served   string          `json:"served,omitempty"` // the model that answered
	Finish   string          `json:"finish,omitempty"` // why the answer ended
	Window   int             `json:"window,omitempty"` // of the model, as its server said
	Recorded time.Time       `json:"recorded"`
}

// Recorded is an answer as a cassette holds it.
type Recorded struct {
	Value   json.RawMessage `json:"value,omitempty"`   // absent if there is none
	Text    *string         `json:"text,omitempty"`    // nil if it is the value as JSON
	Refusal string          `json:"refusal,omitempty"` // why the model does not answer
	CutOff  bool            `json:"cut_off,omitempty"` // it ended at the limit of tokens
	Loose   bool            `json:"loose,omitempty"`   // it answers the loose form of the request
	Problem string          `json:"problem,omitempty"` // why there is no value
}

// LoadCassette reads a cassette. One that is not there is empty.
func LoadCassette(path string) (*Cassette, error) {
	c := &Cassette{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("%s is not a cassette: %w", path, err)
	}
	for i, e := range entries {
		var b bytes.Buffer
		if err := json.Compact(&b, e.Request); err != nil || hashOf(b.Bytes()) != e.Hash {
			return nil, fmt.Errorf("%s: entry %d was changed by hand: the hash is not that of its request; delete the entry and record it again", path, i+1)
		}
		e.Request = b.Bytes()
		c.entries = append(c.entries, &tape{Entry: e})
	}
	return c, nil
}

func (c *Cassette) name() string { return cmp.Or(c.Name, c.path) }

// Save writes the cassette, if it has changed: whole or not at all.
func (c *Cassette) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	slices.SortStableFunc(c.entries, func(a, b *tape) int { return strings.Compare(a.Hash, b.Hash) })
	entries := make([]Entry, len(c.entries))
	for i, e := range c.entries {
		entries[i] = e.Entry
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(entries); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if err := replaceFile(c.path, b.Bytes()); err != nil {
		return err
	}
	c.changed = false
	return nil
}

// replaceFile writes a file whole or not at all, and its folder if that is missing.
func replaceFile(path string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(draft.Name())
		}
	}()
	_, err = draft.Write(text)
	err = errors.Join(err, draft.Chmod(0o644), draft.Sync(), draft.Close())
	if err != nil {
		return err
	}
	return os.Rename(draft.Name(), path)
}

// Rewind has each answer used once more, as if the cassette had just been loaded.
func (c *Cassette) Rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.given = false
	}
}

// Unused returns the entries that no request has used, each by its purpose, its model and the
// beginning of its hash.
func (c *Cassette) Unused() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if !e.used {
			names = append(names, describe(e.Entry))
		}
	}
	return names
}

// describe names an entry for a reader.
func describe(e Entry) string {
	r := headOf(e.Request)
	return fmt.Sprintf("%s of %s %s", r.Purpose, r.Model, e.Hash[:min(12, len(e.Hash))])
}

// Prune drops the entries that no request has used, and returns how many. [Cassette.Save] writes
// the others.
func (c *Cassette) Prune() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.entries)
	c.entries = slices.DeleteFunc(c.entries, func(e *tape) bool { return !e.used })
	if len(c.entries) != before {
		c.changed = true
	}
	return before - len(c.entries)
}

// Asker returns what answers from the cassette, and asks and records where the kind of recording
// says so. Inner is asked then; it may be nil for [ReplayOnly].
func (c *Cassette) Asker(inner Asker, recording Recording) Asker {
	return &cassetteAsker{c, inner, recording}
}

type cassetteAsker struct {
	cassette  *Cassette
	inner     Asker
	recording Recording
}

// Ask implements [Asker].
func (a *cassetteAsker) Ask(ctx context.Context, r *Request, meter *plan.Meter) (*Answer, error) {
	text := r.JSON()
	hash := hashOf(text)
	if a.recording != RecordAll {
		if e := a.cassette.use(hash); e != nil {
			return a.replay(ctx, e, r.Params, meter)
		}
	}
	if a.recording == ReplayOnly {
		return nil, a.cassette.miss(r, hash)
	}
	if a.cassette.scrub(a.inner, string(text)) != string(text) {
		return nil, fmt.Errorf("%s: a request to %q is not recorded: it has a secret, such as the model's key, in it", a.cassette.name(), r.Model)
	}
	answer, err := a.inner.Ask(ctx, r, meter)
	if err != nil {
		return nil, err
	}
	return answer, a.cassette.record(a.inner, text, r.Window, answer, a.recording)
}

// replay gives an answer that was recorded, and counts it as it was counted then.
func (a *cassetteAsker) replay(ctx context.Context, e *Entry, p Params, meter *plan.Meter) (*Answer, error) {
	answer := &Answer{Refusal: e.Answer.Refusal, CutOff: e.Answer.CutOff, Loose: e.Answer.Loose, Problem: e.Answer.Problem, Usage: e.Usage}
	answer.Usage.Served, answer.Usage.Finish, answer.Usage.Request = e.Served, e.Finish, e.Hash
	answer.Usage.Took = time.Duration(min(max(e.Usage.MS, 0), maxMS) * float64(time.Millisecond))
	if e.Answer.Value != nil {
		v, err := store.DecodeWithin(e.Answer.Value, maxAnswerDepth)
		if err != nil {
			return nil, fmt.Errorf("%s: the answer of %s: %w", a.cassette.path, describe(*e), err)
		}
		answer.Value = store.Some(v)
		answer.Text = string(store.EncodeJSON(v))
	}
	if e.Answer.Text != nil {
		answer.Text = *e.Answer.Text
	}
	answer.Usage = checkUsage(answer.Usage, exchanged{
		requests: answer.Usage.Requests, sent: len(e.Request), received: len(answer.Text), written: len(answer.Text), maxTokens: cmp.Or(p.MaxTokens, DefaultMaxTokens),
	})
	settle, err := meter.Reserve(ctx, answer.Usage)
	if err != nil {
		return nil, err
	}
	meter.Delta(answer.Text)
	meter.Delta("")
	settle(answer.Usage)
	return answer, nil
}

// use takes the first entry of a hash that was not used; nil if there is none.
func (c *Cassette) use(hash string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if e.Hash == hash && !e.given {
			e.given, e.used = true, true
			return &e.Entry
		}
	}
	return nil
}

// scrub takes the secrets of the model out of a text.
func (c *Cassette) scrub(inner Asker, text string) string {
	if c.Scrub != nil {
		return c.Scrub(text)
	}
	if s, ok := inner.(interface{ Scrub(string) string }); ok {
		return s.Scrub(text)
	}
	return text
}

// record adds an answer.
func (c *Cassette) record(inner Asker, request []byte, window int, answer *Answer, recording Recording) error {
	e := Entry{Request: request, Hash: hashOf(request), Window: window, Usage: answer.Usage, Served: answer.Usage.Served, Finish: answer.Usage.Finish, Recorded: time.Now().UTC().Truncate(time.Second),
		Answer: Recorded{Refusal: c.scrub(inner, answer.Refusal), CutOff: answer.CutOff, Loose: answer.Loose, Problem: c.scrub(inner, answer.Problem)}}
	e.Usage.Served, e.Usage.Finish, e.Usage.Request = "", "", ""
	text := c.scrub(inner, answer.Text)
	asJSON := ""
	if answer.Value.Set {
		asJSON = string(store.EncodeJSON(answer.Value.Value))
		if c.scrub(inner, asJSON) != asJSON {
			return fmt.Errorf("%s: an answer is not recorded: it has a secret, such as the model's key, in it", c.name())
		}
		e.Answer.Value = json.RawMessage(asJSON)
	}
	if text != asJSON {
		e.Answer.Text = &text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if recording == RecordAll {
		c.entries = slices.DeleteFunc(c.entries, func(old *tape) bool { return old.Hash == e.Hash && !old.fresh })
	}
	c.entries = append(c.entries, &tape{Entry: e, given: true, used: true, fresh: true})
	c.changed = true
	return nil
}

// maxDiff bounds the difference that an error shows, in lines.
const maxDiff = 80

// miss returns the error of a request that is not recorded: it shows how the request differs from
// the nearest recorded one.
func (c *Cassette) miss(r *Request, hash string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := readable(r.JSON())
	var nearest *tape
	best, times := -1, 0
	for _, e := range c.entries {
		if e.Hash == hash {
			times++
		}
		if n := linesInCommon(wanted, readable(e.Request)); n > best {
			nearest, best = e, n
		}
	}
	again := "record it by " + cmp.Or(c.How, "obelus test --record")
	switch {
	case times > 0:
		return fmt.Errorf("%s: the %s of %s is recorded %d times, and was asked for once more: %s", c.name(), r.Purpose, r.Model, times, again)
	case nearest == nil:
		return fmt.Errorf("%s: the %s of %s is not recorded, and nothing else is: %s", c.name(), r.Purpose, r.Model, again)
	}
	if headOf(nearest.Request).Version < r.Version {
		return fmt.Errorf("%s: the %s of %s is not recorded: the cassette is of an older version of obelus, which asked in other words: %s", c.name(), r.Purpose, r.Model, again)
	}
	diff := strings.Split(udiff.Unified("recorded", "asked for", readable(nearest.Request), wanted), "\n")
	if len(diff) > maxDiff {
		diff = append(diff[:maxDiff], fmt.Sprintf("… and %d lines more", len(diff)-maxDiff))
	}
	return fmt.Errorf("%s: the %s of %s is not recorded: %s\nThe nearest is the %s:\n%s",
		c.name(), r.Purpose, r.Model, again, describe(nearest.Entry), strings.TrimRight(strings.Join(diff, "\n"), "\n"))
}

// head is what identifies a request to a reader.
type head struct {
	Version        int
	Purpose, Model string
}

// headOf reads the head of a request that is recorded.
func headOf(request []byte) (h head) {
	_ = json.Unmarshal(request, &h)
	return h
}

// readable returns a request in lines: its blocks as they are, its schema with one keyword a line.
func readable(request []byte) string {
	var r struct {
		Purpose, Model, System string
		Blocks                 []string
		Schema, Params         json.RawMessage
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return string(request)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "purpose: %s\nmodel: %s\nparams: %s\nsystem:\n%s\n", r.Purpose, r.Model, r.Params, r.System)
	for i, block := range r.Blocks {
		fmt.Fprintf(&b, "block %d:\n%s\n", i+1, block)
	}
	var schema bytes.Buffer
	_ = json.Indent(&schema, r.Schema, "", "  ")
	fmt.Fprintf(&b, "schema:\n%s\n", schema.String())
	return b.String()
}

// linesInCommon counts the lines of one text that are in another as well.
func linesInCommon(a, b string) (n int) {
	counts := map[string]int{}
	for line := range strings.Lines(a) {
		counts[line]++
	}
	for line := range strings.Lines(b) {
		if counts[line] > 0 {
			counts[line]--
			n++
		}
	}
	return n
}
