package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/internal/projectfs"
	"obelus/store"
	"obelus/store/memory"
)

// folder is a project on disk that a test changes while a host watches it.
type folder struct {
	t       *testing.T
	dir     string
	host    *Host
	reloads chan Reload
	end     func() // of the watch
}

// watched opens a project of these files, with objects that scripts see, and
// watches it.
func watched(t *testing.T, objects map[string]any, files map[string]string) *folder {
	t.Helper()
	f := &folder{t: t, dir: t.TempDir(), reloads: make(chan Reload, 100)}
	for name, text := range files {
		f.write(name, text)
	}
	var err error
	if f.host, err = Open(Config{FS: os.DirFS(f.dir), Dir: f.dir, Objects: objects}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.host.Close)
	f.end = f.watch("plans/p.lua")
	return f
}

// watch watches the project, with a further file, until it is ended.
func (f *folder) watch(file string) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- f.host.Watch(ctx, func(r Reload) { f.reloads <- r }, file) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(end)
	return end
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

func (f *folder) write(name, text string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.path(name)), 0o777), os.WriteFile(f.path(name), []byte(text), 0o666)); err != nil {
		f.t.Fatal(err)
	}
}

// replace writes a file as careful editors do: beside, and then over it.
func (f *folder) replace(name, text string) {
	f.t.Helper()
	f.write(name+"~", text)
	f.rename(name+"~", name)
}

// save writes a file outside of the folder.
func (f *folder) save(file, text string) {
	f.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		f.t.Fatal(err)
	}
}

// link makes a link in the folder, where there are any.
func (f *folder) link(to, name string) {
	f.t.Helper()
	if err := os.Symlink(to, f.path(name)); err != nil {
		f.t.Skip(err)
	}
}

