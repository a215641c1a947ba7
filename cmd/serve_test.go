package cmd

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/sqlite"
)

// saves is how often TestReload_UnderLoad saves a script.
var saves = flag.Int("saves", 40, "how often TestReload_UnderLoad saves a script")

// serving starts a server and gives its URL.
func serving(t testing.TB, dir string, args ...string) (p *running, url string) {
	t.Helper()
	p = start(t, dir, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	_, url, _ = strings.Cut(p.says("serving "), " at ")
	url, _, _ = strings.Cut(url, " ")
	return p, url
}

// post asks a server for something, and gives the status and the body. There is
// no status if the server has gone.
func post(url, body string) (int, map[string]any) {
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	var v map[string]any
	if err != nil || json.Unmarshal(text, &v) != nil {
		return 0, nil
	}
	return r.StatusCode, v
}

func versioned(n int) string {
	return fmt.Sprintf(`Activity.register("both", function() return { %d, require("m") } end)`, n)
}

var servedProject = map[string]string{
	"obelus.lua":          "return { drain = '2s' }",
	"activities/both.lua": versioned(0),
	"lib/m.lua":           "return 0",
	"plans/both.lua":      `return { calls = { { _tool = "both", _outputPath = "†state" } }, output = "†state" }`,
}

// TestServe_RunsAndDrains: a server tells what it does, loads what has been mended, and goes
// when it is told.
func TestServe_RunsAndDrains(t *testing.T) {
	dir := project(t, servedProject)
	p, url := serving(t, dir)
	run := func(want string) {
		t.Helper()
		if status, v := post(url+"/v1/runs", `{"plan":"plans/both.lua","wait":true}`); status != 200 || fmt.Sprint(v["output"]) != want {
			t.Errorf("%d %v, not %s", status, v, want)
		}
	}
	run("[0 0]")
	write(t, filepath.Join(dir, "activities/both.lua"), "\nthis is no Lua")
	p.says("activities/both.lua:2:")
	run("[0 0]")
	write(t, filepath.Join(dir, "activities/both.lua"), versioned(1))
	p.says("generation 2: changed activities/both.lua")
	run("[1 0]")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says("generation 3: nothing has changed")
	write(t, filepath.Join(dir, "obelus.lua"), "return { db = 'other.db' }")
	p.says("a change of db counts when the host is started again")
	run("[1 0]")
	if status := p.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d\n%s", status, p.said.String())
	}
}

// TestServe_Hangups holds that SIGHUP does a server no harm, from the moment at which
// it says that it serves to its end.
func TestServe_Hangups(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua": "return { drain = '30s', allow = { read = { '.' } } }",
		"activities/slow.lua": `Activity.register("slow", function()
			print("slow has begun")
			while not require("fs").exists("enough") do require("time").sleep(0.01) end
		end)`,
		"plans/slow.lua": `return { calls = { { _tool = "slow", _outputPath = "†state" } } }`,
	})
	p, url := serving(t, dir)
	hangUp := func() {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangUp()
	post(url+"/v1/runs", `{"plan":"plans/slow.lua","context":"c"}`)
	p.says("slow has begun")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.says("ending:")
	hangUp()
	write(t, filepath.Join(dir, "enough"), "")
	if !p.gone() || p.cmd.ProcessState.ExitCode() != exitDone {
		t.Errorf("it ends so: %v\n%s", p.cmd.ProcessState, p.said.String())
	}
	if calls := obelusOutput(t, exitDone, "-C", dir, "calls", "-c", "c", "--json"); !strings.Contains(calls, `"status":"done"`) {
		t.Errorf("the call that ran is not done:\n%s", calls)
	}
}

