package prompts_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host"
	"obelus/host/model/modeltest"
	"obelus/host/prompts"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

// project opens a project of files in a folder of its own.
func project(t *testing.T, files map[string]string) *host.Host {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs a plan of a project, with an input.
func run(t *testing.T, h *host.Host, log store.Log, name, plan string) {
	t.Helper()
	request, registry, err := h.Plan(plan)
	if err != nil {
		t.Fatal(err)
	}
	runner := h.Generation().Settings().Runner(log, registry)
	start := engine.Start{Context: name, Request: request, Input: store.Some(map[string]any{"text": "Is it?"})}
	outcome, err := runner.Run(t.Context(), start)
	if err != nil || outcome.Status != journal.RunDone && outcome.Status != journal.RunWaiting {
		t.Fatalf("%s: %+v, %v", plan, outcome, err)
	}
}

// shapes are plans in which a model is asked: side by side, one after the other, in a delegate, for
// each instance, by a function that plans round by round, and for plans.
var shapes = map[string]string{
	"activities/all.lua": `
		Tool.register("judge", { text = "string" })
		Tool.register("twice", { properties = { n = { type = "number" } }, required = { "n" } })
		Activity.register("twice", function(call) return call.n * 2 end)`,
	"plans/side.lua": `return { calls = {
		{ _tool = "judge", text = "†input.text", _outputPath = "†state.a" }, { _tool = "judge", text = "two", _outputPath = "†state.b" },
		{ _tool = "judge", text = "†state.a", _outputPath = "†state.c" } }, output = "†state.c" }`,
	"plans/waits.lua": `return { calls = { { _tool = "judge", text = "†input.text", _outputPath = "†state.a" },
		{ _tool = "judge", text = "†input.more", after = "†state.a", _outputPath = "†state.b" } }, output = "†state.b" }`,
	"plans/later.lua": `return { calls = {
		{ _tool = "twice", n = 3, _outputPath = "†state.n" }, { _tool = "judge", text = "one", n = "†state.n", _outputPath = "†state.a" },
		{ _tool = "judge", text = "†state.a", _outputPath = "†state.b" } }, output = "†state.b" }`,
	"plans/sub.lua": `return { calls = { { _tool = "judge", text = "before", _outputPath = "†state.z" },
		{ _tool = "sub", _delegate = "lib/sub.lua", text = "†state.z", _outputPath = "†state.sub" },
		{ _tool = "judge", text = "†state.sub", _outputPath = "†state.a" } }, output = "†state.a" }`,
	"lib/sub.lua": `return { calls = { { _tool = "judge", text = "inside", _outputPath = "†state.a" }, { _tool = "judge", text = "†state.a", _outputPath = "†state.b" } }, output = "†state.b" }`,
	"plans/rounds.lua": `return { plan = function(context)
		local state = context.state
		if not state then return { calls = { { _tool = "judge", text = "first", _outputPath = "†state.a" } } } end
		if not state.b then return { calls = { { _tool = "judge", text = "†state.a", _outputPath = "†state.b" } } } end
		return { calls = {}, output = "†state.b" }
	end }`,
	"plans/made.lua": `return { schema = { type = "object", properties = { letter = { type = "string" } }, required = { "letter" } }, offer = { "twice", "judge" } }`,
}

// thinker answers the calls of a request each by a text of its own, and makes plans of two rounds.
func thinker(t *testing.T) string {
	t.Helper()
	server := modeltest.NewServer(t)
	server.Answer = func(r *modeltest.Request) modeltest.Reply {
		asked := r.Prompt
		if strings.Contains(asked, "## Tick 1") {
			return modeltest.Reply{Text: `{"calls":[{"_tool":"twice","_reasoningForCall":"it is asked for","n":4,"_outputPath":"†state.n"}],"output":null}`}
		}
		if strings.Contains(asked, "## Tick 2") {
			return modeltest.Reply{Text: `{"calls":[],"output":{"letter":"Dear"}}`}
		}
		var members []string
		for i, part := range strings.Split(asked, "## Call ")[1:] {
			call, _, _ := strings.Cut(part, " ")
			members = append(members, strconv.Quote(call)+":"+strconv.Quote("answer "+strconv.Itoa(i)))
		}
		return modeltest.Reply{Text: "{" + strings.Join(members, ",") + "}"}
	}
	return server.URL
}

// TestAbout_ComputesWhatWasSent holds that each request that a log names is made again, the same,
// from a copy of its context: of calls and plans, delegates and forks.
func TestAbout_ComputesWhatWasSent(t *testing.T) {
	files := map[string]string{"obelus.lua": `return { model = { url = "` + thinker(t) + `", model = "m", tries = 1 } }`}
	for name, text := range shapes {
		files[name] = text
	}
	h := project(t, files)
	log, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	for name := range shapes {
		if plan, ok := strings.CutPrefix(name, "plans/"); ok {
			run(t, h, log, strings.TrimSuffix(plan, ".lua"), name)
		}
	}
	for _, from := range []string{"sub", "later", "made"} {
		if _, err := journal.Fork(t.Context(), log, from, 0, "fork-of-"+from); err != nil {
			t.Fatal(err)
		}
	}
	// One that waits for an input, and gets it; and calls that run again in a fork.
	resume := func(plan string, r engine.Resume) {
		t.Helper()
		request, registry, err := h.Plan(plan)
		if err != nil {
			t.Fatal(err)
		}
		r.Request = request
		outcome, err := h.Generation().Settings().Runner(log, registry).Resume(t.Context(), r)
		if err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v: %+v, %v", r, outcome, err)
		}
	}
	more := []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"more": "And this?"})}}
	if _, err := engine.Append(t.Context(), log, "waits", more); err != nil {
		t.Fatal(err)
	}
	resume("plans/waits.lua", engine.Resume{Context: "waits"})
	if _, err := journal.Fork(t.Context(), log, "side", 0, "rerun"); err != nil {
		t.Fatal(err)
	}
	resume("plans/side.lua", engine.Resume{Context: "rerun", From: "1.1"})
	source := prompts.Source{Generation: h.Generation(), Log: log}
	asked := 0
	for info, err := range log.Contexts(t.Context(), store.ContextFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, about := range asking(t, log, info.Context) {
			p, err := source.About(t.Context(), info.Context, about)
			if err != nil {
				t.Errorf("%s %s: %v", info.Context, about, err)
			} else if p.State != prompts.Computed || p.Recorded == "" || p.Recorded != p.Hash {
				t.Errorf("%s %s: %s, recorded %s:\n%s", info.Context, about, p.State, p.Recorded, p.Request.JSON())
			}
			asked++
		}
	}
	if asked < 19 {
		t.Errorf("%d requests are looked at", asked)
	}
	if _, err := log.Head(t.Context(), "prompt-1"); !errors.Is(err, store.ErrNoContext) {
		t.Errorf("the log has a context of it: %v", err)
	}
}

