package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"obelus/store"
)

// refused opens a file that must not be opened, and sees that nothing has
// happened to it.
func refused(t *testing.T, path string, want error, words ...string) {
	t.Helper()
	before, beforeErr := os.ReadFile(path)
	for _, o := range []Options{{}, {ReadOnly: true}} {
		l, err := Open(path, o)
		if err == nil {
			l.Close()
			t.Fatal("it was opened")
		}
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
		for _, word := range append(words, filepath.Base(path)) {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
	}
	if beforeErr == nil {
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file was changed (%v)", err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the file: %v, %v", entries, err)
	}
}

func TestNotOurs(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "some.file")
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, content := range map[string]string{
		"text": "Dear diary,\n", "one byte": "S", "magic alone": magic, "magic and nothing": magic + strings.Repeat("\x00", 4080),
	} {
		t.Run(name, func(t *testing.T) { refused(t, write(content), ErrNotOurs, "not a log of obelus", "left as it") })
	}
	t.Run("another database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other.db")
		c := plain(t, path)
		if err := errors.Join(c.script("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)"), c.close()); err != nil {
			t.Fatal(err)
		}
		refused(t, path, ErrNotOurs, "another database")
	})
	t.Run("folder", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "folder")
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		refused(t, path, ErrNotOurs)
	})
}

func TestNewer(t *testing.T) {
	path := newPath(t)
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	c := plain(t, path)
	if err := errors.Join(c.script("PRAGMA user_version = 99"), c.close()); err != nil {
		t.Fatal(err)
	}
	refused(t, path, ErrNewer, "99", fmt.Sprint("version ", newest))
}

// TestMigrate_Meanwhile: who has a log open that a newer obelus brings up to
// date writes no more to it.
func TestMigrate_Meanwhile(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s", "x"))
	other := plain(t, l.path)
	for version, want := range map[int]error{newest + 1: ErrNewer, newest - 1: ErrOlder} {
		if err := other.script(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			err := appendOne(t.Context(), l)
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "start this one anew") {
				t.Errorf("version %d: %v", version, err)
			}
		}
	}
	if n := seqs(t, l, "c"); n != 1 {
		t.Errorf("%d messages", n)
	}
	if err := other.script(fmt.Sprint("PRAGMA user_version = ", newest)); err != nil {
		t.Fatal(err)
	}
	add(t, l, written("†s", "x"))
	l.writer.schema = 99 // nobody looks while nobody else writes
	add(t, l, written("†s", "x"))
}

// TestEmptyFile: a file of no length is a log yet to be made.
func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(path, Options{ReadOnly: true}); !errors.Is(err, ErrNotOurs) {
		l.Close()
		t.Fatal(err)
	}
	l := open(t, path, Options{})
	add(t, l, written("†s", "x"))
	mode, err := l.writer.one(t.Context(), "PRAGMA journal_mode")
	if err != nil || text(mode[0]) != "wal" {
		t.Errorf("%v, %v", mode, err)
	}
}

// TestOpen_MakesWAL: the first append does not wait until there is a
// write-ahead log, and who opens a log that has one leaves it as it is.
func TestOpen_MakesWAL(t *testing.T) {
	path := newPath(t)
	var sizes []int64
	for range 2 {
		open(t, path, Options{})
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	if sizes[0] == 0 || sizes[0] != sizes[1] {
		t.Errorf("the write-ahead log has %d bytes, and then %d", sizes[0], sizes[1])
	}
}

func TestHeader(t *testing.T) {
	path := newPath(t)
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if id, version := binary.BigEndian.Uint32(header[68:]), binary.BigEndian.Uint32(header[60:]); id != applicationID || version != uint32(newest) {
		t.Errorf("id %x, version %d", id, version)
	}
	if header[18] != 2 {
		t.Error("not in WAL mode")
	}
}

// TestOpen_MemoryIsNoFile: who wants a log in memory gets no file of a strange name.
func TestOpen_MemoryIsNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Open(":memory:", Options{}); !errors.Is(err, ErrNotOurs) {
		t.Error(err)
	}
	if l, err := Open("./:memory:", Options{}); err != nil || l.Close() != nil {
		t.Error(err)
	}
	if files, err := filepath.Glob("*"); err != nil || len(files) != 1 {
		t.Error(files, err)
	}
}