func (f *folder) rename(from, to string) {
	f.t.Helper()
	if err := os.Rename(f.path(from), f.path(to)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) remove(name string) {
	f.t.Helper()
	if err := os.RemoveAll(f.path(name)); err != nil {
		f.t.Fatal(err)
	}
}

// next waits for the next attempt and describes it.
func (f *folder) next() string {
	f.t.Helper()
	select {
	case r := <-f.reloads:
		text := fmt.Sprintf("%d +%v ~%v -%v", r.Generation.Number, r.Added, r.Changed, r.Removed)
		if len(r.Pending) > 0 {
			text += fmt.Sprintf(" pending %v", r.Pending)
		}
		if r.Err != nil {
			text += " " + r.Err.Error()
		}
		return text
	case <-time.After(20 * time.Second):
		f.t.Fatal("nothing was loaded")
		return ""
	}
}

func (f *folder) expect(want string) {
	f.t.Helper()
	if got := f.next(); got != want {
		f.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func (f *folder) answer() string {
	f.t.Helper()
	text, err := runA(f.host.Generation(), plan.Invocation{})
	if err != nil {
		return err.Error()
	}
	return text
}

func (f *folder) answers(want string) {
	f.t.Helper()
	if got := f.answer(); got != want {
		f.t.Errorf("it answers %s, not %s", got, want)
	}
}

// answering is an activity "a" that gives a value and what lib/m.lua does.
func answering(value string) string {
	return `Activity.register("a", function() return { ` + value + `, require("m") } end)`
}

func TestWatch(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1", "plans/p.lua": "return {}"})
	f.answers("[1,1]")

	f.write("activities/a.lua", answering("2"))
	f.expect("2 +[] ~[activities/a.lua] -[]")
	f.answers("[2,1]")
	f.replace("activities/a.lua", answering("3"))
	f.expect("3 +[] ~[activities/a.lua] -[]")
	f.answers("[3,1]")
	f.write("lib/m.lua", "return 2")
	f.expect("4 +[] ~[lib/m.lua] -[]")
	f.answers("[3,2]")

	f.write("activities/deep/er/b.lua", `Activity.register("b", function() end)`)
	f.expect("5 +[activities/deep/er/b.lua] ~[] -[]")
	f.write("activities/deep/er/b.lua", `Activity.register("c", function() end)`)
	f.expect("6 +[] ~[activities/deep/er/b.lua] -[]")
	if _, ok := f.host.Generation().Registry().Activities["b"]; ok {
		t.Error("b is still there")
	}
	f.rename("activities/deep", "activities/v1.2")
	f.expect("7 +[activities/v1.2/er/b.lua] ~[] -[activities/deep/er/b.lua]")
	f.remove("activities/v1.2")
	f.expect("8 +[] ~[] -[activities/v1.2/er/b.lua]")

	f.write("obelus.lua", "return { ticks = 3, db = 'elsewhere.db' }")
	f.expect("9 +[obelus.lua] ~[] -[] pending [db]")
	if ticks := f.host.Generation().Settings().Ticks; ticks != 3 {
		t.Errorf("%d ticks", ticks)
	}
	f.write("plans/p.lua", "return {{}}") // for it was asked
	f.expect("10 +[] ~[plans/p.lua] -[] pending [db]")
}

// TestWatch_LinkedFolders: a folder that is linked to is one of the project's, while it is
// loaded and while it is watched; one that leads back to itself has an end.
func TestWatch_LinkedFolders(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1", "plans/p.lua": "return {}"})
	outside := t.TempDir()
	shared := filepath.Join(outside, "b.lua")
	f.save(shared, `Activity.register("b", function() end)`)
	f.link(outside, "activities/shared")
	f.expect("2 +[activities/shared/b.lua] ~[] -[]")
	if _, ok := f.host.Generation().Registry().Activities["b"]; !ok {
		t.Error("b is not there")
	}
	f.save(shared, `Activity.register("c", function() end)`)
	f.expect("3 +[] ~[activities/shared/b.lua] -[]")
	f.link(".", "lib/again")
	f.expect("4 +[lib/again/m.lua] ~[] -[]")
	f.remove("activities/shared")
	f.expect("5 +[] ~[] -[activities/shared/b.lua]")
}

// TestWatch_LinkedFiles: what a link leads to counts, wherever it is, and so does where
// it leads, as in a folder of which whole versions are put in place at once.
func TestWatch_LinkedFiles(t *testing.T) {
	f := watched(t, nil, map[string]string{
		"activities/a.lua": answering("1"), "lib/m.lua": "return 1", "store/one.lua": `Activity.register("b", function() end)`,
		"activities/cm/..v1/c.lua": `Activity.register("c", function() end)`, "activities/cm/..v2/c.lua": `Activity.register("d", function() end)`,
	})
	outside := filepath.Join(t.TempDir(), "two.lua")
	f.link("../store/one.lua", "activities/one.lua")
	f.expect("2 +[activities/one.lua] ~[] -[]")
	f.write("store/one.lua", `Activity.register("bb", function() end)`)
	f.expect("3 +[] ~[activities/one.lua] -[]")
	f.replace("store/one.lua", `Activity.register("bbb", function() end)`)
	f.expect("4 +[] ~[activities/one.lua] -[]")
	f.save(outside, `return 2`)
	f.link(outside, "lib/two.lua")
	f.expect("5 +[lib/two.lua] ~[] -[]")
	f.save(outside, `return 3`)
	f.expect("6 +[] ~[lib/two.lua] -[]")

	f.write("storeЯ/three.lua", `Activity.register("f", function() end)`)
	f.link("../storeЯ/three.lua", "activities/three.lua")
	f.expect("7 +[activities/three.lua] ~[] -[]")
	f.write("storeЯ/three.lua", `Activity.register("g", function() end)`)
	f.expect("8 +[] ~[activities/three.lua] -[]")
	f.link("../obelus.lua/x/y.lua", "activities/nowhere.lua")
	if got := f.next(); !strings.Contains(got, "activities/nowhere.lua") {
		t.Errorf("a link that leads nowhere: %s", got)
	}
	f.remove("activities/nowhere.lua")
	f.expect("9 +[] ~[] -[]")
	f.write("storeЯ/three.lua", `Activity.register("h", function() end)`)
	f.expect("10 +[] ~[activities/three.lua] -[]")

	f.link("..v1", "activities/cm/..data")
	f.link("..data/c.lua", "activities/cm/c.lua")
	f.expect("11 +[activities/cm/c.lua] ~[] -[]")
	f.link("..v2", "activities/cm/..next")
	f.rename("activities/cm/..next", "activities/cm/..data")
	f.expect("12 +[] ~[activities/cm/c.lua] -[]")
	f.write("activities/cm/..v2/c.lua", `Activity.register("e", function() end)`)
	f.expect("13 +[] ~[activities/cm/c.lua] -[]")
}

// TestWatch_Broken: what does not load changes nothing, until it is mended.
func TestWatch_Broken(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1"})
	f.write("activities/a.lua", "\nthis is no Lua")
	if got := f.next(); !strings.HasPrefix(got, "1 +[] ~[activities/a.lua] -[] activities/a.lua:2:") {
		t.Error(got)
	}
	f.answers("[1,1]")
	f.write("lib/m.lua", "return 2") // as long as the other is broken, the new one does not count
	if got := f.next(); !strings.HasPrefix(got, "1 +[] ~[activities/a.lua lib/m.lua] -[] activities/a.lua:2:") {
		t.Error(got)
	}
	f.answers("[1,1]")
	if err := f.host.LastReload().Err; err == nil {
		t.Error("the error is forgotten")
	}
	f.write("activities/a.lua", answering("3"))
	f.expect("2 +[] ~[activities/a.lua lib/m.lua] -[]")
	f.answers("[3,2]")
	if err := f.host.LastReload().Err; err != nil {
		t.Error(err)
	}

	f.write("obelus.lua", "return { tics = 3 }")
	if got := f.next(); got != `2 +[obelus.lua] ~[] -[] obelus.lua:1: unknown setting "tics" (did you mean "ticks"?)` {
		t.Error(got)
	}
	f.remove("obelus.lua") // all is again as in the generation that stayed
	f.expect("3 +[] ~[] -[]")

	f.write("lib/m.lua", "garbage")
	f.expect("3 +[] ~[lib/m.lua] -[] lib/m.lua:1: the file ends too early") // and no word of who requires it
}

// TestWatch_ForeignFiles: what lay in lib and did not compile when the host was
// started is nobody's business until it is required.
func TestWatch_ForeignFiles(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1", "lib/other.lua": "local x <const> = 1"})
	f.write("lib/m.lua", "return 2")
	f.expect("2 +[] ~[lib/m.lua] -[]")
}

// TestWatch_FurtherFolders: files of a further folder count, those that come later and below it too,
// and none of them is loaded as an activity.
func TestWatch_FurtherFolders(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1"})
	f.end()
	f.end = f.watch("tests")
	f.write("lib/m.lua", "return 2")
	f.expect("2 +[] ~[lib/m.lua] -[]") // it watches
	f.write("tests/a_test.lua", "no Lua")
	f.expect("3 +[tests/a_test.lua] ~[] -[]")
	f.write("tests/cassettes/c.json", "{}")
	f.expect("4 +[tests/cassettes/c.json] ~[] -[]")
	f.write("tests/cassettes/notes.txt", "x")
	f.write("tests/a_test.lua", "no Lua either")
	f.expect("5 +[] ~[tests/a_test.lua] -[]")
	f.remove("tests")
	f.expect("6 +[] ~[] -[tests/a_test.lua tests/cassettes/c.json]")
	f.answers("[1,2]")
}

// TestWatch_ClosedFolder: a folder that can't be read is an error until it can be.
func TestWatch_ClosedFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read everything")
	}
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "activities/in/b.lua": ""})
	if err := os.Chmod(f.path("activities/in"), 0); err != nil {
		t.Fatal(err)
	}
	f.expect("1 +[activities/in] ~[] -[activities/in/b.lua] activities/in: it can't be read: permission denied")
	if err := os.Chmod(f.path("activities/in"), 0o777); err != nil {
		t.Fatal(err)
	}
	f.expect("2 +[] ~[] -[]")
	f.write("activities/in/b.lua", "return 1")
	f.expect("3 +[] ~[activities/in/b.lua] -[]")
}