// asking returns the calls and the ticks of a context about which a model was asked.
func asking(t *testing.T, log store.Reader, name string) (all []string) {
	t.Helper()
	in := journal.In(log, name)
	records, err := in.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Model != nil {
			all = append(all, r.Call)
		}
	}
	plans, err := in.Plans(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if p.ByModel {
			all = append(all, strconv.Itoa(p.Tick))
		}
	}
	return all
}

// TestAbout_GivesWhatIsKept holds that what the log keeps is given, the same as what is computed, and
// needs neither the project nor a place.
func TestAbout_GivesWhatIsKept(t *testing.T) {
	files := map[string]string{"obelus.lua": `return { model = { url = "` + thinker(t) + `", model = "m", tries = 1, keep = true } }`}
	for name, text := range shapes {
		files[name] = text
	}
	h := project(t, files)
	log := memory.New()
	for _, name := range []string{"sub", "made"} {
		run(t, h, log, name, "plans/"+name+".lua")
	}
	source := prompts.Source{Generation: h.Generation(), Log: log}
	gone := prompts.Source{Generation: project(t, nil).Generation(), Log: log, Admit: func(context.Context) (func(), error) { return nil, errors.New("full") }}
	for _, at := range [][2]string{{"sub", "1.1"}, {"sub", "1.3"}, {"sub.1.2", "1.2"}, {"made", "1"}, {"made", "2"}} {
		p, err := gone.About(t.Context(), at[0], at[1])
		if err != nil {
			t.Fatal(at, err)
		}
		if p.State != prompts.Sent || len(p.Answers) != 1 || p.Answers[0].Text == "" || p.Request.Hash() != p.Hash {
			t.Errorf("%v: %+v", at, p)
		}
		lacking := prompts.Source{Generation: h.Generation(), Log: forgetful{log}}
		computed, err := lacking.About(t.Context(), at[0], at[1])
		if err != nil {
			t.Fatal(at, err)
		}
		if diff := cmp.Diff(string(p.Request.JSON()), string(computed.Request.JSON())); diff != "" {
			t.Errorf("%v: what is computed is not what was sent: %s", at, diff)
		}
	}
	if _, err := (prompts.Source{Generation: gone.Generation, Log: forgetful{log}}).About(t.Context(), "made", "1"); err == nil {
		t.Error("a request is computed without the project's files")
	}
	bounded := source
	bounded.Log, bounded.MaxBytes = forgetful{log}, 100
	if _, err := bounded.About(t.Context(), "sub", "1.3"); !errors.As(err, new(*prompts.TooLargeError)) {
		t.Error(err)
	}
	bounded.MaxBytes, bounded.Timeout = 0, time.Nanosecond
	if _, err := bounded.About(t.Context(), "sub", "1.3"); !errors.As(err, new(*prompts.SlowError)) {
		t.Error(err)
	}
}