// TestOpen_PathTooLong holds that it is not the permissions that are blamed.
func TestOpen_PathTooLong(t *testing.T) {
	path := t.TempDir()
	for len(path) <= longestPath {
		path = filepath.Join(path, strings.Repeat("x", 100))
	}
	_, err := Open(path, Options{})
	if err == nil || !strings.Contains(err.Error(), "bytes, and SQLite takes 504") {
		t.Error(err)
	}
}

func TestDamaged(t *testing.T) {
	// The schema is near the beginning, the messages are near the end.
	t.Run("schema", func(t *testing.T) {
		l, err := Open(damagedLog(t, 1), Options{})
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "log.db is damaged") {
			t.Error(err)
		}
	})
	t.Run("messages", func(t *testing.T) {
		l := open(t, damagedLog(t, 50), Options{})
		var err error
		for _, err = range l.Messages(t.Context(), store.Filter{Context: "c"}) {
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "log.db is damaged") {
			t.Error(err)
		}
	})
}

// damagedLog writes rubbish over all pages of a log but the first few.
func damagedLog(t *testing.T, pages int) string {
	path := newPath(t)
	l := open(t, path, Options{})
	for range 100 {
		add(t, l, written("†s", strings.Repeat("x", 1000)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := pages * 4096; i < len(content); i++ {
		content[i] = byte(i * 7)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadOnly(t *testing.T) {
	path := newPath(t)
	if l, err := Open(path, Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		l.Close()
		t.Fatal(err)
	}
	l := open(t, path, Options{})
	add(t, l, written("†s", "x"))
	beside := open(t, path, Options{ReadOnly: true})
	add(t, l, written("†s", "y"))
	if n := seqs(t, beside, "c"); n != 2 {
		t.Errorf("%d messages beside the writer", n)
	}
	if err := appendOne(t.Context(), beside); !errors.Is(err, ErrReadOnly) {
		t.Errorf("appending: %v", err)
	}
	if err := errors.Join(beside.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	alone := open(t, path, Options{ReadOnly: true})
	if n := seqs(t, alone, "c"); n != 2 {
		t.Errorf("%d messages alone", n)
	}
}

// TestReadOnly_Folder: where SQLite can't make its files, here because their
// names are taken, a closed log can be read all the same.
func TestReadOnly_Folder(t *testing.T) {
	path := newPath(t)
	l := open(t, path, Options{})
	add(t, l, written("†s", "x"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/absent/folder/shm", path+"-shm"); err != nil {
		t.Fatal(err)
	}
	l = open(t, path, Options{ReadOnly: true})
	if n := seqs(t, l, "c"); n != 1 || l.readers.frozen == nil {
		t.Errorf("%d messages, frozen: %v", n, l.readers.frozen)
	}
	if err := os.WriteFile(path+"-wal", []byte("something"), 0o666); err != nil {
		t.Fatal(err)
	}
	unreadable := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "copy log.db and log.db-wal") {
			t.Errorf("with a tail: %v", err)
		}
	}
	_, err := Open(path, Options{ReadOnly: true})
	unreadable(err)
	for _, err = range l.Messages(t.Context(), store.Filter{Context: "c"}) {
	}
	unreadable(err)
}

// TestImmutable_FollowsChanges: who reads a log whose folder it can't write sees what its
// owner appends, while that has it open and after.
func TestImmutable_FollowsChanges(t *testing.T) {
	path := newPath(t)
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	// The name is taken for whoever comes before the owner.
	taken := func() {
		if err := os.Symlink("/absent/folder/shm", path+"-shm"); err != nil {
			t.Fatal(err)
		}
	}
	taken()
	reader := open(t, path, Options{ReadOnly: true})
	sees := func(want int64, frozen bool) {
		t.Helper()
		n, err := answerTo(t.Context(), reader, "SELECT count(*) FROM messages")
		if err != nil || n[1] != fmt.Sprintf("[%d]", want) {
			t.Errorf("%v messages for SQL, not %d: %v", n, want, err)
		}
		if n := seqs(t, reader, "c"); n != want || (reader.readers.frozen != nil) != frozen {
			t.Errorf("%d messages, not %d; frozen: %v", n, want, reader.readers.frozen)
		}
	}
	sees(0, true)
	for _, early := range []int64{1, 2} { // an owner that has ended before the reader looks
		if err := os.Remove(path + "-shm"); err != nil {
			t.Fatal(err)
		}
		owner := open(t, path, Options{})
		add(t, owner, written("†s", "x"))
		if err := owner.Close(); err != nil {
			t.Fatal(err)
		}
		taken()
		sees(early, true)
	}
	// A read that has begun goes on with the file as it was.
	for m, err := range reader.Messages(t.Context(), store.Filter{Context: "c"}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Seq > 1 {
			continue
		}
		if err := os.Remove(path + "-shm"); err != nil {
			t.Fatal(err)
		}
		owner := open(t, path, Options{})
		add(t, owner, written("†s", "y"))
		sees(3, false)
		add(t, owner, written("†s", "z"))
		sees(4, false)
	}
	sees(4, false)
	if n := len(reader.readers.idle); n != 1 {
		t.Errorf("%d connections are kept", n)
	}
}

// TestImmutable_WrittenMeanwhile: a read without locks that may have seen half of a
// change says so, and one that has given nothing yet begins again.
func TestImmutable_WrittenMeanwhile(t *testing.T) {
	path := newPath(t)
	l := open(t, path, Options{})
	add(t, l, written("†s", "x"), written("†s", "y"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/absent/folder/shm", path+"-shm"); err != nil {
		t.Fatal(err)
	}
	l = open(t, path, Options{ReadOnly: true})
	day := time.Now()
	change := func() {
		day = day.Add(-24 * time.Hour)
		if err := os.Chtimes(path, day, day); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	given := 0
	for _, err = range l.Touching(t.Context(), store.Query{Context: "c", Path: store.MustParsePath("†s")}) {
		if err == nil {
			given++
		}
		change()
	}
	if given != 1 || !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "log.db was written by another process while it was read") {
		t.Errorf("%d operations, %v", given, err)
	}
	given = 0
	for m, err := range l.Messages(t.Context(), store.Filter{Context: "c"}) { // they are read at once
		if given++; err != nil || m.Seq != int64(given) {
			t.Errorf("message %d: %v, %v", given, m, err)
		}
		change()
	}
	if given != 2 {
		t.Errorf("%d messages", given)
	}
	tries := 0
	for n, err := range pages(l, t.Context(), 1, func(_ *conn, p *page[int]) error {
		p.add(tries, nil)
		if tries++; tries == 2 {
			change()
			return errors.New("half a change")
		}
		return nil
	}, func(int) bool { return true }) {
		if n != given-2 || err != nil { // the first try of the second page gives nothing
			t.Errorf("page %d is of try %d: %v", given-2, n, err)
		}
		given += 2
	}
	if given != 6 || tries != 3 {
		t.Errorf("%d pages of %d tries", given/2-1, tries)
	}
	tries = 0
	for n, err := range sequence(l, t.Context(), func(_ *conn, yield func(int) bool) error {
		if tries++; tries < 3 {
			change()
			return errors.New("half a change")
		}
		yield(tries)
		return nil
	}) {
		if n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := l.Query(t.Context(), "SELECT 1", func([]string) error { change(); return nil }, func([]any) error { return nil }); !errors.Is(err, ErrLocked) {
		t.Errorf("a query: %v", err)
	}
}

// TestUnwritable: a file whose permissions admit no writing says so when it is
// written.
func TestUnwritable(t *testing.T) {
	l := open(t, newPath(t), Options{pragmas: []string{"PRAGMA query_only = 1"}})
	_, err := l.Append(t.Context(), store.Batch{Context: "c", Create: &store.Origin{}})
	if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "log.db can't be written") {
		t.Error(err)
	}
}

func TestLocked(t *testing.T) {
	l := open(t, newPath(t), Options{BusyTimeout: 30 * time.Millisecond})
	add(t, l)
	other := plain(t, l.path)
	if err := other.script("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := appendOne(t.Context(), l); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "log.db is locked by another process") {
		t.Errorf("%v", err)
	}
	if n := seqs(t, l, "c"); n != 0 {
		t.Errorf("%d messages", n)
	}
	if err := other.script("COMMIT"); err != nil {
		t.Fatal(err)
	}
	add(t, l, written("†s", "x"))
}

func TestDiskFull(t *testing.T) {
	l := open(t, newPath(t), Options{pragmas: []string{"PRAGMA max_page_count = 60"}})
	var err error
	made := int64(0)
	for err == nil {
		_, err = l.Append(t.Context(), store.Batch{
			Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{},
			Messages: []store.Message{written("†s", "x"), written("†s", strings.Repeat("x", 10_000))},
		})
		if err == nil {
			made += 2
		}
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "log.db") {
		t.Fatal(err)
	}
	if n := seqs(t, l, "c"); n != made || made == 0 {
		t.Errorf("%d messages of %d", n, made)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	integrity(t, l.path)
	l = open(t, l.path, Options{})
	add(t, l, written("†s", "there is room again"))
}

// TestGroupCommit_OneTooBig: what can't be written does not take the rest of its
// group with it.
func TestGroupCommit_OneTooBig(t *testing.T) {
	l := open(t, newPath(t), Options{pragmas: []string{"PRAGMA max_page_count = 60"}})
	add(t, l)
	group := make([]*request, 5)
	for i := range group {
		size := 10
		if i == 2 {
			size = 1_000_000
		}
		group[i] = newRequest(store.Batch{
			Context: "c", ExpectSeq: store.AnySeq, Messages: []store.Message{written("†s", strings.Repeat("x", size))},
		})
	}
	group[3].batch.ExpectSeq = 77
	l.writer.settle(group) // its goroutine waits for requests meanwhile
	for i, r := range group {
		<-r.done
		var conflict *store.ConflictError
		switch {
		case i == 2:
			if !errors.Is(explain("log.db", r.err), ErrFull) {
				t.Errorf("the big one: %v", r.err)
			}
		case i == 3:
			if !errors.As(r.err, &conflict) {
				t.Errorf("the one that expects too much: %v", r.err)
			}
		case r.err != nil:
			t.Errorf("%d: %v", i, r.err)
		}
	}
	if n := seqs(t, l, "c"); n != 3 {
		t.Errorf("%d messages", n)
	}
}

// TestMigrations_Stay: what has made files is not changed any more, or there would be two kinds of
// one version; what was wrong with it is mended by another migration. Only the newest may not have.
func TestMigrations_Stay(t *testing.T) {
	list, err := ownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, m := range list[:len(list)-1] {
		fmt.Fprintf(&all, "%s %x\n", m.name, sha256.Sum256([]byte(m.sql)))
	}
	const want = `001_log.sql 8695945dda35c017da894911787772d8c8f7140cf1a06a4126b4a27014a68c03
002_leases.sql d6d069019c1ff0ed6f0a91c4b64c7a18fae441e8ea7fb8d096432d159c7fff59
003_scripts.sql a18357adeb119f6ef53b8871f8f95db95ee61dd4097f52b13bbfc33ae4a84fe4
004_forks.sql 54bd4e99e29e480f713ebbf8d980f348d3f801966ae5e872267873ca7d8b052b
005_values.sql 168e2421e99bc74f698bce6125689f6a23740194133d29c36a22e19d044f47c6
006_calls.sql 6ad90d862eadfdd22a17141283c4874e1c3592738e2be6ebbcd5afbce58e2ace
007_guards.sql 26f533d3c89eb5beaea48de6c8a6ce3e711697b9089aa827ff9ddf158e48ff7d
008_values.sql 4a0ebed23addf9fdbc996de5bd368c72938d4c3fc0bfb684bf7dc5f0609b5ae8
009_calls.sql f2680b86e4187cf8eea896ea561715044cea2e9effa179818c4b43fa2073ed71
010_messages.sql d9e90f5ea8640c1935c287f4e81ac8b94a6a0fd375689d845de773f616551c1f
011_rowids.sql 7155b0f8f85c623cdd83e88987bdc1389a3b9c4745fb95141b67cc2c952d9bbb
012_unlisted.sql 785d86662b026d9fcf1953f82606ed2148010872fad0ec6e5e7dfaf14e77419f
013_decisions.sql e13ff8f6bc11f92a1e9a2570651a5b79c1352c047624030279e19ff8069f87fd
014_spending.sql ca04c9e2891f85a2ccecadde162d70e5aca50c0a01531ea9f018f18383579579
015_standings.sql a1342cbffa909e89c8a4822d628e158aa2366b49397835c826d8cc86d8f8b401
016_logs.sql 9048652d0798e75abb042e42728649f8a271b17a5e9167edb6bbe0764a359034
017_waiting.sql a7d968ae3e181cb7f32b7da52ec0ec67ac7b0c2b4aa3841fc6e6abf0a6d0682c
018_exchanges.sql 804fc1fc3208f226729912a721f48628bee4c95db7b1fbaeb08ce8ba131d0089
019_cancelled.sql 02601eabd48d996c2dfab848f2f0cb4dfb78668cbb11fdb5d2d868ad5a6ce566
020_cut.sql 54807063fc36a6287a3061178e20640271a839f5d3c93a56845c2eae526f938f
021_cancelled_calls.sql 2ff2ab172922f043f30fd098614f2646667b5869a62d7aba2f072688cccbf8b2
022_background.sql e03e732534bde8012390e3ceb46c41e6824e37c8b3ebac5b76e192ba2acae474
`
	if all.String() != want {
		t.Errorf("they are now\n%s", all.String())
	}
}

func TestMigrations(t *testing.T) {
	folder := fstest.MapFS{
		"001_one.sql": {Data: []byte("CREATE TABLE one (x);\n-- the end\n")},
		"002_two.sql": {Data: []byte("CREATE TABLE two (x); INSERT INTO two VALUES (2);")},
	}
	list, err := migrations(folder)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{BusyTimeout: time.Second, Synchronous: "full"}
	c := plain(t, filepath.Join(t.TempDir(), "log.db"))
	check := func(version int, tables string) {
		t.Helper()
		row, err := c.one(t.Context(), "SELECT (SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema ORDER BY name)), user_version, application_id FROM pragma_user_version, pragma_application_id")
		if got := fmt.Sprint(row); err != nil || got != fmt.Sprintf("[%s %d %d]", tables, version, applicationID) {
			t.Fatalf("%s, %v", got, err)
		}
	}
	for _, upto := range []int{1, 1, 2, 2} {
		if err := c.migrate(o, list[:upto]); err != nil {
			t.Fatal(err)
		}
		check(upto, []string{"", "one", "one,two"}[upto])
	}
	if err := c.migrate(o, list[:1]); !errors.Is(err, ErrNewer) {
		t.Errorf("an older obelus: %v", err)
	}
	bad := append(list, migration{name: "003_bad.sql", sql: "CREATE TABLE three (x); CREATE TABLE one (x);"})
	if err := c.migrate(o, bad); err == nil || !strings.Contains(err.Error(), "003_bad.sql") {
		t.Errorf("a bad migration: %v", err)
	}
	check(2, "one,two")
	folder["004_four.sql"] = &fstest.MapFile{}
	if _, err := migrations(folder); err == nil {
		t.Error("a gap in the numbers was taken")
	}
}

// TestCreate_FoldersAreFlushed: a power failure takes nothing of a log that was made, and none of
// the folders that were made for it.
func TestCreate_FoldersAreFlushed(t *testing.T) {
	above := t.TempDir()
	var flushed []string
	was := flush
	t.Cleanup(func() { flush = was })
	flush = func(f *os.File) error {
		name, err := filepath.Rel(above, f.Name())
		name, _, _ = strings.Cut(name, ".new-") // it gets its name when it is whole
		flushed = append(flushed, name)
		return errors.Join(err, was(f))
	}
	for path, want := range map[string]string{"a/b/c/log.db": "a/b/c/log.db a/b/c a/b a .", "log.db": "log.db . ..", "made/log.db": "made/log.db made ."} {
		flushed = nil
		if path == "made/log.db" {
			if err := os.Mkdir(filepath.Join(above, "made"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		open(t, filepath.Join(above, path), Options{})
		if got := strings.Join(flushed, " "); got != want {
			t.Errorf("%s: %s, not %s", path, got, want)
		}
		flushed = nil
		open(t, filepath.Join(above, path), Options{})
		if flushed != nil {
			t.Errorf("%s that is there: %s", path, flushed)
		}
	}
}

// TestCreate_FolderCantBeFlushed: where the disk fails at it, whoever makes a log or a
// copy is told, and the copy is none; where folders can't be flushed at all, it
// is left.
func TestCreate_FolderCantBeFlushed(t *testing.T) {
	l := open(t, newPath(t), Options{})
	was := flush
	t.Cleanup(func() { flush = was })
	for cause, want := range map[error]error{syscall.EIO: ErrIO, syscall.ENOSPC: ErrFull, syscall.EINVAL: nil} {
		flush = func(f *os.File) error {
			if info, err := f.Stat(); err != nil || !info.IsDir() {
				return errors.Join(err, was(f))
			}
			return &fs.PathError{Op: "sync", Path: f.Name(), Err: cause}
		}
		made, err := Open(newPath(t), Options{})
		if err == nil {
			err = made.Close()
		}
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v: made: %v", cause, err)
		}
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := l.Backup(t.Context(), copied); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v: copied: %v", cause, err)
		}
		if _, err := os.Lstat(copied); (err == nil) != (want == nil) {
			t.Errorf("%v: the copy: %v", cause, err)
		}
	}
}

// TestWAL_Longer: a log that is written a lot gets a longer write-ahead
// log, so that it is carried over less often; and has one from the beginning where
// appends do not wait for it.
func TestWAL_Longer(t *testing.T) {
	for synchronous, want := range map[string][2]int64{"full": {128, 1000}, "normal": {1000, 1000}} {
		if first, last := writeAheadLogs(t, synchronous); first != want[0] || last != want[1] {
			t.Errorf("%s: it had %d pages at first, and then %d", synchronous, first, last)
		}
	}
}

// TestWAL_CutAfterLongRead: a read that goes on for long makes the write-ahead log longer than it
// may be; the appends after it make it short again, while the log stays open.
func TestWAL_CutAfterLongRead(t *testing.T) {
	l := open(t, newPath(t), Options{})
	size := func() int64 {
		info, err := os.Stat(l.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	big := written("†s", strings.Repeat("x", 4<<20))
	add(t, l, big)
	reader := plain(t, l.path)
	if err := reader.script("BEGIN; SELECT count(*) FROM messages"); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		add(t, l, big)
	}
	if err := reader.rollback(); err != nil {
		t.Fatal(err)
	}
	if size() <= longestWAL {
		t.Fatalf("the write-ahead log has %d bytes: no read was in the way", size())
	}
	add(t, l, written("†s", "x")) // after it the write-ahead log can be begun anew
	add(t, l, written("†s", "x"))
	if size() > longestWAL {
		t.Errorf("the write-ahead log has %d bytes, and may have %d", size(), longestWAL)
	}
	if n := seqs(t, l, "c"); n != 9 {
		t.Errorf("%d messages", n)
	}
}

// writeAheadLogs tells how many pages the write-ahead log has at first, and after
// many rows.
func writeAheadLogs(t *testing.T, synchronous string) (first, last int64) {
	l, err := Open(filepath.Join(t.TempDir(), "log.db"), Options{Synchronous: synchronous})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pages := func() int64 {
		row, err := l.writer.one(t.Context(), "PRAGMA wal_autocheckpoint")
		if err != nil {
			t.Fatal(err)
		}
		return integer(row[0])
	}
	first = pages()
	for range manyRows / 20 {
		if _, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Journal: slices.Repeat([]store.Entry{{Event: "e"}}, 20)}); err != nil {
			t.Fatal(err)
		}
	}
	return first, pages()
}
