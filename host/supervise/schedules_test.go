package supervise

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host/schedule"
	"obelus/host/schedule/ledger"
	"obelus/store"
	"obelus/store/memory"
)

// scheduled is a project with schedules of these plans: quick has a call that ends at once, stops
// one that waits for the test, and broken none that there is a tool for.
func scheduled(schedules string) *changingFS {
	plan := func(tool string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`return { calls = { { _tool = "` + tool + `", _outputPath = "†state.x", n = 1 } }, output = "†input" }`)}
	}
	return &changingFS{files: fstest.MapFS{
		"obelus.lua":       settingsOf(schedules),
		"plans/quick.lua":  plan("double"),
		"plans/stops.lua":  plan("stop"),
		"plans/broken.lua": plan("duble"),
	}}
}

// changingFS are files that change while they are read.
type changingFS struct {
	mu    sync.Mutex
	files fstest.MapFS
}

func (c *changingFS) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.Open(name)
}

func (c *changingFS) set(name string, file *fstest.MapFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file.ModTime = time.Now()
	c.files[name] = file
}

func settingsOf(schedules string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(`return { drain = "1s", timeout = "1000h", serve = { schedules = { ` + schedules + ` } } }`)}
}

// runsOf lists the runs of a log but for the day, in the order of their names, with their status
// and how many ticks they have.
func runsOf(t *testing.T, log store.Log) (all []string) {
	t.Helper()
	for info, err := range log.Contexts(t.Context(), store.ContextFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		last, err := journal.In(log, info.Context).CurrentRun(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !schedule.IsRecord(info.Context) {
			all = append(all, fmt.Sprintf("%s %s", info.Context, last.Status))
		}
		if last.Tick > 1 {
			t.Errorf("%s has %d runs", info.Context, last.Tick)
		}
	}
	slices.Sort(all)
	return all
}

func expectRuns(t *testing.T, log store.Log, want ...string) {
	t.Helper()
	synctest.Wait()
	if d := cmp.Diff(want, runsOf(t, log)); d != "" {
		t.Errorf("runs (-want +got):\n%s", d)
	}
}

// expectSkips holds what was skipped of a schedule, the oldest first.
func expectSkips(t *testing.T, log store.Log, name string, want ...string) {
	t.Helper()
	state, err := ledger.Read(t.Context(), log, name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range slices.Backward(state.Skips) {
		text := fmt.Sprintf("%s %s %d %s", k.From.Format("15:04"), k.Until.Format("15:04"), k.Count, k.Reason)
		got = append(got, strings.TrimSpace(text+" "+k.Error))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("skips of %s (-want +got):\n%s", name, d)
	}
}

// sleepUntil sleeps until the bubble's clock, which begins at midnight, is just after a time.
func sleepUntil(clock string) {
	at, err := time.Parse(time.DateTime, "2000-01-01 "+clock+":00")
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Until(at) + time.Second)
	synctest.Wait()
}

// TestSchedules_Start holds that runs start when they are due, never with the past, and have the
// input of their schedule and the due time.
func TestSchedules_Start(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleepUntil("00:05")
		w := newWorkerOf(t, scheduled(`
			often = { plan = "plans/quick.lua", cron = "*/20 * * * *", input = { list = {}, to = "ops" } },
			early = { plan = "plans/quick.lua", cron = "30 1 * * *", zone = "Europe/Berlin" }`), memory.New(), nil)
		expectRuns(t, w.log)
		sleepUntil("00:40")
		expectRuns(t, w.log, "early-20000101T003000Z done", "often-20000101T002000Z done", "often-20000101T004000Z done")
		for name, want := range map[string]string{
			"often-20000101T002000Z": `{"due":"2000-01-01T00:20:00Z","list":{},"to":"ops"}`,
			"early-20000101T003000Z": `{"due":"2000-01-01T00:30:00Z"}`,
		} {
			outcome, err := engine.ReadOutcome(t.Context(), w.log, name)
			if err != nil || string(store.EncodeJSON(outcome.Output)) != want {
				t.Errorf("the input of %s is %s, and not %s (%v)", name, store.EncodeJSON(outcome.Output), want, err)
			}
		}
		expectSkips(t, w.log, "often")
	})
}

// TestSchedules_TwoServers holds that two servers of one log start each run once, and that one of
// them records what is skipped.
func TestSchedules_TwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, skips := memory.New(), atomic.Int64{}
		files := scheduled(`
			hourly = { plan = "plans/quick.lua", cron = "0 * * * *" },
			slow = { plan = "plans/stops.lua", cron = "0 */6 * * *" }`)
		count := func(c *Config) {
			c.Poll, c.Skipped = time.Minute, func(string, schedule.Skipped) { skips.Add(1) }
		}
		newWorkerOf(t, files, log, count)
		newWorkerOf(t, files, log, count)
		time.Sleep(24*time.Hour + time.Minute)
		synctest.Wait()
		var want []string
		for hour := 1; hour <= 24; hour++ {
			want = append(want, schedule.RunName("hourly", time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC))+" done")
		}
		// The timeout of runs, an hour, cancels it.
		for hour := 6; hour <= 24; hour += 6 {
			status := " cancelled"
			if hour == 24 {
				status = " running"
			}
			want = append(want, schedule.RunName("slow", time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC))+status)
		}
		expectRuns(t, log, want...)
		if n := skips.Load(); n != 0 {
			t.Errorf("%d runs are skipped", n)
		}
	})
}