// TestWatch_SameContent: what is written, not that something is, decides.
func TestWatch_SameContent(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1"})
	f.write("activities/a.lua", answering("1"))
	f.replace("lib/m.lua", "return 1")
	f.write("activities/.a.lua.swp", "swap")
	f.write("activities/.#a.lua", "lock")
	f.write("activities/a.lua~", "this is no Lua")
	f.write("activities/#a.lua#", "this is no Lua")
	f.write("activities/4913", "")
	f.remove("activities/4913")
	f.write("lib/notes.txt", "this is no Lua")
	f.write("plans/other.lua", "this is no Lua")
	f.write("lib/m.lua", "return 2")
	f.expect("2 +[] ~[lib/m.lua] -[]")
}

// TestWatch_Emptied: an editor empties a file before it writes it, and an empty
// file is a good script.
func TestWatch_Emptied(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1"})
	slow, err := os.Create(f.path("activities/a.lua"))
	if err != nil {
		t.Fatal(err)
	}
	// The second period passes before the file is filled, or after.
	time.AfterFunc(projectfs.SettleTime*3/2, func() {
		_, err := slow.WriteString(answering("2"))
		if err := errors.Join(err, slow.Close()); err != nil {
			t.Error(err)
		}
	})
	f.expect("2 +[] ~[activities/a.lua] -[]")
	f.answers("[2,1]")
	f.write("activities/a.lua", "") // this time it stays so
	f.expect("3 +[] ~[activities/a.lua] -[]")
	if n := len(f.host.Generation().Registry().Activities); n != 0 {
		t.Errorf("%d activities", n)
	}
}