// TestServe_StderrClosed holds that a server goes on when no one reads what it says.
func TestServe_StderrClosed(t *testing.T) {
	dir := project(t, servedProject)
	c := program(t, dir, "serve", "--addr", "127.0.0.1:0")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	_, url, _ := strings.Cut(line, " at ")
	url, _, _ = strings.Cut(url, " ")
	for generation := 2; generation < 4; generation++ { // each is told
		write(t, filepath.Join(dir, "activities/both.lua"), versioned(generation))
		for now := 0; now != generation; {
			status, v := post(url+"/v1/runs", `{"plan":"plans/both.lua","wait":true}`)
			if status != 200 {
				t.Fatalf("%d %v", status, v)
			}
			now = int(v["output"].([]any)[0].(float64))
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestServe_JSONLog: the log is for programs, all of it.
func TestServe_JSONLog(t *testing.T) {
	p := start(t, project(t, servedProject), "serve", "--addr", "127.0.0.1:0", "--log", "json")
	var first struct{ URL string }
	if err := json.Unmarshal([]byte(p.says(`"msg":"serving"`)), &first); err != nil {
		t.Fatal(err)
	}
	post(first.URL+"/v1/runs", `{"plan":"plans/both.lua","wait":true}`)
	if status := p.ends(os.Interrupt); status != exitDone {
		t.Errorf("exit status %d", status)
	}
	for line := range strings.Lines(p.said.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// TestServe_Killed: what a client was told is accepted is there after a crash, and
// comes to its end.
func TestServe_Killed(t *testing.T) {
	dir := project(t, servedProject)
	p, url := serving(t, dir, "-q")
	var mu sync.Mutex
	var accepted []string
	var clients sync.WaitGroup
	enough := make(chan struct{})
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("c%d-%d", i, n)
				status, _ := post(url+"/v1/runs", fmt.Sprintf(`{"plan":"plans/both.lua","context":%q,"wait":%t}`, name, n%2 == 0))
				if status != 200 && status != 202 {
					return
				}
				mu.Lock()
				if accepted = append(accepted, name); len(accepted) == 200 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	p.ends(syscall.SIGKILL)
	clients.Wait()

	p, url = serving(t, dir, "-q", "--timeout", "1m")
	for _, name := range accepted {
		r, err := http.Get(url + "/v1/contexts/" + name + "/events")
		if err != nil {
			t.Fatal(err)
		}
		if !tells(r.Body, `"status":"done","tick":1,"output":[0,0]`) {
			t.Fatalf("%s was accepted, and does not come to its end", name)
		}
	}
	if status := p.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d\n%s", status, p.said.String())
	}
}

// TestServe_Stopped: what a server was at when it was told to end is told apart from what
// somebody has cancelled, and the next server goes on with it alone.
func TestServe_Stopped(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua": "return { drain = 0, allow = { read = { '.' } } }",
		"activities/slow.lua": `Activity.register("slow", function()
			while not require("fs").exists("go") do require("time").sleep(0.01) end
			return 1
		end)`,
		"plans/p.json": `{"calls": [{"_tool": "slow", "_outputPath": "†a"}], "output": "†a"}`,
	})
	p, url := serving(t, dir, "-q")
	for _, name := range []string{"kept", "given-up"} {
		if status, body := post(url+"/v1/runs", fmt.Sprintf(`{"plan":"plans/p.json","context":%q}`, name)); status != 202 {
			t.Fatal(status, body)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url+"/v1/runs/given-up", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := http.DefaultClient.Do(request); err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r, err)
	}
	p.ends(syscall.SIGTERM)
	shown := obelusOutput(t, exitDone, "-C", dir, "contexts")
	if !regexp.MustCompile(`(?m)^kept +interrupted `).MatchString(shown) || !regexp.MustCompile(`(?m)^given-up +cancelled `).MatchString(shown) {
		t.Error(shown)
	}
	save(t, filepath.Join(dir, "go"), "", false)
	p, url = serving(t, dir, "-q")
	r, err := http.Get(url + "/v1/contexts/kept/events")
	if err != nil {
		t.Fatal(err)
	}
	if !tells(r.Body, `"status":"done","tick":1,"output":1`) {
		t.Error("it has not gone on")
	}
	p.ends(syscall.SIGTERM)
}

// tells reads a stream of events until it tells something.
func tells(stream io.ReadCloser, what string) bool {
	defer stream.Close()
	timer := time.AfterFunc(30*time.Second, func() { stream.Close() })
	defer timer.Stop()
	var seen []byte
	b := make([]byte, 4096)
	for {
		n, err := stream.Read(b)
		if seen = append(seen, b[:n]...); bytes.Contains(seen, []byte(what)) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// TestReload_UnderLoad: while four clients run plans without pause, scripts are
// saved, in place and by rename, some of them broken. No call fails, none mixes
// two generations, and the journal tells the truth about each.
func TestReload_UnderLoad(t *testing.T) {
	dir := project(t, servedProject)
	p, url := serving(t, dir, "-q")
	load := newLoad(t, url, 4)
	var took []time.Duration
	versions := [2]int{}
	files := [2]string{"activities/both.lua", "lib/m.lua"}
	for i := range *saves {
		file := files[i%2]
		if i%5 == 4 {
			save(t, filepath.Join(dir, file), "this is no Lua", i%3 == 0)
			p.says(file + ":1:")
		}
		versions[i%2]++
		text := versioned(versions[0])
		if i%2 == 1 {
			text = fmt.Sprintf("return %d", versions[1])
		}
		saved := time.Now()
		save(t, filepath.Join(dir, file), text, i%3 == 1)
		load.until(versions)
		took = append(took, time.Since(saved))
	}
	runs := load.stop()
	if status := p.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d\n%s", status, p.said.String())
	}
	slices.Sort(took)
	t.Logf("%d runs; new code answers after %s (median), %s (latest)", len(runs), took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > time.Second { // of a machine under load; the figure is for the benchmark
		t.Errorf("new code answers after %s", took[len(took)/2])
	}
	checkVersions(t, filepath.Join(dir, ".obelus/log.db"), runs)
}

func save(t *testing.T, file, text string, rename bool) {
	t.Helper()
	if !rename {
		write(t, file, text)
		return
	}
	write(t, file+"~", text)
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
}

// load is clients that run a plan without pause.
type load struct {
	t       *testing.T
	clients sync.WaitGroup
	ended   atomic.Bool
	mu      sync.Mutex
	changed *sync.Cond
	newest  [2]int
	runs    map[string][2]int // by context, what its call answered
}

func newLoad(t *testing.T, url string, clients int) *load {
	l := &load{t: t, runs: map[string][2]int{}}
	l.changed = sync.NewCond(&l.mu)
	for range clients {
		l.clients.Go(func() {
			for !l.ended.Load() {
				l.took(post(url+"/v1/runs", `{"plan":"plans/both.lua","wait":true}`))
			}
		})
	}
	return l
}

// took notes what one run has come to.
func (l *load) took(status int, v map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changed.Broadcast()
	output, ok := v["output"].([]any)
	if status != 200 || !ok {
		l.t.Errorf("%d %v", status, v)
		l.ended.Store(true)
		return
	}
	answer := [2]int{int(output[0].(float64)), int(output[1].(float64))}
	l.runs[v["context"].(string)] = answer
	l.newest = [2]int{max(l.newest[0], answer[0]), max(l.newest[1], answer[1])}
}

// until waits until scripts of these versions have answered.
func (l *load) until(versions [2]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.newest != versions {
		if l.ended.Load() {
			l.t.FailNow()
		}
		l.changed.Wait()
	}
}

func (l *load) stop() map[string][2]int {
	l.ended.Store(true)
	l.clients.Wait()
	return l.runs
}

// checkVersions holds what calls answered to the scripts that the log says they
// ran.
func checkVersions(t *testing.T, path string, runs map[string][2]int) {
	t.Helper()
	log, err := sqlite.Open(path, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for name, answer := range runs {
		records, err := journal.In(log, name).Records(t.Context())
		if err != nil || len(records) != 1 || records[0].Status != journal.Done {
			t.Fatalf("%s: %v, %+v", name, err, records)
		}
		code, err := log.Code(t.Context(), records[0].Generation)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"activities/both.lua": versioned(answer[0]), "lib/m.lua": fmt.Sprintf("return %d", answer[1])}
		for _, s := range code.Scripts {
			checkScript(t, name, s, want, records[0])
		}
	}
}

func checkScript(t *testing.T, name string, s store.Script, want map[string]string, r journal.Record) {
	t.Helper()
	if text, ok := want[s.Path]; ok && string(s.Source) != text {
		t.Errorf("%s ran %s as %q, and answered as if it were %q", name, s.Path, s.Source, text)
	}
	sum := sha256.Sum256(s.Source)
	if hex.EncodeToString(sum[:]) != s.SHA256 || s.Path == r.Script && s.SHA256 != r.SHA256 {
		t.Errorf("%s: the hash of %s is wrong", name, s.Path)
	}
}

// TestServe_PrintIsMarked: a script can't print a line that looks like one of the server's.
func TestServe_PrintIsMarked(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       "return {}",
		"activities/p.lua": `Activity.register("p", function() print("x\ntime=now level=ERROR msg=forged\r{\"level\":\"ERROR\"}") return 1 end)`,
		"plans/p.lua":      `return { calls = { { _tool = "p", _outputPath = "†state" } } }`,
	})
	p, url := serving(t, dir)
	post(url+"/v1/runs", `{"plan":"plans/p.lua","context":"c","wait":true}`)
	for _, want := range []string{"x", "time=now level=ERROR msg=forged", `{"level":"ERROR"}`} {
		if got := p.says(want); got != "| c/1.1 "+want {
			t.Errorf("got %q, want %q behind a mark and its call", got, want)
		}
	}
	p.ends(syscall.SIGTERM)

	p = start(t, dir, "serve", "--addr", "127.0.0.1:0", "--log", "json")
	var serving struct{ URL string }
	if err := json.Unmarshal([]byte(p.says("serving")), &serving); err != nil {
		t.Fatal(err)
	}
	post(serving.URL+"/v1/runs", `{"plan":"plans/p.lua","wait":true}`)
	for _, want := range []string{"x", "time=now level=ERROR msg=forged", `{"level":"ERROR"}`} {
		var record struct{ Level, Msg, Text, Call, Tool string }
		line := p.says(`"msg":"print"`)
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level != "INFO" || record.Text != want || record.Call != "1.1" || record.Tool != "p" {
			t.Errorf("got %s, want %q: %v", line, want, err)
		}
	}
	p.ends(syscall.SIGTERM)
}

// TestServe_LogLevel: the setting log says which lines of scripts are shown, a running server takes
// over a change of it, and the flag wins.
func TestServe_LogLevel(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       `return { log = "warn" }`,
		"activities/p.lua": `Activity.register("p", function() print("printed") require("log").warn("warned") return 1 end)`,
		"plans/p.lua":      `return { calls = { { _tool = "p", _outputPath = "†state" } } }`,
	})
	p, url := serving(t, dir)
	run := func() { post(url+"/v1/runs", `{"plan":"plans/p.lua","wait":true}`) }
	run()
	p.says("msg=warned")
	write(t, filepath.Join(dir, "obelus.lua"), `return { log = "info" }`)
	p.says("changed obelus.lua")
	run()
	p.says("1.1 printed")
	p.says("msg=warned")
	if n := strings.Count(p.said.String(), "1.1 printed"); n != 1 {
		t.Errorf("what was printed is shown %d times", n)
	}
	p.ends(syscall.SIGTERM)

	p, url = serving(t, dir, "--log-level", "warn")
	run()
	p.says("msg=warned")
	p.ends(syscall.SIGTERM)
	if strings.Contains(p.said.String(), "printed") {
		t.Error(p.said.String())
	}
}
