package cmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/sqlite"
)

// TestServe_KilledAtEveryCommit kills a server just before and just after each of
// its commits, while it runs two contexts, and starts it again: both come to
// what they come to if nothing happens. In short it takes some commits.
func TestServe_KilledAtEveryCommit(t *testing.T) {
	whole := newSite(t)
	if !whole.serve(whole.server("")) {
		t.Fatal("the runs come to no end")
	}
	want := whole.account()
	atEveryCommit(t, 40, func(n int64, after bool) bool {
		s := newSite(t)
		killed := !s.serve(s.server(point(n, after, filepath.Join(s.dir, "commits"))))
		if killed {
			s.look()
			s.check(ended{status: -1})
			if !s.serve(s.server("")) {
				t.Fatalf("killed at commit %d, after it: %t: the runs come to no end", n, after)
			}
		}
		if s.same(want); t.Failed() {
			t.Fatalf("killed at commit %d, after it: %t", n, after)
		}
		return killed
	})
}

// server starts one, that may die at a commit.
func (s *site) server(env string) (p *running, url string) {
	s.t.Helper()
	if env != "" {
		name, value, _ := strings.Cut(env, "=")
		os.Setenv(name, value) // the process inherits it
		defer os.Unsetenv(name)
	}
	return serving(s.t, s.dir, "-q")
}

// serve has two contexts brought to their end, unless the server goes. What it
// accepted must be there when it is started again.
func (s *site) serve(p *running, url string) (whole bool) {
	s.t.Helper()
	var clients sync.WaitGroup
	ended := [2]bool{}
	for i, name := range []string{"c", "d"} {
		clients.Go(func() {
			r, err := http.Get(url + "/v1/contexts/" + name)
			if err != nil || r.StatusCode == http.StatusOK {
				ended[i] = follow(url+"/v1/contexts/", name) // it has begun before the server went
				return
			}
			if s.accepted[i].Load() {
				s.t.Errorf("context %s was accepted, and is gone: %s", name, r.Status)
			}
			status, _ := post(url+"/v1/runs", fmt.Sprintf(`{"plan":"plans/all.lua","context":%q,"input":{"n":2},"approve":"pay"}`, name))
			s.accepted[i].Store(status == http.StatusAccepted)
			if status != 0 {
				ended[i] = follow(url+"/v1/contexts/", name)
			}
		})
	}
	clients.Wait()
	if whole = ended[0] && ended[1]; !whole {
		if !p.gone() {
			s.t.Fatalf("the server is there, and the runs come to no end:\n%s", p.said.String())
		}
		return false
	}
	switch status := p.ends(syscall.SIGTERM); {
	case status == exitDone:
		return true
	case p.wasKilled(): // its commit came as it ended
		return false
	default:
		s.t.Fatalf("exit status %d\n%s", status, p.said.String())
		return false
	}
}

// follow brings a context to its end: whenever its run waits, it approves what is
// held and retries what is in doubt. It tells whether the server has been there
// until then.
func follow(contexts, name string) bool {
	r, err := http.Get(contexts + name + "/events")
	if err != nil {
		return false
	}
	defer r.Body.Close()
	timer := time.AfterFunc(30*time.Second, func() { r.Body.Close() })
	defer timer.Stop()
	run := false
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			run = lines.Text() == "event: run" || run && lines.Text() != ""
		case run && strings.Contains(data, `"status":"failed"`): // as the plan ends
			return true
		case run && strings.Contains(data, `"status":"waiting"`):
			decide(contexts, name)
		}
	}
	return false
}

// decide lets a run that waits go on. What it says may be refused, where another
// answer has come before.
func decide(contexts, name string) {
	var calls []journal.Record
	list(contexts+name+"/approvals", &calls)
	for _, r := range calls {
		post(contexts+r.Context+"/calls/"+r.Call+"/approve", "{}")
	}
	calls = nil
	list(contexts+name+"/calls", &calls)
	for _, r := range calls {
		for busy := r.Status == journal.InDoubt; busy; { // the run that waits may drain still
			_, v := post(contexts+name+"/resume", fmt.Sprintf(`{"retry":[%q]}`, r.Call))
			refusal, _ := v["error"].(map[string]any)
			busy = refusal["code"] == "busy"
		}
	}
}

// list gets what a server lists; nothing if it has gone.
func list(url string, all *[]journal.Record) {
	r, err := http.Get(url)
	if err != nil {
		return
	}
	defer r.Body.Close()
	_ = json.NewDecoder(r.Body).Decode(all)
}

// TestReload_KilledWhileSaved kills a server under load while its scripts are saved, at
// random, and starts it again: what was accepted comes to its end, with the
// values of the scripts that the log says it ran.
func TestReload_KilledWhileSaved(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	rounds := 1 + (*crashes-fewCrashes)/10
	accepted := 0
	for range rounds {
		accepted += killedWhileSaved(t, time.Duration(random.Int64N(int64(400*time.Millisecond))))
	}
	t.Logf("%d killed, %d runs accepted", rounds, accepted)
}