// TestAbout_Retried holds that of two calls that one request was about, and of which one was asked
// about again, each has its own newest request.
func TestAbout_Retried(t *testing.T) {
	for _, failing := range []string{"1.1", "1.2"} {
		server := modeltest.NewServer(t)
		server.Answer = func(r *modeltest.Request) modeltest.Reply {
			if r.Number > 1 {
				return modeltest.Reply{Text: `{"` + failing + `":"fine"}`}
			}
			return modeltest.Reply{Text: strings.Replace(`{"1.1":"fine","1.2":"fine"}`, `"`+failing+`":"fine"`, `"`+failing+`":1`, 1)}
		}
		h := project(t, map[string]string{
			"obelus.lua":    `return { model = { url = "` + server.URL + `", model = "m", tries = 1, repairs = 0, keep = true } }`,
			"plans/two.lua": `return { tools = { judge = {} }, calls = { { _tool = "judge", n = 1, _outputPath = "†state.a" }, { _tool = "judge", n = 2, _outputPath = "†state.b" } } }`,
		})
		log := memory.New()
		request, registry, err := h.Plan("plans/two.lua")
		if err != nil {
			t.Fatal(err)
		}
		runner := h.Generation().Settings().Runner(log, registry)
		if outcome, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunFailed {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if outcome, err := runner.Resume(t.Context(), engine.Resume{Context: "c", Request: request, Retry: []string{failing}}); err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v, %v", outcome, err)
		}
		for _, call := range []string{"1.1", "1.2"} {
			p, err := prompts.Source{Generation: h.Generation(), Log: log}.About(t.Context(), "c", call)
			if err != nil {
				t.Fatal(err)
			}
			blocks := strings.Join(p.Request.Blocks, "\n")
			both := strings.Contains(blocks, "## Call 1.1") && strings.Contains(blocks, "## Call 1.2")
			if p.State != prompts.Sent || !strings.Contains(blocks, "## Call "+call) || both != (call != failing) || len(p.Calls) == 2 != both || len(p.Answers) != 1 {
				t.Errorf("of %s, once %s was retried: %+v\n%s", call, failing, p, blocks)
			}
			computed, err := prompts.Source{Generation: h.Generation(), Log: forgetful{log}}.About(t.Context(), "c", call)
			if err != nil || computed.State != prompts.Computed || computed.Recorded != p.Hash || computed.Hash != p.Hash {
				t.Errorf("of %s, once %s was retried, computed: %+v, %v", call, failing, computed, err)
			}
		}
	}
}

