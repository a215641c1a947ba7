package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"obelus/store"
)

// holdForParent holds the lease of the context "c", says so, and goes on until
// its standard input ends.
func holdForParent(path string) error {
	l, err := Open(path, Options{})
	if err != nil {
		return err
	}
	batch := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Lease: &store.Lease{For: time.Hour}}
	a, err := l.Append(context.Background(), batch)
	if err != nil {
		return err
	}
	fmt.Println(a.Epoch)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return l.Close()
}

// holding starts a process that holds the lease of "c".
func holding(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "OBELUS_TEST_HOLD="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "1" {
		t.Fatalf("it said %q", lines.Text())
	}
	return cmd
}

func useLease(t *testing.T, l store.Log, lease store.Lease) (int64, error) {
	t.Helper()
	a, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Lease: &lease})
	return a.Epoch, err
}

// TestLease_OfAnotherProcess: another process holds a lease until it dies.
func TestLease_OfAnotherProcess(t *testing.T) {
	path := newPath(t)
	cmd := holding(t, path)
	l := open(t, path, Options{})
	reader := open(t, path, Options{ReadOnly: true})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("process %d on host %s", cmd.Process.Pid, host)
	var held *store.HeldError
	_, err = useLease(t, l, store.Lease{For: time.Hour})
	if !errors.As(err, &held) || held.Holder != want || !strings.Contains(err.Error(), "context c is being run by "+want) {
		t.Errorf("%v, not %s", err, want)
	}
	if _, err := useLease(t, l, store.Lease{Epoch: 7, For: time.Hour}); !errors.As(err, &held) || held.Holder != want {
		t.Error(err)
	}
	for _, l := range []*Log{l, reader} {
		if holder, err := l.Holder(t.Context(), "c"); holder != want || err != nil {
			t.Errorf("%q, %v", holder, err)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, l := range []*Log{l, reader} {
		if holder, err := l.Holder(t.Context(), "c"); holder != "" || err != nil {
			t.Errorf("of the dead: %q, %v", holder, err)
		}
	}
	if epoch, err := useLease(t, l, store.Lease{For: time.Hour}); epoch != 2 || err != nil {
		t.Errorf("epoch %d, %v", epoch, err)
	}
	_, err = useLease(t, l, store.Lease{Epoch: 1, For: time.Hour})
	if !errors.As(err, &held) || held.Holder != "this process" {
		t.Error(err)
	}
	// A second log of the same process is no other holder.
	if _, err = useLease(t, open(t, path, Options{}), store.Lease{For: time.Hour}); !errors.As(err, &held) || held.Holder != "this process" {
		t.Error(err)
	}
}

// TestDead: a process counts as dead only if it is known to be.
func TestDead(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skip(err)
	}
	parent := int64(os.Getppid())
	alive := process{host: self().host, boot: self().boot, namespace: self().namespace, pid: parent, started: started(parent)}
	with := func(change func(*process)) process {
		p := alive
		change(&p)
		return p
	}
	gone := with(func(p *process) { p.pid, p.started = int64(ended.Process.Pid), "" })
	for name, test := range map[string]struct {
		process
		want bool
	}{
		"self":                 {self(), false},
		"alive":                {alive, false},
		"of no known start":    {with(func(p *process) { p.started = "" }), false},
		"of no known boot":     {with(func(p *process) { p.boot = "" }), false},
		"on another host":      {with(func(p *process) { *p = gone; p.host += "x"; p.boot = "x" }), false},
		"gone":                 {gone, true},
		"in another container": {with(func(p *process) { *p = gone; p.namespace += "x" }), false},
		"of another boot":      {with(func(p *process) { *p = gone; p.boot += "x" }), false},
		"its pid is another":   {with(func(p *process) { p.started += "1" }), alive.started != ""},
	} {
		if test.dead() != test.want {
			t.Errorf("%s: %+v", name, test.process)
		}
	}
}

// TestProcess_DeadUnattended: one that was killed holds nothing, also while its parent
// has not looked after it yet.
func TestProcess_DeadUnattended(t *testing.T) {
	if self().started == "" {
		t.Skip("the system does not tell")
	}
	path := newPath(t)
	cmd := holding(t, path)
	l := open(t, path, Options{})
	_ = cmd.Process.Kill()
	holder := "?"
	for deadline := time.Now().Add(10 * time.Second); holder != "" && time.Now().Before(deadline); {
		var err error
		if holder, err = l.Holder(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
	}
	if holder != "" {
		t.Errorf("%s is dead, and has the lease still", holder)
	}
	_ = cmd.Wait()
}

// TestLease_Writes: a lease is written no more often than need be.
func TestLease_Writes(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l)
	until := func() int64 {
		t.Helper()
		row, err := plain(t, l.path).one(t.Context(), "SELECT until FROM leases WHERE context = 'c' AND epoch = 1")
		if err != nil {
			t.Fatal(err)
		}
		return integer(row[0])
	}
	use := func(epoch int64, duration time.Duration) {
		t.Helper()
		if _, err := useLease(t, l, store.Lease{Epoch: epoch, For: duration}); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(time.Hour).UnixMilli()
	use(0, time.Hour)
	first := until()
	if first < before || first > time.Now().Add(time.Hour).UnixMilli() {
		t.Errorf("until %d, not %d", first, before)
	}
	use(1, time.Hour)
	use(1, 90*time.Minute)
	if until() != first {
		t.Error("it was written while more than half was left")
	}
	use(1, 3*time.Hour)
	if until() < first+time.Hour.Milliseconds() {
		t.Error("it was not renewed while less than half was left")
	}
	use(1, 0)
	if until() != 0 {
		t.Error("it was not given back")
	}
}

// TestLease_InGroup: appends that one transaction takes see each other's
// leases.
func TestLease_InGroup(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l)
	var group []*request
	for _, b := range []struct {
		store.Lease
		expect int64
	}{
		{store.Lease{For: time.Hour}, 9}, // a conflict, so it takes nothing
		{store.Lease{For: time.Hour}, 0},
		{store.Lease{For: time.Hour}, store.AnySeq},
		{store.Lease{Epoch: 1}, 1},
		{store.Lease{Epoch: 1, For: time.Hour}, store.AnySeq},
		{store.Lease{For: time.Hour}, 2},
	} {
		group = append(group, newRequest(store.Batch{
			Context: "c", ExpectSeq: b.expect, Lease: &b.Lease, Messages: []store.Message{written("†s", "x")},
		}))
	}
	l.writer.settle(group)
	var got []string
	for _, r := range group {
		got = append(got, fmt.Sprintf("%T %d %d", r.err, r.result.Epoch, r.result.Seq))
	}
	want := "*store.ConflictError 0 0, <nil> 1 1, *store.HeldError 0 0, <nil> 1 2, *store.HeldError 0 0, <nil> 2 3"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// older makes a file of an older version, and runs SQL in it.
func older(t *testing.T, path string, version int, scripts ...string) *conn {
	t.Helper()
	list, err := ownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	c := plain(t, path)
	err = c.migrate(Options{BusyTimeout: time.Second}, list[:version])
	for _, sql := range scripts {
		err = errors.Join(err, c.script(sql))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newest is the version of the schema that this obelus writes.
var newest = func() int {
	list, err := ownMigrations()
	if err != nil {
		panic(err)
	}
	return len(list)
}()

const insertOldContext = "INSERT INTO contexts (context, created, updated) VALUES ('c', '2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.678900Z')"

// TestMigrate_Leases: a log of version 1 is kept, and gets its leases.
func TestMigrate_Leases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	old := older(t, path, 1, insertOldContext,
		"INSERT INTO messages (context, seq, date, type, data) VALUES ('c', 1, '2026-01-02T03:04:05.678Z', 'text', '\"x\"')")
	if err := old.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{ReadOnly: true}); !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), fmt.Sprintf("older obelus (schema version 1, not %d)", newest)) {
		t.Errorf("for reading only: %v", err)
	}
	l := open(t, path, Options{})
	if n := seqs(t, l, "c"); n != 1 {
		t.Errorf("%d messages", n)
	}
	if epoch, err := useLease(t, l, store.Lease{For: time.Hour}); epoch != 1 || err != nil {
		t.Errorf("epoch %d, %v", epoch, err)
	}
}