func killedWhileSaved(t *testing.T, at time.Duration) int {
	s := &site{t: t, dir: project(t, servedProject)}
	p, url := serving(t, s.dir, "-q")
	var mu sync.Mutex
	var accepted []string
	var clients sync.WaitGroup
	gone := make(chan struct{})
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("c%d-%d", i, n)
				status, v := post(url+"/v1/runs", fmt.Sprintf(`{"plan":"plans/both.lua","context":%q,"wait":%t}`, name, n%2 == 0))
				if status == 0 {
					return
				}
				if status != 200 && status != 202 {
					t.Errorf("%d %v", status, v)
					return
				}
				mu.Lock()
				accepted = append(accepted, name)
				mu.Unlock()
			}
		})
	}
	noted := 0 // messages that were acknowledged
	clients.Go(func() {
		for {
			status, v := post(url+"/v1/contexts/notes/messages", fmt.Sprintf(`{"type":"state","last":%d}`, noted+1))
			if status == 0 {
				return
			}
			if status != 200 {
				t.Errorf("%d %v", status, v)
				return
			}
			noted++
		}
	})
	clients.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-gone:
				return
			case <-time.After(5 * time.Millisecond):
				saveVersion(t, s.dir, n)
			}
		}
	})
	time.AfterFunc(at, func() { _ = p.cmd.Process.Kill() })
	for range p.lines { // until it is gone
	}
	close(gone)
	clients.Wait()
	s.look()
	s.check(ended{status: -1})
	s.leave()

	again, url := serving(t, s.dir, "-q")
	for _, name := range accepted {
		r, err := http.Get(url + "/v1/contexts/" + name + "/events")
		if err != nil {
			t.Fatal(err)
		}
		if !tells(r.Body, `"status":"done","tick":1,"output":[`) {
			again.ends(syscall.SIGTERM)
			t.Fatalf("%s was accepted, and does not come to its end\n%s", name, again.said.String())
		}
	}
	if status := again.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d\n%s", status, again.said.String())
	}
	s.checkAnswers(accepted)
	if noted > 0 {
		last, err := strconv.Atoi(strings.TrimSpace(obelusOutput(t, exitDone, "-C", s.dir, "get", "state.last", "-c", "notes")))
		if err != nil || last < noted || last > noted+1 { // the one after that may be there
			t.Errorf("%d messages were acknowledged, and the last that is there is %d, %v", noted, last, err)
		}
	}
	return len(accepted)
}

// saveVersion saves one of the two scripts, now in place and now by rename.
func saveVersion(t *testing.T, dir string, n int) {
	file, text := "activities/both.lua", versioned(n)
	if n%2 == 1 {
		file, text = "lib/m.lua", fmt.Sprintf("return %d", n)
	}
	save(t, filepath.Join(dir, file), text, n%3 == 0)
}

// checkAnswers holds what runs came to to the scripts that they ran.
func (s *site) checkAnswers(names []string) {
	s.t.Helper()
	path := filepath.Join(s.dir, ".obelus/log.db")
	log, err := sqlite.Open(path, sqlite.Options{ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	answers := map[string][2]int{}
	for _, name := range names {
		run, err := journal.In(log, name).LastRun(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		var answer [2]int
		if _, err := fmt.Sscanf(fmt.Sprint(run.Output), "[%d %d]", &answer[0], &answer[1]); err != nil {
			s.t.Fatalf("%s came to %v", name, run.Output)
		}
		answers[name] = answer
	}
	checkVersions(s.t, path, answers)
}

// TestWatch_Killed kills run --watch at random while scripts are saved: each of
// its runs goes on to the values of the scripts that the log says it ran.
func TestWatch_Killed(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	rounds, runs := 1+(*crashes-fewCrashes)/4, 0
	for range rounds {
		s := &site{t: t, dir: project(t, servedProject)}
		p := start(t, s.dir, "run", "plans/both.lua", "--watch")
		p.says("watching")
		time.AfterFunc(time.Duration(random.Int64N(int64(400*time.Millisecond))), func() { _ = p.cmd.Process.Kill() })
		for n := 1; ; n++ {
			saveVersion(t, s.dir, n)
			if _, ok := <-p.lines; !ok {
				break
			}
		}
		p.cmd.Wait()
		s.look()
		s.check(ended{status: -1})
		var names []string
		for info, err := range s.log.Contexts(t.Context(), store.ContextFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, info.Context)
		}
		s.leave()
		for _, name := range names {
			obelusOutput(t, exitDone, "-C", s.dir, "resume", "-q", "-c", name)
		}
		s.checkAnswers(names)
		runs += len(names)
	}
	t.Logf("%d killed, %d runs", rounds, runs)
}