// TestAbout_AskedAgain holds that a request is given with the answer that it brought, and no request
// with the answer to another one: where a call was asked about again, in a fork or by a retry, the
// record has the hash of the newest request, and only what that one's entry keeps is given.
func TestAbout_AskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		fails    bool   // the first answer does, and the call is retried; else it runs again in a fork
		settings string // of the model, from the second asking on
		text     string // that describes the tool then
		budget   int    // in requests; 0 for none
		state    prompts.State
		answers  int
		recorded bool
	}{
		"fork":                       {false, "", "Another.", 0, prompts.Computed, 0, true},
		"fork, the same request":     {false, "", "One.", 0, prompts.Computed, 0, true},
		"fork, kept":                 {false, ", keep = true", "Another.", 0, prompts.Sent, 1, true},
		"retry":                      {true, "", "Another.", 0, prompts.Computed, 0, true},
		"retry, the same request":    {true, "", "One.", 0, prompts.Computed, 0, true},
		"retry, kept":                {true, ", keep = true", "Another.", 0, prompts.Sent, 1, true},
		"retry, the budget is spent": {true, ", keep = true", "Another.", 1, prompts.Computed, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := modeltest.NewServer(t)
			server.Answer = func(r *modeltest.Request) modeltest.Reply {
				if r.Number == 1 && test.fails {
					return modeltest.Reply{Text: `{"1.1":1}`}
				}
				return modeltest.Reply{Text: `{"1.1":"answer ` + strconv.Itoa(r.Number) + `"}`}
			}
			open := func(settings, text string) *host.Host {
				return project(t, map[string]string{
					"obelus.lua":    `return { model = { url = "` + server.URL + `", model = "m", tries = 1, repairs = 0` + settings + ` } }`,
					"plans/one.lua": `return { tools = { judge = { description = "` + text + `" } }, calls = { { _tool = "judge", n = 1, _outputPath = "†state.a" } }, output = "†state.a" }`,
				})
			}
			first, then := open(", keep = true", "One."), open(test.settings, test.text)
			log, at := memory.New(), "c"
			request, registry, err := first.Plan("plans/one.lua")
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := first.Generation().Settings().Runner(log, registry).Run(t.Context(), engine.Start{Context: at, Request: request})
			if err != nil || (outcome.Status == journal.RunFailed) != test.fails {
				t.Fatalf("%+v, %v", outcome, err)
			}
			resume := engine.Resume{Context: at, Retry: []string{"1.1"}}
			if !test.fails {
				at = "again"
				if _, err := journal.Fork(t.Context(), log, "c", 0, at); err != nil {
					t.Fatal(err)
				}
				resume = engine.Resume{Context: at, From: "1.1"}
			}
			if resume.Request, registry, err = then.Plan("plans/one.lua"); err != nil {
				t.Fatal(err)
			}
			runner := then.Generation().Settings().Runner(log, registry)
			if test.budget != 0 {
				runner.Budget.Requests = test.budget
			}
			outcome, err = runner.Resume(t.Context(), resume)
			if err != nil || (outcome.Status == journal.RunDone) != (test.budget == 0) {
				t.Fatalf("%+v, %v", outcome, err)
			}
			p, err := prompts.Source{Generation: then.Generation(), Log: log}.About(t.Context(), at, "1.1")
			if err != nil {
				t.Fatal(err)
			}
			if p.State != test.state || len(p.Answers) != test.answers || (p.Recorded != "") != test.recorded || test.recorded && p.Recorded != p.Hash {
				t.Errorf("%+v", p)
			}
			if p.Answers != nil && p.Answers[0].Text != `{"1.1":"answer 2"}` {
				t.Errorf("it was answered %s", p.Answers[0].Text)
			}
			if test.fails {
				return
			}
			if p, err = (prompts.Source{Generation: then.Generation(), Log: log}).About(t.Context(), "c", "1.1"); err != nil || p.State != prompts.Sent || len(p.Answers) != 1 || p.Answers[0].Text != `{"1.1":"answer 1"}` {
				t.Errorf("in the context that was forked: %+v, %v", p, err)
			}
		})
	}
}