// TestMigrate_Waits: an older obelus that runs a context is not left with a file that
// it does not know.
func TestMigrate_Waits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	list, err := ownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	const version = 2
	old := older(t, path, version, insertOldContext)
	parent, own := int64(os.Getppid()), self()
	hold := func(until time.Time) error {
		return old.exec(replaceLease, "c", int64(1), own.host, own.boot, own.namespace, parent, started(parent), until.UnixMilli())
	}
	if err := hold(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("by which process %d on host %s runs context c in it", parent, own.host)
	if l, err := Open(path, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), want) {
		l.Close()
		t.Errorf("%v, not %q", err, want)
	}
	if now, err := old.version(list); now != version || err != nil {
		t.Errorf("the file is of version %d: %v", now, err)
	}
	if err := hold(time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{})
	if now, err := old.version(list); now != len(list) || err != nil {
		t.Errorf("the file is of version %d: %v", now, err)
	}
}

// TestVacuum_Waits: nobody who runs a context is kept from appending.
func TestVacuum_Waits(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"))
	epoch, err := useLease(t, l, store.Lease{For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var held *store.HeldError
	if err := l.Vacuum(t.Context()); !errors.As(err, &held) || held.Context != "c" {
		t.Errorf("while it runs: %v", err)
	}
	if _, err := useLease(t, l, store.Lease{Epoch: epoch}); err != nil {
		t.Fatal(err)
	}
	if err := l.Vacuum(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestClose_ReleasesLeases: what a log held when it was closed, whoever opens it anew can take at
// once, also in the same process; what another log holds stays held.
func TestClose_ReleasesLeases(t *testing.T) {
	path := newPath(t)
	take := func(l *Log, name string, lease store.Lease) error {
		_, err := l.Append(t.Context(), store.Batch{Context: name, Create: &store.Origin{}, ExpectSeq: store.AnySeq, Lease: &lease})
		return err
	}
	first, other := open(t, path, Options{}), open(t, path, Options{})
	for l, name := range map[*Log]string{first: "a", other: "b"} {
		if err := take(l, name, store.Lease{For: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if err := take(first, "c", store.Lease{For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := take(first, "c", store.Lease{Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	if err := take(other, "c", store.Lease{For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, Options{})
	if err := take(again, "a", store.Lease{For: time.Hour}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"b", "c"} {
		if err := take(again, name, store.Lease{For: time.Hour}); !errors.As(err, new(*store.HeldError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