// TestWatch_EndlessChanges: changes that do not end are not waited for.
func TestWatch_EndlessChanges(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1"})
	ticker := time.NewTicker(projectfs.SettleTime / 5)
	defer ticker.Stop()
	limit := time.After(20 * time.Second)
	for i := 0; ; i++ {
		select {
		case r := <-f.reloads:
			if r.Err != nil || !slices.Equal(r.Changed, []string{"lib/m.lua"}) {
				t.Errorf("%+v", r)
			}
			return
		case <-ticker.C:
			f.replace("lib/m.lua", fmt.Sprintf("return %d", i))
		case <-limit:
			t.Fatal("nothing is loaded as long as there are changes")
		}
	}
}

// written is a project in which somebody writes lib/m.lua: it is empty for one look at the
// files.
type written struct {
	fs.FS
	before, after fs.FS
	opened        int // lib/m.lua, since it has been empty
}

func (w *written) Open(name string) (fs.File, error) {
	if name != "lib/m.lua" || w.before == nil {
		return w.FS.Open(name)
	}
	if w.opened++; w.opened <= 3 { // its size, its text and its size again
		return w.before.Open(name)
	}
	return w.after.Open(name)
}

// TestReload_Emptied: also where changes have gone on for long, and where somebody asks for a
// reload, a file is not loaded that has just been emptied.
func TestReload_Emptied(t *testing.T) {
	files := map[string]string{"obelus.lua": "return {}", "activities/a.lua": answering("1"), "lib/m.lua": "return 0"}
	open := func() (*written, *Host) {
		w := &written{FS: project(files)}
		h, err := Open(Config{FS: w})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		w.before = fstest.MapFS{"lib/m.lua": {ModTime: time.Unix(1, 0)}}
		w.after = fstest.MapFS{"lib/m.lua": {Data: []byte("return 5"), ModTime: time.Unix(2, 0)}}
		return w, h
	}
	source := func(h *Host) string { return string(h.good["lib/m.lua"].Bytes) }
	_, h := open()
	if r := h.Reload(); r.Err != nil || source(h) != "return 5" {
		t.Errorf("%+v: %s", r, source(h))
	}
	_, h = open()
	if _, result := h.reloadChanged(false); result != unsettled {
		t.Error(result)
	}
	if r, result := h.reloadChanged(false); result != attempted || r.Err != nil || source(h) != "return 5" {
		t.Errorf("%d %+v: %s", result, r, source(h))
	}
	_, h = open()
	if _, result := h.reloadChanged(true); result != unchanged || !h.postponed() || source(h) != "return 0" { // what else has changed does not wait
		t.Error(result, h.postponed(), source(h))
	}
	if r, result := h.reloadChanged(true); result != attempted || h.postponed() || source(h) != "return 5" {
		t.Errorf("%d %+v: %s", result, r, source(h))
	}
	w, h := open()
	w.after = w.before // this time it stays so
	if r := h.Reload(); r.Err != nil || source(h) != "" || !slices.Equal(r.Changed, []string{"lib/m.lua"}) {
		t.Errorf("%+v: %s", r, source(h))
	}
}