// TestAbout_CountsWhatIsCopied holds that the bound on what is copied counts the journal, and the
// messages that forks share, as often as they are copied.
func TestAbout_CountsWhatIsCopied(t *testing.T) {
	h := project(t, map[string]string{
		"obelus.lua": `return { model = { url = "` + thinker(t) + `", model = "m", tries = 1 } }`,
		"plans/one.lua": `return { tools = { judge = {} }, calls = { { _tool = "judge", text = "one", _outputPath = "†state.a" } }, output = "†state.a",
			context = { { type = "state", notes = "` + strings.Repeat("x", 20<<10) + `" } } }`,
	})
	log := memory.New()
	run(t, h, log, "c", "plans/one.lua")
	last := "c"
	for i := range 5 {
		name := "fork-" + strconv.Itoa(i)
		if _, err := journal.Fork(t.Context(), log, last, 0, name); err != nil {
			t.Fatal(err)
		}
		last = name
	}
	request, registry, err := h.Plan("plans/one.lua")
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := h.Generation().Settings().Runner(log, registry).Resume(t.Context(), engine.Resume{Context: last, Request: request, From: "1.1"})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	source := prompts.Source{Generation: h.Generation(), Log: log, MaxBytes: 50 << 10}
	if _, err := source.About(t.Context(), "c", "1.1"); err != nil {
		t.Error(err)
	}
	if _, err := source.About(t.Context(), last, "1.1"); !errors.As(err, new(*prompts.TooLargeError)) {
		t.Errorf("of the fork of forks: %v", err)
	}
	entry := store.Entry{Event: "note", Data: `"` + strings.Repeat("x", 60<<10) + `"`}
	if _, err := log.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Journal: []store.Entry{entry}}); err != nil {
		t.Fatal(err)
	}
	if _, err := source.About(t.Context(), "c", "1.1"); !errors.As(err, new(*prompts.TooLargeError)) {
		t.Errorf("of the long journal: %v", err)
	}
}