// long is a configuration in which runs may take long.
func long(c *Config) { c.Timeout, c.Poll = 1000*time.Hour, time.Minute }

func TestSchedules_OverlapSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, skips := memory.New(), atomic.Int64{}
		files := scheduled(`hourly = { plan = "plans/stops.lua", cron = "0 * * * *" }`)
		var servers []*worker
		for range 2 {
			servers = append(servers, newWorkerOf(t, files, log, func(c *Config) {
				long(c)
				c.Skipped = func(name string, _ schedule.Skipped) {
					if name == "hourly" {
						skips.Add(1)
					}
				}
			}))
		}
		sleepUntil("03:30")
		expectRuns(t, log, "hourly-20000101T010000Z running")
		expectSkips(t, log, "hourly", "02:00 02:00 1 overlapping", "03:00 03:00 1 overlapping")
		if n := skips.Load(); n != 2 {
			t.Errorf("skips are counted %d times", n)
		}
		for _, w := range servers {
			close(w.resume)
		}
		sleepUntil("04:00")
		expectRuns(t, log, "hourly-20000101T010000Z done", "hourly-20000101T040000Z done")
	})
}

func TestSchedules_OverlapQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, scheduled(`hourly = { plan = "plans/stops.lua", cron = "0 * * * *", overlap = "queue", catchup = "1m" }`), memory.New(), long)
		sleepUntil("03:30")
		expectRuns(t, w.log, "hourly-20000101T010000Z running")
		w.resume <- struct{}{}
		expectRuns(t, w.log, "hourly-20000101T010000Z done", "hourly-20000101T020000Z running")
		close(w.resume)
		expectRuns(t, w.log, "hourly-20000101T010000Z done", "hourly-20000101T020000Z done", "hourly-20000101T030000Z done")
		expectSkips(t, w.log, "hourly")
	})
}

// TestSchedules_OverlapAll runs often, since a run that leaves the queue and is in the log a moment
// later was once taken for a missed one, by chance.
func TestSchedules_OverlapAll(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			// One run has its turn at a time: the others wait for that, however few may.
			w := newWorkerOf(t, scheduled(`hourly = { plan = "plans/stops.lua", cron = "0 * * * *", overlap = "all" }`), memory.New(), func(c *Config) {
				long(c)
				c.Runs, c.Queue = 2, 1
			})
			sleepUntil("05:30")
			expectRuns(t, w.log, "hourly-20000101T010000Z running", "hourly-20000101T020000Z running")
			close(w.resume)
			expectRuns(t, w.log, "hourly-20000101T010000Z done", "hourly-20000101T020000Z done", "hourly-20000101T030000Z done", "hourly-20000101T040000Z done", "hourly-20000101T050000Z done")
			expectSkips(t, w.log, "hourly")
		})
	}
}

// TestSchedules_Catchup holds that the newest of the runs that were missed still runs, within the
// time for that.
func TestSchedules_Catchup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, scheduled(`
			hourly = { plan = "plans/quick.lua", cron = "0 * * * *" },
			strict = { plan = "plans/quick.lua", cron = "0 * * * *", catchup = "10m" },
			never = { plan = "plans/quick.lua", cron = "0 23 * * *" }`), memory.New(), nil)
		sleepUntil("00:59")
		if err := w.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		sleepUntil("04:30")
		expectRuns(t, w.log)
		w.open(nil)
		expectRuns(t, w.log, "hourly-20000101T040000Z done")
		expectSkips(t, w.log, "hourly", "01:00 03:00 3 missed")
		expectSkips(t, w.log, "strict", "01:00 04:00 4 missed")
		expectSkips(t, w.log, "never")
		sleepUntil("05:00")
		expectRuns(t, w.log, "hourly-20000101T040000Z done", "hourly-20000101T050000Z done", "strict-20000101T050000Z done")
	})
}

// TestSchedules_PrunedRecord holds that a schedule whose record was pruned is not taken for a new
// one as long as a run of it is there.
func TestSchedules_PrunedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, scheduled(`hourly = { plan = "plans/quick.lua", cron = "0 * * * *" }`), memory.New(), nil)
		sleepUntil("01:00")
		if err := w.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		info, err := w.log.Info(t.Context(), schedule.RecordName("hourly"))
		if err == nil {
			err = w.log.Prune(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
		sleepUntil("03:10")
		w.open(nil)
		expectRuns(t, w.log, "hourly-20000101T010000Z done", "hourly-20000101T030000Z done")
		expectSkips(t, w.log, "hourly", "02:00 02:00 1 missed")
	})
}

