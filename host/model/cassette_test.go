package model

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/store"
)

// scripted is an Asker that gives one answer after another, and counts.
type scripted struct {
	mu      sync.Mutex
	answers []*Answer
	asked   int
}

func (s *scripted) Ask(_ context.Context, _ *Request, meter *plan.Meter) (*Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := *s.answers[s.asked%len(s.answers)]
	s.asked++
	a.Usage = plan.Usage{Model: "wise", Served: "large-1", Finish: "stop", Mode: "schema", Requests: 1, Input: 10, Output: 5, MS: 1.5}
	meter.Spend(a.Usage)
	return &a, nil
}

// kindsOfAnswers are all that a model may say.
var kindsOfAnswers = []*Answer{
	{Value: store.Some(map[string]any{"a": json.Number("1.50"), "b": "<†>\u2028"}), Text: `{"b": "<†>\u2028", "a": 1.50}`},
	{Value: store.Some(map[string]any{"a": json.Number("1")}), Text: `{"a":1}`},
	{Value: store.Some(nil), Text: "null"},
	{Value: store.Some("text"), Text: "Sure: \"text\""},
	{Value: store.Some(map[string]any{"calls": []any{}}), Text: `{"calls":[]}`, Loose: true},
	{Text: "I can't", Refusal: "it is forbidden"},
	{Text: `{"a":`, CutOff: true, Problem: "the answer is not JSON"},
	{Text: "nothing to be read", Problem: "the answer is not JSON"},
	{Text: "", Problem: "the answer is empty"},
}

// numbered is a request that differs from others by a number.
func numbered(n int) *Request {
	r := question()
	r.Blocks = append(r.Blocks, fmt.Sprint("## Number\n", n))
	return r
}