// TestAbout_TooLongToKeep holds that a request that was too long to be kept is computed, beside the
// answer, of which the size is known.
func TestAbout_TooLongToKeep(t *testing.T) {
	files := map[string]string{"obelus.lua": `return { model = { url = "` + thinker(t) + `", model = "m", tries = 1, keep = true } }`}
	for name, text := range shapes {
		files[name] = text
	}
	h := project(t, files)
	log := memory.New()
	run(t, h, log, "later", "plans/later.lua")
	p, err := prompts.Source{Generation: h.Generation(), Log: shortened{log}}.About(t.Context(), "later", "1.2")
	if err != nil || p.State != prompts.Computed || p.Hash != p.Recorded || len(p.Answers) != 1 || p.Answers[0].Text != "" || p.Answers[0].Size == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// shortened is a log whose exchanges were too long to be kept.
type shortened struct{ store.Reader }

func (l shortened) Exchanges(ctx context.Context, n int64) ([]store.Exchange, error) {
	all, err := l.Reader.Exchanges(ctx, n)
	for i := range all {
		all[i].Request, all[i].Answer = "", ""
	}
	return all, err
}

// forgetful is a log that keeps no exchanges.
type forgetful struct{ store.Reader }

func (forgetful) Exchanges(context.Context, int64) ([]store.Exchange, error) { return nil, nil }

// TestAbout_NotFound holds that calls without a request are told apart from those that are not there.
func TestAbout_NotFound(t *testing.T) {
	files := map[string]string{"obelus.lua": `return { model = { url = "` + thinker(t) + `", model = "m", tries = 1 } }`}
	for name, text := range shapes {
		files[name] = text
	}
	h := project(t, files)
	log := memory.New()
	run(t, h, log, "later", "plans/later.lua")
	source := prompts.Source{Generation: h.Generation(), Log: log}
	for about, want := range map[string]string{
		"1.1":  "no model is asked about call 1.1",
		"1.33": `context later has no call 1.33 (did you mean "1.3"?)`,
		"7":    "context later has no call 7",
	} {
		if _, err := source.About(t.Context(), "later", about); !errors.As(err, new(*prompts.NotFoundError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if _, err := source.About(t.Context(), "absent", ""); !errors.Is(err, store.ErrNoContext) {
		t.Error(err)
	}
}

// TestAbout_Unsettled holds that a request can be seen before it is sent, and after a run has
// stopped, and that a call that waits is said to.
func TestAbout_Unsettled(t *testing.T) {
	server := modeltest.NewServer(t)
	server.Fault = func(*modeltest.Request) modeltest.Fault { return modeltest.Overloaded }
	settings := `{ url = "` + server.URL + `", model = "m", tries = 1 }`
	h := project(t, map[string]string{
		"obelus.lua": `return { models = { one = ` + settings + `, two = ` + settings + ` }, model = "one", approve = { "letter" } }`,
		"plans/all.lua": `return { tools = { judge = {}, letter = {} }, calls = {
			{ _tool = "judge", n = 1, _retries = 1, _backoff = "1h", _outputPath = "†state.a" },
			{ _tool = "letter", n = 2, _outputPath = "†state.b" },
			{ _tool = "letter", n = 3, _outputPath = "†state.c" },
			{ _tool = "judge", n = "†state.c", _outputPath = "†state.d" },
			{ _tool = "judge", n = "†input.more", _outputPath = "†state.e" },
			{ _tool = "judge", n = 6, _in = "3d", _outputPath = "†state.f" },
			{ _tool = "judge", n = 7, _retries = 1, _backoff = "2h", _model = "two", _outputPath = "†state.g" },
			{ _tool = "sub", _delegate = "lib/sub.lua", _outputPath = "†state.h" } } }`,
		"lib/sub.lua": `return { tools = { judge = {} }, calls = { { _tool = "judge", n = 8, _retries = 1, _backoff = "3h", _outputPath = "†state.a" } } }`,
	})
	log := memory.New()
	request, registry, err := h.Plan("plans/all.lua")
	if err != nil {
		t.Fatal(err)
	}
	runner := h.Generation().Settings().Runner(log, registry)
	source := prompts.Source{Generation: h.Generation(), Log: log}
	asked := func(when string) {
		t.Helper()
		for call, want := range map[string]string{"1.1": `"n":1`, "1.2": `"n":2`, "1.3": `"n":3`, "1.7": `"n":7`} {
			p, err := source.About(t.Context(), "c", call)
			if err != nil || p.State != prompts.Computed || !slices.Equal(p.Calls, []string{call}) || !strings.Contains(strings.Join(p.Request.Blocks, "\n"), want) {
				t.Errorf("%s, of call %s: %+v, %v", when, call, p, err)
			}
		}
		for call, want := range map[string]string{"1.4": "it waits for other calls", "1.5": "it waits for †input.more", "1.6": "it waits until "} {
			if _, err := source.About(t.Context(), "c", call); !errors.As(err, new(*prompts.NotFoundError)) || !strings.Contains(err.Error(), "call "+call+" has not been made yet: "+want) {
				t.Errorf("%s, of call %s: %v", when, call, err)
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := runner.Run(ctx, engine.Start{Context: "c", Request: request})
		ended <- err
	}()
	rests := 0
	for after := int64(0); rests < 2; {
		if after, err = log.Await(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		records, err := journal.In(log, "c").Records(t.Context())
		if err != nil && !errors.Is(err, store.ErrNoContext) {
			t.Fatal(err)
		}
		rests = 0
		for _, r := range records {
			if r.AwaitsRetry() {
				rests++
			}
		}
	}
	asked("before the next attempts")
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	asked("once it was interrupted")
}