// ever is a project of which a file is emptied at every look.
type ever struct {
	fs.FS
	looks int
}

func (e *ever) Open(name string) (fs.File, error) {
	if name != "lib/m.lua" {
		return e.FS.Open(name)
	}
	e.looks++
	return fstest.MapFS{name: {ModTime: time.Unix(int64(e.looks/3), 0)}}.Open(name)
}

// TestNextReload holds that each attempt to load the scripts is announced, one that fails too.
func TestNextReload(t *testing.T) {
	files := fstest.MapFS{"activities/a.lua": {Data: []byte("")}}
	h, err := Open(Config{FS: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	for _, text := range []string{"return {", "", ""} {
		next := h.NextReload()
		select {
		case <-next:
			t.Fatal("it is announced before it happens")
		default:
		}
		files["activities/a.lua"] = &fstest.MapFile{Data: []byte(text)}
		if _ = h.Reload(); (h.LastReload().Err != nil) != (text != "") {
			t.Errorf("%q: %v", text, h.LastReload().Err)
		}
		<-next
	}
}

// TestReload_Ends: who asks for a reload does not wait for what never ends, and gets the rest.
func TestReload_Ends(t *testing.T) {
	files := map[string]string{"obelus.lua": "return {}", "activities/a.lua": answering("1"), "lib/m.lua": "return 0"}
	w := &written{FS: project(files)}
	h, err := Open(Config{FS: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	files["activities/a.lua"] = answering("2")
	w.FS = &ever{FS: project(files)}
	if r := h.Reload(); r.Err != nil || !slices.Equal(r.Changed, []string{"activities/a.lua"}) {
		t.Errorf("%+v", r)
	}
}

// pause lets a test stop a call in its midst.
type pause struct{ reached, resume chan struct{} }

func newPause() *pause { return &pause{make(chan struct{}), make(chan struct{})} }

func (p *pause) Here() { p.reached <- struct{}{}; <-p.resume }

// TestReload_PinnedCalls: a call ends with the generation that it began with, whatever it
// requires and whenever.
func TestReload_PinnedCalls(t *testing.T) {
	p := newPause()
	f := watched(t, map[string]any{"pause": p}, map[string]string{
		"activities/a.lua": `Activity.register("a", function() pause:Here(); return { 1, require("m") } end)`, "lib/m.lua": "return 1",
	})
	answer := make(chan string)
	go func() { answer <- f.answer() }()
	<-p.reached
	f.write("lib/m.lua", "return 2")
	f.expect("2 +[] ~[lib/m.lua] -[]")
	p.resume <- struct{}{}
	if got := <-answer; got != "[1,1]" {
		t.Errorf("it answers %s", got)
	}
}

// TestReload_PinnedInWorkers: so it is in processes of their own, and the call after it has the new
// scripts, all of them.
func TestReload_PinnedInWorkers(t *testing.T) {
	f := watched(t, nil, map[string]string{
		"obelus.lua": `return { isolate = "process", timeout = 30, allow = { read = { "." }, write = { "." } } }`,
		"activities/a.lua": `Activity.register("a", function()
			local fs, time = require("fs"), require("time")
			fs.write("begun", "")
			while not fs.exists("go") do time.sleep(0.005) end
			return { 1, require("m") }
		end)`, "lib/m.lua": "return 1",
	})
	answer := make(chan string)
	go func() { answer <- f.answer() }()
	for begun := false; !begun; runtime.Gosched() {
		select {
		case got := <-answer:
			t.Fatalf("it answers %s at once", got)
		default:
			_, err := os.Stat(f.path("begun"))
			begun = err == nil
		}
	}
	f.write("lib/m.lua", "return 2")
	f.expect("2 +[] ~[lib/m.lua] -[]")
	f.write("go", "")
	if got := <-answer; got != "[1,1]" {
		t.Errorf("it answers %s", got)
	}
	if got := f.answer(); got != "[1,2]" {
		t.Errorf("the next one answers %s", got)
	}
}

// TestReload_NewestForNextCall: of one plan's calls, each begins with the scripts of
// its own time, unless its tool is another by then. The journal tells which,
// and the log keeps what they held.
func TestReload_NewestForNextCall(t *testing.T) {
	p := newPause()
	script := func(value, schema string) string {
		return `
			Tool.register("b", { properties = { n = ` + schema + ` } })
			Activity.register("a", function() pause:Here(); return ` + value + ` end)
			Activity.register("b", function(call) return ` + value + ` end)`
	}
	f := watched(t, map[string]any{"pause": p}, map[string]string{"activities/a.lua": script("1", "{}")})
	log := memory.New()
	run := func(change string) []any {
		request := &plan.Request{Output: store.Some([]any{"†s.a", "†s.b"})}
		for _, call := range []map[string]any{{"_tool": "a", "_outputPath": "†s.a"}, {"_tool": "b", "n": "†s.a", "_outputPath": "†s.b"}} {
			request.Calls = append(request.Calls, plan.Source{Call: call})
		}
		outcomes := make(chan *journal.Outcome)
		go func() {
			outcome, err := (&engine.Runner{Log: log, Registry: f.host.Generation().Registry()}).Run(context.Background(), engine.Start{Context: change[:9], Request: request})
			if err != nil {
				t.Error(err)
			}
			outcomes <- outcome
		}()
		<-p.reached
		f.write("activities/a.lua", change)
		f.next()
		p.resume <- struct{}{}
		return (<-outcomes).Output.([]any)
	}
	if got := string(store.EncodeJSON(run("--1" + "------" + script("2", "{}")))); got != "[1,2]" {
		t.Errorf("%s", got)
	}
	if got := string(store.EncodeJSON(run("--2" + "------" + script("3", `{ type = "number" }`)))); got != "[2,2]" {
		t.Errorf("with another tool: %s", got)
	}
	records, err := journal.In(log, "--1------").Records(t.Context())
	if err != nil || len(records) != 2 || records[0].Generation == records[1].Generation {
		t.Fatalf("%v, %+v", err, records)
	}
	for _, r := range records {
		code, err := log.Code(t.Context(), r.Generation)
		if err != nil || len(code.Scripts) != 1 || code.Scripts[0].SHA256 != r.SHA256 || code.Scripts[0].Path != "activities/a.lua" {
			t.Errorf("%v: %+v", err, code)
		}
	}
}

// TestReload_KeepsNothing: what was loaded before is let go.
func TestReload_KeepsNothing(t *testing.T) {
	dir := t.TempDir()
	f := &folder{t: t, dir: dir}
	for i := range 10 {
		f.write(fmt.Sprintf("activities/a%d.lua", i), fmt.Sprintf(`Activity.register("a%d", function() return string.rep("x", 100) end)`, i))
	}
	var err error
	if f.host, err = Open(Config{FS: os.DirFS(dir), Dir: dir}); err != nil {
		t.Fatal(err)
	}
	heap := func(reloads int) uint64 {
		for i := range reloads {
			f.write("activities/a.lua", answering(fmt.Sprint(i)))
			f.write("lib/m.lua", "return 1")
			if r := f.host.Reload(); r.Err != nil {
				t.Fatal(r.Err)
			}
			f.answer()
		}
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	early := heap(50)
	if late := heap(950); late > early+early/10 {
		t.Errorf("the heap has %d bytes after 50 reloads, %d after 1,000", early, late)
	}
}

// TestWatch_Twice has watches side by side and one after the other.
func TestWatch_Twice(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "lib/m.lua": "return 1", "plans/p.lua": "1", "plans/q.lua": "1"})
	f.write("activities/a.lua", answering("2"))
	f.expect("2 +[] ~[activities/a.lua] -[]")
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			err := f.host.Watch(t.Context(), func(Reload) {}, "plans/q.lua")
			if err == nil || !strings.Contains(err.Error(), "watched already") {
				t.Errorf("a second watch gives %v", err)
			}
		})
	}
	group.Wait()
	f.write("plans/p.lua", "22")
	f.expect("3 +[] ~[plans/p.lua] -[]")

	f.end()
	f.watch("plans/q.lua")
	f.write("activities/a.lua", answering("3"))
	f.expect("4 +[] ~[activities/a.lua] -[]")
}