func load(t *testing.T, path string) *Cassette {
	t.Helper()
	c, err := LoadCassette(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCassette_ReplaysWhatItRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cassettes", "a.json")
	inner := &scripted{answers: kindsOfAnswers}
	c := load(t, path)
	var recorded []*Answer
	for i := range kindsOfAnswers {
		a, err := c.Asker(inner, RecordMissing).Ask(t.Context(), numbered(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, a)
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil || !json.Valid(written) || strings.Contains(string(written), `\u003c`) {
		t.Errorf("%s, %v", written, err)
	}
	again := load(t, path)
	for i := len(recorded) - 1; i >= 0; i-- { // in any order
		meter := plan.NewMeter(nil, nil)
		a, err := again.Asker(nil, ReplayOnly).Ask(t.Context(), numbered(i), meter)
		if err != nil {
			t.Fatal(err)
		}
		want := *recorded[i]
		want.Usage.Request = numbered(i).Hash()
		want.Usage.Took = 1500_000
		if !reflect.DeepEqual(*a, want) || meter.Used().Input != 10 {
			t.Errorf("%+v\nwant\n%+v", *a, want)
		}
	}
	if len(again.Unused()) != 0 || inner.asked != len(kindsOfAnswers) {
		t.Errorf("unused: %q; asked %d times", again.Unused(), inner.asked)
	}
	if err := again.Save(); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(path); string(text) != string(written) {
		t.Error("reading changed the file")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("beside the cassette there is %v", left)
	}
}

// TestCassette_EachAnswerOnce holds that identical requests, side by side, are as many answers.
func TestCassette_EachAnswerOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	inner := &scripted{answers: kindsOfAnswers[:3]}
	c := load(t, path)
	ask := func(c *Cassette, recording Recording) error {
		_, err := c.Asker(inner, recording).Ask(t.Context(), question(), nil)
		return err
	}
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			if err := ask(c, RecordMissing); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	again := load(t, path)
	for i := range 2 {
		if err := ask(again, ReplayOnly); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := ask(again, ReplayOnly); err == nil || !strings.Contains(err.Error(), "is recorded 2 times, and was asked for once more") {
		t.Error(err)
	}
	if err := ask(again, RecordMissing); err != nil || inner.asked != 3 {
		t.Errorf("%v, asked %d times", err, inner.asked)
	}
}

func TestCassette_RecordsAllAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	inner := &scripted{answers: kindsOfAnswers[:2]}
	for i, recording := range []Recording{RecordMissing, RecordAll} {
		c := load(t, path)
		for n := range 2 - i { // the second time of the first alone
			if _, err := c.Asker(inner, recording).Ask(t.Context(), numbered(n), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Save(); err != nil {
			t.Fatal(err)
		}
	}
	c := load(t, path)
	if n := len(c.Unused()); n != 2 || inner.asked != 3 {
		t.Errorf("%d entries, asked %d times", n, inner.asked)
	}
	if _, err := c.Asker(nil, ReplayOnly).Ask(t.Context(), numbered(1), nil); err != nil {
		t.Fatal(err)
	}
	unused := c.Unused()
	if len(unused) != 1 || unused[0] != "answer of wise "+numbered(0).Hash()[:12] {
		t.Errorf("%q", unused)
	}
	if n := c.Prune(); n != 1 || c.Save() != nil || len(load(t, path).Unused()) != 1 {
		t.Errorf("%d pruned, and %q", n, load(t, path).Unused())
	}
}

func TestCassette_Miss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refund.json")
	c := load(t, path)
	if _, err := c.Asker(nil, ReplayOnly).Ask(t.Context(), question(), nil); err == nil || !strings.Contains(err.Error(), "is not recorded, and nothing else is") {
		t.Error(err)
	}
	inner := &scripted{answers: kindsOfAnswers}
	other := question()
	other.Purpose, other.System, other.Blocks, other.Schema = "plan", "other", []string{"quite another"}, nil
	for _, r := range []*Request{other, numbered(1)} {
		if _, err := c.Asker(inner, RecordMissing).Ask(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	changed := numbered(2)
	changed.Schema = fit.Object{member("type", "object"), member("properties", fit.Object{member("word", fit.Object{member("type", "string"), member("maxLength", 9)})})}
	_, err := c.Asker(nil, ReplayOnly).Ask(t.Context(), changed, nil)
	if err == nil {
		t.Fatal("a request that is not recorded is answered")
	}
	for _, want := range []string{
		path + ": the answer of wise is not recorded: record it by obelus test --record", "The nearest is the answer of wise " + numbered(1).Hash()[:12],
		"--- recorded", "+++ asked for", "\n-1\n", "\n+2\n", "\n+      \"maxLength\": 9\n", "\n-    \"number\": {\n",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	huge := numbered(3)
	huge.Blocks = append(huge.Blocks, strings.Repeat("line\n", 1000))
	_, err = c.Asker(nil, ReplayOnly).Ask(t.Context(), huge, nil)
	if lines := strings.Count(err.Error(), "\n"); lines > maxDiff+5 || !strings.Contains(err.Error(), "lines more") {
		t.Errorf("%d lines", lines)
	}
}

// TestCassette_HasNoSecrets holds that neither a key nor a header gets into a cassette.
func TestCassette_HasNoSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	c := load(t, path)
	s := newSetUp(t, Config{Headers: []Header{{Name: "X-Team", Env: "TEST_HEADER"}}})
	s.server.Answer = worded
	ask := func(r *Request) error {
		_, err := c.Asker(s, RecordMissing).Ask(t.Context(), r, nil)
		return err
	}
	for _, secret := range []string{testKey, "header-secret"} {
		r := question()
		r.Blocks = []string{"it is " + secret}
		if err := ask(r); err == nil || !strings.Contains(err.Error(), "it has a secret") || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
	if n := len(s.server.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	if err := ask(question()); err != nil {
		t.Fatal(err)
	}
	c.Scrub = func(text string) string { return strings.ReplaceAll(text, "née", "x") }
	if err := ask(numbered(1)); err == nil || !strings.Contains(err.Error(), "an answer is not recorded: it has a secret") {
		t.Error(err)
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "te\\\\st") || strings.Contains(string(text), "header-secret") || strings.Contains(string(text), "Bearer") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCassette_Files(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ text, want string }{
		"none.json":    {"", ""},
		"empty.json":   {"[]", ""},
		"broken.json":  {"[", "broken.json is not a cassette"},
		"changed.json": {`[{"request":{"purpose":"plan"},"hash":"00"}]`, "changed.json: entry 1 was changed by hand"},
	} {
		path := filepath.Join(dir, name)
		if test.text != "" {
			if err := os.WriteFile(path, []byte(test.text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		_, err := LoadCassette(path)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v; want %s", name, err, test.want)
		}
	}
	if _, err := LoadCassette(dir); err == nil {
		t.Error("a folder is a cassette")
	}
	c := load(t, filepath.Join(dir, "below", "below.json"))
	if err := c.Save(); err != nil { // nothing has changed
		t.Error(err)
	}
	if _, err := c.Asker(&scripted{answers: kindsOfAnswers}, RecordAll).Ask(t.Context(), question(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "below"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(); err == nil {
		t.Error("it is saved below a file")
	}
}