// TestSchedules_Reload holds that schedules are those of the newest scripts, and that a schedule
// with other times starts with the next of them.
func TestSchedules_Reload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := scheduled(`a = { plan = "plans/quick.lua", cron = "0 * * * *" }`)
		w := newWorkerOf(t, files, memory.New(), nil)
		sleepUntil("01:30")
		files.set("obelus.lua", settingsOf(`a = { plan = "plans/quick.lua", cron = "15,45 * * * *" }, b = { plan = "plans/quick.lua", cron = "0 * * * *" }`))
		if r := w.host.Reload(); r.Err != nil || len(r.Pending) > 0 {
			t.Fatal(r.Err, r.Pending)
		}
		expectRuns(t, w.log, "a-20000101T010000Z done")
		sleepUntil("02:00")
		expectRuns(t, w.log, "a-20000101T010000Z done", "a-20000101T014500Z done", "b-20000101T020000Z done")
		files.set("obelus.lua", settingsOf(``))
		if r := w.host.Reload(); r.Err != nil {
			t.Fatal(r.Err)
		}
		sleepUntil("06:00")
		expectRuns(t, w.log, "a-20000101T010000Z done", "a-20000101T014500Z done", "b-20000101T020000Z done")
		expectSkips(t, w.log, "a")
	})
}

// TestSchedules_Refused holds that a run that its plan does not let start is recorded as skipped,
// and that the next one starts if the plan is mended.
func TestSchedules_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		files := scheduled(`
			broken = { plan = "plans/broken.lua", cron = "0 * * * *" },
			absent = { plan = "plans/quik.lua", cron = "0 * * * *" }`)
		newWorkerOf(t, files, log, nil)
		newWorkerOf(t, files, log, nil)
		sleepUntil("01:00")
		expectRuns(t, log)
		expectSkips(t, log, "broken", `01:00 01:00 1 refused plans/broken.lua:1: call 1 (duble): unknown tool "duble" (did you mean "double"?)`)
		expectSkips(t, log, "absent", `01:00 01:00 1 refused plans/quik.lua: there is no such file (did you mean "plans/quick.lua"?)`)
		files.set("plans/broken.lua", &fstest.MapFile{Data: files.files["plans/quick.lua"].Data})
		sleepUntil("02:00")
		expectRuns(t, log, "broken-20000101T020000Z done")
	})
}

// TestSchedules_Cancelled holds that a run that a person cancels before its turn does not start.
func TestSchedules_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, scheduled(`hourly = { plan = "plans/quick.lua", cron = "0 * * * *" }`), memory.New(), func(c *Config) {
			long(c)
			c.Runs = 1
		})
		w.start("other", "stop", nil)
		sleepUntil("01:00")
		w.expectStates("other running", "hourly-20000101T010000Z queued")
		if _, err := w.Cancel(t.Context(), "hourly-20000101T010000Z", journal.Who{By: "me"}); err != nil {
			t.Fatal(err)
		}
		close(w.resume)
		expectRuns(t, w.log, "other done")
		expectSkips(t, w.log, "hourly", "01:00 01:00 1 cancelled")
		sleepUntil("02:00")
		expectRuns(t, w.log, "hourly-20000101T020000Z done", "other done")
	})
}

// fullLog is a log on a disk that may be full.
type fullLog struct {
	store.Log
	full atomic.Bool
}

func (l *fullLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if l.full.Load() {
		return store.Appended{}, fullDisk{}
	}
	return l.Log.Append(ctx, b)
}

// TestSchedules_FullDisk holds that a run that can't be recorded when it is due starts once it can.
func TestSchedules_FullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fullLog{Log: memory.New()}
		newWorkerOf(t, scheduled(`hourly = { plan = "plans/quick.lua", cron = "0 * * * *" }`), log, nil)
		sleepUntil("00:59")
		log.full.Store(true)
		sleepUntil("01:10")
		expectRuns(t, log)
		log.full.Store(false)
		sleepUntil("01:12")
		expectRuns(t, log, "hourly-20000101T010000Z done")
		expectSkips(t, log, "hourly")
	})
}

// TestStart_New holds that a run that must begin its context is refused where the context exists.
func TestStart_New(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *worker) {
		w.expect(w.start("a", "double", 2), journal.RunDone, "4")
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: request("double", 3), Once: true}})
		if err == nil {
			_, err = run.Wait(t.Context())
		}
		if err == nil || err.Error() != store.ErrExists.Error() {
			t.Error(err)
		}
	})
}
