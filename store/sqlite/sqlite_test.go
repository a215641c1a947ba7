package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"obelus/store"
	"obelus/store/memory"
	"obelus/store/storetest"
)

// TestMain makes the test binary a process that appends or holds a lease where
// a test says so.
func TestMain(m *testing.M) {
	if path := os.Getenv("OBELUS_TEST_HOLD"); path != "" {
		if err := holdForParent(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if path := os.Getenv("OBELUS_TEST_APPEND"); path != "" {
		if err := appendForParent(path, os.Getenv("OBELUS_TEST_COUNT")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// appendForParent appends to the context "shared" and prints each seq once it
// is acknowledged.
func appendForParent(path, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	l, err := Open(path, Options{})
	if err != nil {
		return err
	}
	for i := range n {
		a, err := l.Append(context.Background(), store.Batch{
			Context: "shared", ExpectSeq: store.AnySeq, Create: &store.Origin{},
			Messages: []store.Message{written("†state.p"+strconv.Itoa(os.Getpid()), strconv.Itoa(i))},
			Journal:  []store.Entry{{Event: "appended"}},
		})
		if err != nil {
			return err
		}
		fmt.Println(a.Seq)
	}
	return l.Close()
}

func child(t *testing.T, path string, count int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "OBELUS_TEST_APPEND="+path, "OBELUS_TEST_COUNT="+strconv.Itoa(count))
	return cmd
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), ".obelus", "log.db") }

func open(t *testing.T, path string, o Options) *Log {
	t.Helper()
	l, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// plain is a connection that knows nothing of logs.
func plain(t *testing.T, path string) *conn {
	t.Helper()
	c, err := dial(path, "rwc", Options{BusyTimeout: time.Second, Synchronous: "full"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	return c
}

func add(t *testing.T, l store.Log, messages ...store.Message) store.Appended {
	t.Helper()
	a, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// seqs holds a context to its contract and gives its length.
func seqs(t *testing.T, l store.Log, name string) int64 {
	t.Helper()
	last := int64(0)
	for m, err := range l.Messages(t.Context(), store.Filter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Seq != last+1 {
			t.Fatalf("%d after %d", m.Seq, last)
		}
		last = m.Seq
	}
	return last
}

func integrity(t *testing.T, path string) {
	t.Helper()
	row, err := plain(t, path).one(t.Context(), "PRAGMA integrity_check")
	if err != nil || text(row[0]) != "ok" {
		t.Fatalf("integrity_check: %v, %v", row, err)
	}
}

func TestLog(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Log {
		l, err := Open(newPath(t), Options{Synchronous: "normal"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}

// TestSQLite_SameAsMemory: the two logs answer alike, whatever is written.
func TestSQLite_SameAsMemory(t *testing.T) {
	file := open(t, newPath(t), Options{Synchronous: "normal"})
	memory := memory.New()
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		count++
		name := fmt.Sprint("c", count)
		segment := rapid.SampledFrom([]string{"a", "ab", "a-b", "0", "x.y", `"`, "é"})
		path := rapid.Custom(func(t *rapid.T) store.Path {
			p := store.KindPath(rapid.SampledFrom([]string{"s", "error"}).Draw(t, "kind"))
			for _, s := range rapid.SliceOfN(segment, 0, 4).Draw(t, "segments") {
				p = p.Child(s)
			}
			return p
		})
		message := rapid.Custom(func(t *rapid.T) store.Message {
			m := written(path.Draw(t, "path").String(), "v")
			m.Method = rapid.SampledFrom(append(store.Methods, "")).Draw(t, "method")
			m.Instance = rapid.SampledFrom([]string{"", "①"}).Draw(t, "instance")
			if rapid.Bool().Draw(t, "given") {
				m.Producer, m.Path, m.Method, m.Call, m.Written = nil, store.Path{}, "", "", ""
			}
			return m
		})
		batch := store.Batch{Context: name, Create: &store.Origin{}, Messages: rapid.SliceOfN(message, 0, 30).Draw(t, "messages")}
		q := store.Query{
			Context: name, Path: path.Draw(t, "asked"), Instance: rapid.SampledFrom([]string{"", "①"}).Draw(t, "for"),
			At: rapid.Int64Range(0, 31).Draw(t, "at"),
		}
		var answers [2][]store.Op
		var kinds [2][]store.KindOf
		for i, l := range []store.Log{file, memory} {
			if _, err := l.Append(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
			for op, err := range l.Touching(context.Background(), q) {
				if err != nil {
					t.Fatal(err)
				}
				answers[i] = append(answers[i], op)
			}
			var err error
			if kinds[i], err = l.Kinds(context.Background(), name); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(kinds[0], kinds[1], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("kinds (-file +memory):\n%s", diff)
		}
		if diff := cmp.Diff(answers[0], answers[1], cmp.Comparer(func(a, b store.Path) bool { return a == b })); diff != "" {
			t.Fatalf("%+v (-file +memory):\n%s", q, diff)
		}
	})
}

// TestHandlesAgree: several handles on one file, each of which knows where the logs
// end and who holds them as long as nobody else writes, answer appends as one log in
// memory does.
func TestHandlesAgree(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		path, memory := newPath(t), memory.New()
		handles := make([]*Log, 3)
		for i := range handles {
			handles[i] = open(t, path, Options{Synchronous: "normal"})
		}
		epochs := map[string]int64{}
		for n := range 150 {
			b := randomBatch(r, epochs)
			want, wantErr := memory.Append(t.Context(), b)
			got, err := handles[r.IntN(len(handles))].Append(t.Context(), b)
			if classOf(err) != classOf(wantErr) || got.Seq != want.Seq || got.Epoch != want.Epoch {
				t.Fatalf("seed %d, append %d, %+v: %+v, %v, and in memory %+v, %v", seed, n, b, got, err, want, wantErr)
			}
			if b.Lease != nil && err == nil {
				epochs[b.Context] = got.Epoch
			}
		}
	}
}

// randomBatch is an append that may be refused for any reason.
func randomBatch(r *rand.Rand, epochs map[string]int64) store.Batch {
	names := []string{"a", "b", "c"}
	b := store.Batch{Context: names[r.IntN(3)], ExpectSeq: []int64{store.AnySeq, store.AnySeq, 0, 1, 2, 3}[r.IntN(6)]}
	if r.IntN(3) > 0 {
		b.Create = &store.Origin{}
	}
	if r.IntN(6) == 0 {
		b.Context = fmt.Sprint("f", r.IntN(4))
		b.Create = &store.Origin{Fork: names[r.IntN(3)], At: int64(r.IntN(4))}
	}
	for range r.IntN(3) {
		b.Messages = append(b.Messages, written("†s.a", "v"))
	}
	if r.IntN(2) == 0 {
		b.Journal = []store.Entry{{Event: "e"}}
	}
	switch r.IntN(4) {
	case 0:
		b.Lease = &store.Lease{For: time.Duration(r.IntN(2)) * time.Hour}
	case 1:
		b.Lease = &store.Lease{Epoch: epochs[b.Context] + int64(r.IntN(8)/7), For: time.Duration(r.IntN(3)/2) * time.Hour}
	}
	return b
}

// classOf is why an append was refused.
func classOf(err error) string {
	for _, known := range []error{store.ErrNoContext, store.ErrExists} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*store.ConflictError)):
		return "conflict"
	case errors.As(err, new(*store.HeldError)):
		return "held"
	case errors.As(err, new(*store.ForkError)):
		return "fork"
	}
	return err.Error()
}

func TestReopen(t *testing.T) {
	path := newPath(t)
	l := open(t, path, Options{})
	add(t, l, written("†s.a", "1"))
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the closed file: %v, %v", entries, err)
	}
	l = open(t, path, Options{})
	if a := add(t, l, written("†s.a", "2")); a.Seq != 2 {
		t.Errorf("seq %d", a.Seq)
	}
	second := open(t, path, Options{})
	if a := add(t, second, written("†s.a", "3")); a.Seq != 3 {
		t.Errorf("seq %d", a.Seq)
	}
	if n := seqs(t, l, "c"); n != 3 {
		t.Errorf("%d messages", n)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Synchronous: "off"}, {BusyTimeout: -1}} {
		if l, err := Open(newPath(t), o); err == nil {
			l.Close()
			t.Errorf("%+v was taken", o)
		}
	}
}

// TestOddNames: a file's name is not part of a connection's options.
func TestOddNames(t *testing.T) {
	for _, name := range []string{"a b.db", "what?mode=ro", "100%25.db", "#1&x=y", "ñ☃.db"} {
		path := filepath.Join(t.TempDir(), name)
		add(t, open(t, path, Options{}), written("†s", "x"))
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestManyProcesses(t *testing.T) {
	const processes, each = 10, 20
	path := newPath(t)
	var group sync.WaitGroup
	for range processes {
		cmd := child(t, path, each)
		group.Go(func() {
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, stderr.String())
			}
		})
	}
	group.Wait()
	l := open(t, path, Options{})
	if n := seqs(t, l, "shared"); n != processes*each {
		t.Errorf("%d messages", n)
	}
	values := map[string]bool{}
	for m, err := range l.Messages(t.Context(), store.Filter{Context: "shared"}) {
		if err != nil {
			t.Fatal(err)
		}
		values[string(store.EncodeJSON(m.Data.Value))] = true
	}
	if len(values) != processes*each {
		t.Errorf("%d values", len(values))
	}
	if files, _ := filepath.Glob(path + ".new-*"); len(files) > 0 {
		t.Errorf("left over: %v", files)
	}
}

// TestCrash kills a process between two statements, wherever that falls.
func TestCrash(t *testing.T) {
	path := newPath(t)
	acknowledged := int64(0)
	for round := range 5 {
		cmd := child(t, path, 1_000_000)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 20 + 7*round {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
		}
		_ = cmd.Process.Kill()
		for last := lines.Text(); ; last = lines.Text() {
			if n, err := strconv.ParseInt(last, 10, 64); err == nil {
				acknowledged = n
			}
			if !lines.Scan() {
				break
			}
		}
		_ = cmd.Wait()
	}
	l := open(t, path, Options{})
	if n := seqs(t, l, "shared"); n < acknowledged {
		t.Errorf("%d messages of %d", n, acknowledged)
	}
	events := int64(0)
	for _, err := range l.Journal(t.Context(), store.JournalFilter{Context: "shared"}) {
		if err != nil {
			t.Fatal(err)
		}
		events++
	}
	if n := seqs(t, l, "shared"); n != events {
		t.Errorf("%d messages and %d events", n, events)
	}
	integrity(t, path)
}

func TestGroupCommit(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l)
	// While another connection writes, appends queue up.
	other := plain(t, l.path)
	if err := other.script("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	before := l.commits.Load()
	const appends = 200
	var requests []*request
	for range appends {
		r := newRequest(store.Batch{Context: "c", ExpectSeq: store.AnySeq, Messages: []store.Message{written("†s", "x")}})
		if err := l.enqueue(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	if err := other.script("COMMIT"); err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if err := l.await(t.Context(), r); err != nil || r.err != nil {
			t.Error(err, r.err)
		}
	}
	if n := l.commits.Load() - before; n > appends/4 {
		t.Errorf("%d commits for %d appends", n, appends)
	}
	if n := seqs(t, l, "c"); n != appends {
		t.Errorf("%d messages", n)
	}
}

// TestWriterLock_OneAtATime: one at a time has the turn, all who wait for it get it, and nobody has
// it whose context ends before.
func TestWriterLock_OneAtATime(t *testing.T) {
	turn, held, had := newWriterLock(), 0, 0
	var all errgroup.Group
	for range 100 {
		all.Go(func() error {
			for range 20 {
				if err := turn.acquire(t.Context()); err != nil {
					return err
				}
				if held++; held != 1 {
					t.Errorf("%d have the turn", held)
				}
				had++
				runtime.Gosched()
				held--
				turn.release()
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil || had != 2000 {
		t.Error(err, had)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if !turn.tryAcquire() || turn.tryAcquire() {
		t.Error("it is had by nobody, or by two")
	}
	cancel()
	<-turn.free // of who had it before
	if err := turn.acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	turn.release()
	if err := turn.acquire(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGroupCommit_Locked: what another's lock keeps from the file is waited for by all in the queue
// at once.
func TestGroupCommit_Locked(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l)
	other := plain(t, l.path)
	if err := other.script("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	queue := make(chan *request, 2*maxGroup)
	for range 2 * maxGroup {
		queue <- newRequest(store.Batch{Context: "c", ExpectSeq: store.AnySeq})
	}
	l.writer.timeout = time.Millisecond
	for _, left := range []int{maxGroup, 0} {
		if l.writer.run(queue); len(queue) != left {
			t.Errorf("%d wait, not %d", len(queue), left)
		}
	}
}

// TestAppend_QueueOfAbandonedRequests: who waits for room in the queue gets it though all have left
// whose appends are in it.
func TestAppend_QueueOfAbandonedRequests(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l)
	for range queueLength {
		r := newRequest(store.Batch{Context: "c", ExpectSeq: store.AnySeq})
		r.state.Store(cancelled)
		l.queue <- r
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := appendOne(ctx, l); err != nil {
		t.Error(err)
	}
}

// TestGroupCommit_Bounded: a group takes what waits, within its bound, and leaves the rest to the
// next.
func TestGroupCommit_Bounded(t *testing.T) {
	queue := make(chan *request, 100)
	for range 100 {
		queue <- newRequest(store.Batch{Context: "c", ExpectSeq: store.AnySeq})
	}
	if group := gather(queue, 40); len(group) != 40 || len(queue) != 60 {
		t.Errorf("it takes %d and leaves %d", len(group), len(queue))
	}
	if group := gather(queue, maxGroup); len(group) != 60 || len(queue) != 0 {
		t.Errorf("then it takes %d and leaves %d", len(group), len(queue))
	}
}

// TestGroupCommit_OnOneProcessor: who writes lets another come to its group first, who
// can't run meanwhile; not where it has appended alone before.
func TestGroupCommit_OnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := open(t, newPath(t), Options{})
	one := func(name string) error {
		_, err := l.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{written("†s", "x")}})
		return err
	}
	together := false
	for range 20 { // chance may let the other one run before, and alone
		before := l.commits.Load()
		var other errgroup.Group
		other.Go(func() error { return one("b") })
		if err := errors.Join(one("a"), other.Wait()); err != nil {
			t.Fatal(err)
		}
		if together = l.commits.Load()-before == 1; together {
			break
		}
	}
	if !together {
		t.Error("two who append at once are never written together")
	}
	company := func(name string) bool { return l.writer.shouldYield(&request{batch: store.Batch{Context: name}}) }
	if !company("a") || !company("b") {
		t.Error("after a group nobody is waited for")
	}
	if err := one("a"); err != nil {
		t.Fatal(err)
	}
	if company("a") || !company("b") {
		t.Error("who is alone waits for others, or who comes after another one does not")
	}
	runtime.GOMAXPROCS(2)
	if company("b") {
		t.Error("others are waited for who can run meanwhile")
	}
}

// TestClockSetBack: what is appended last comes first also if the clock was set
// back since, and has the date that the clock shows.
func TestClockSetBack(t *testing.T) {
	path := newPath(t)
	appended := func(name string) store.Appended {
		t.Helper()
		l := open(t, path, Options{})
		a, err := l.Append(t.Context(), store.Batch{
			Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{},
			Messages: []store.Message{written("†s", "x")}, Journal: []store.Entry{{Event: "append"}},
		})
		if err := errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		return a
	}
	appended("before")
	c := plain(t, path)
	if err := errors.Join(c.script("UPDATE contexts SET updated = '2199-01-01T00:00:00.000000Z'"), c.close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "a", "before"} {
		if a := appended(name); a.Date.After(time.Now()) {
			t.Errorf("%s has the date %s", name, a.Date)
		}
		for info, err := range open(t, path, Options{ReadOnly: true}).Contexts(t.Context(), store.ContextFilter{}) {
			if err != nil || info.Context != name {
				t.Errorf("%s comes before %s, %v", info.Context, name, err)
			}
			break
		}
	}
}

// TestAppend_CancelledWhileQueued: an append that nobody waits for any more is not made.
func TestAppend_CancelledWhileQueued(t *testing.T) {
	l := &Log{path: "log.db", queue: make(chan *request, 1), lock: newWriterLock()}
	l.lock.tryAcquire() // and nobody takes from the queue
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- appendOne(ctx, l) }()
	r := <-l.queue
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if group := r.joinGroup(nil); len(group) != 0 {
		t.Error("it would be written")
	}
}

// TestConn_BoundAgain: a statement that is used again forgets what was bound to it.
func TestConn_BoundAgain(t *testing.T) {
	c := plain(t, filepath.Join(t.TempDir(), "plain.db"))
	for _, want := range []any{"text", nil, int64(7), nil} {
		row, err := c.one(t.Context(), "SELECT ?1, ?2", want, "x")
		if err != nil || row[0] != want || row[1] != "x" {
			t.Errorf("%v, %v, not %v", row, err, want)
		}
	}
}

// TestOneTransaction: of a batch that can't be written whole there is nothing,
// and those that were to be committed with it are there.
func TestOneTransaction(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"))
	c := plain(t, l.path)
	if err := c.script("CREATE TRIGGER last BEFORE INSERT ON journal WHEN NEW.event = 'refused' BEGIN SELECT RAISE(ABORT, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	var group []*request
	for _, events := range [][]string{{"kept"}, {"lost", "refused"}, {"kept"}} {
		b := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Messages: []store.Message{written("†s.a", events[0])}}
		for _, event := range events {
			b.Journal = append(b.Journal, store.Entry{Event: event})
		}
		group = append(group, newRequest(b))
	}
	l.writer.settle(group)
	if group[0].err != nil || group[1].err == nil || group[2].err != nil {
		t.Errorf("%v, %v, %v", group[0].err, group[1].err, group[2].err)
	}
	for table, want := range map[string]int64{"messages": 3, "writes": 3, "journal": 2} {
		if row, err := c.one(t.Context(), "SELECT count(*) FROM "+table); err != nil || integer(row[0]) != want {
			t.Errorf("%s: %v rows, not %d, %v", table, row, want, err)
		}
	}
	if row, err := c.one(t.Context(), "SELECT count(*) FROM history WHERE value = '\"lost\"'"); err != nil || integer(row[0]) != 0 {
		t.Errorf("%v, %v", row, err)
	}
}

// TestSynchronous holds that an append waits for the disk, unless it is told not
// to.
func TestSynchronous(t *testing.T) {
	for setting, want := range map[string]int64{"": 2, "full": 2, "normal": 1} {
		l, err := Open(filepath.Join(t.TempDir(), "log.db"), Options{Synchronous: setting})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for range 2 { // at first, and when much has been written
			row, err := l.writer.one(t.Context(), "PRAGMA synchronous")
			if err != nil || integer(row[0]) != want {
				t.Errorf("synchronous %q is %v, not %d: %v", setting, row, want, err)
			}
			entries := slices.Repeat([]store.Entry{{Event: "e"}}, manyRows)
			if _, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Journal: entries}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