// TestWatch_FolderRemoved: a further file counts again once its folder, or one above,
// is back.
func TestWatch_FolderRemoved(t *testing.T) {
	f := watched(t, nil, map[string]string{"activities/a.lua": answering("1"), "plans/p.lua": "1"})
	f.end()
	f.write("plans/of/mine/p.lua", "1")
	f.watch("plans/of/mine/p.lua")
	f.write("activities/a.lua", answering("2"))
	f.expect("2 +[] ~[activities/a.lua] -[]")
	f.rename("plans", "elsewhere")
	f.expect("3 +[] ~[] -[plans/of/mine/p.lua]")
	f.rename("elsewhere", "plans")
	f.expect("4 +[plans/of/mine/p.lua] ~[] -[]")
	f.write("plans/of/mine/p.lua", "2")
	f.expect("5 +[] ~[plans/of/mine/p.lua] -[]")
	f.remove("plans")
	f.expect("6 +[] ~[] -[plans/of/mine/p.lua]")
	f.write("plans/of/mine/p.lua", "3")
	f.expect("7 +[plans/of/mine/p.lua] ~[] -[]")
	f.write("plans/of/mine/p.lua", "4")
	f.expect("8 +[] ~[plans/of/mine/p.lua] -[]")
}

// torn is a project in which somebody is in the midst of writing lib/m.lua at the first look.
type torn struct {
	fs.FS
	half, whole fs.FS
	opened      int
}

func (w *torn) Open(name string) (fs.File, error) {
	if name != "lib/m.lua" || w.half == nil {
		return w.FS.Open(name)
	}
	if w.opened++; w.opened <= 2 { // its size and its text
		return w.half.Open(name)
	}
	return w.whole.Open(name)
}

// TestReload_HalfWritten: a file is not loaded that changes while it is read, also if half of it
// would do.
func TestReload_HalfWritten(t *testing.T) {
	files := map[string]string{"obelus.lua": "return {}", "activities/a.lua": answering("1"), "lib/m.lua": "return 0"}
	for _, reload := range []bool{false, true} {
		w := &torn{FS: project(files)}
		h, err := Open(Config{FS: w})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		w.half = fstest.MapFS{"lib/m.lua": {Data: []byte("return 1"), ModTime: time.Unix(1, 0)}}
		w.whole = fstest.MapFS{"lib/m.lua": {Data: []byte("return 12"), ModTime: time.Unix(2, 0)}}
		if !reload {
			if _, result := h.reloadChanged(false); result != unsettled {
				t.Error(result)
			}
			h.reloadChanged(false)
		} else if r := h.Reload(); r.Err != nil {
			t.Error(r.Err)
		}
		if got := string(h.good["lib/m.lua"].Bytes); got != "return 12" {
			t.Errorf("it loaded %q", got)
		}
	}
}
