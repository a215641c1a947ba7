package cmd

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soak is how long TestSoak_BusyServer keeps a server busy; the short form only sees that
// every kind of request works beside the others.
var soak = flag.Duration("soak", 5*time.Second, "how long TestSoak_BusyServer keeps a server busy")

var soakedProject = map[string]string{
	"obelus.lua": `return { approve = "pay", drain = "2s", serve = {
		hooks = { push = { plan = "plans/hooked.lua", verify = "none", once = "X-Id" } },
		schedules = { minutely = { plan = "plans/sum.lua", cron = "* * * * *", input = { n = 1 } } },
	} }`,
	"lib/version.lua":    "return 1",
	"activities/all.lua": soakedActivities,
	"plans/sum.lua": `
		local calls = {}
		for i = 1, 8 do
			calls[i] = { _tool = "square", n = "†(†input.n + " .. i .. ")", _outputPath = "†state.all", _outputMethod = "push" }
		end
		calls[9] = { _tool = "sum", all = "†state.all", _outputPath = "†state.sum" }
		return { calls = calls, output = "†state.sum" }`,
	"plans/flaky.lua": `return { calls = {
			{ _tool = "flaky", n = "†input.n", _outputPath = "†state.good || †state.bad" },
		}, output = "†state.good || †state.bad.code" }`,
	"plans/later.lua": `return { calls = { { _tool = "square", n = "†input.late", _outputPath = "†state.late" } }, output = "†state.late" }`,
	"plans/paid.lua":  `return { calls = { { _tool = "pay", n = "†input.n", _outputPath = "†state.paid" } }, output = "†state.paid" }`,
	"plans/deep.lua": `return { calls = {
			{ _tool = "inside", _delegate = "plans/sum.lua", n = "†input.n", _outputPath = "†state.deep" },
		}, output = "†state.deep" }`,
	"plans/timed.lua":   `return { calls = { { _tool = "square", n = "†input.n", _in = "200ms", _outputPath = "†state.late" } }, output = "†state.late" }`,
	"plans/hooked.lua":  `return { calls = { { _tool = "square", n = "†input.body.n", _outputPath = "†state.late" } }, output = "†state.late" }`,
	"plans/version.lua": `return { calls = { { _tool = "version", _outputPath = "†state.version" } }, output = "†state.version" }`,
}

const soakedActivities = `
Activity.register("square", function(call) return call.n * call.n end)
Activity.register("sum", function(call)
  local total = 0
  for _, n in ipairs(call.all) do total = total + n end
  return total
end)
Activity.register("flaky", function(call)
  if call.n % 100 == 0 then error({ message = "one in a hundred", code = "unlucky" }) end
  return call.n
end)
Activity.register("pay", function(call) return call.n end)
Activity.register("version", function() return require("version") end)
`

// TestSoak_BusyServer keeps a server busy with all that it can do, with scripts that are
// saved meanwhile and an activity that fails once in a hundred times, and checks
// every answer. Memory, goroutines and files stay what they are.
//
//	go test ./cmd -run TestSoak -soak 10m -v -timeout 20m
func TestSoak_BusyServer(t *testing.T) {
	dir := project(t, soakedProject)
	_, url := serving(t, dir, "-q")
	s := &soaking{t: t, url: url, dir: dir, done: map[string]int{}}
	s.newest.Store(1)
	var clients sync.WaitGroup
	end := make(chan struct{})
	for client := range 4 {
		clients.Go(func() {
			for n := client; ; n += 4 {
				select {
				case <-end:
					return
				default:
					s.ask(n)
				}
			}
		})
	}
	clients.Go(func() { s.save(end) })
	began := time.Now()
	s.watch(*soak)
	s.scheduled(began)
	close(end)
	clients.Wait()
	t.Logf("%s: %v, %d versions saved", *soak, s.done, s.newest.Load())
	for _, w := range []string{"sum", "flaky", "later", "paid", "deep", "version", "fork", "read", "follow", "timed", "hook"} {
		if s.done[w] == 0 {
			t.Errorf("nobody asked for %s", w)
		}
	}
}

type soaking struct {
	t        *testing.T
	url, dir string
	newest   atomic.Int64 // version that has been saved

	mu   sync.Mutex
	done map[string]int
}

// ask is one thing that a client wants, and its answer.
func (s *soaking) ask(n int) {
	name := fmt.Sprint("c", n)
	kinds := []struct {
		name string
		do   func(context string, n int)
	}{
		{"sum", s.sum}, {"flaky", s.flaky}, {"later", s.later}, {"paid", s.paid}, {"deep", s.deep},
		{"version", s.version}, {"fork", s.fork}, {"read", s.read}, {"follow", s.follow}, {"timed", s.timed}, {"hook", s.hook},
	}
	kind := kinds[n%len(kinds)]
	kind.do(name, n/len(kinds))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[kind.name]++
}

// answer asks the server, and holds its status.
func (s *soaking) answer(method, path, body string, status int) map[string]any {
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return nil
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	var v any
	if err != nil || r.StatusCode != status || json.Unmarshal(text, &v) != nil {
		s.t.Errorf("%s %s %s: %d %s, %v", method, path, body, r.StatusCode, text, err)
	}
	object, _ := v.(map[string]any)
	return object
}

// run runs a plan, and holds what it comes to.
func (s *soaking) run(plan, name string, n int, status, output string) {
	got := s.answer("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/%s.lua","context":%q,"input":{"n":%d},"wait":true}`, plan, name, n), 200)
	s.holds(got, plan, n, status, output)
}

func (s *soaking) holds(got map[string]any, plan string, n int, status, output string) {
	if fmt.Sprint(got["status"]) != status || fmt.Sprint(got["output"]) != output {
		s.t.Errorf("%s of %d: %v, not %s %s", plan, n, got, status, output)
	}
}

func sumFrom(n int) string {
	total := 0
	for i := 1; i <= 8; i++ {
		total += (n + i) * (n + i)
	}
	return fmt.Sprint(float64(total))
}

func (s *soaking) sum(name string, n int)  { s.run("sum", name, n%1000, "done", sumFrom(n%1000)) }
func (s *soaking) deep(name string, n int) { s.run("deep", name, n%1000, "done", sumFrom(n%1000)) }

func (s *soaking) flaky(name string, n int) {
	want := fmt.Sprint(float64(n % 1000))
	if n%100 == 0 {
		want = "unlucky"
	}
	s.run("flaky", name, n%1000, "done", want)
}

func (s *soaking) later(name string, n int) {
	s.run("later", name, n, "waiting", "<nil>")
	s.answer("POST", "/v1/contexts/"+name+"/messages", fmt.Sprintf(`{"type":"input","late":%d}`, n%1000), 200)
	s.resume("later", name, n, fmt.Sprint(float64((n%1000)*(n%1000))))
}

func (s *soaking) paid(name string, n int) {
	s.run("paid", name, n, "waiting", "<nil>")
	s.answer("POST", "/v1/contexts/"+name+"/calls/1.1/approve", `{"set":{"n":7}}`, 200)
	s.resume("paid", name, n, "7")
}

func (s *soaking) timed(name string, n int) {
	s.run("timed", name, n%1000, "waiting", "<nil>")
	s.resume("timed", name, n, fmt.Sprint(float64((n%1000)*(n%1000))))
}

// hook delivers a request twice, which starts one run.
func (s *soaking) hook(name string, n int) {
	contexts := map[string]bool{}
	for _, status := range []int{http.StatusAccepted, http.StatusOK} {
		request, err := http.NewRequest("POST", s.url+"/v1/hooks/push", strings.NewReader(fmt.Sprintf(`{"n":%d}`, n%1000)))
		if err != nil {
			s.t.Error(err)
			return
		}
		request.Header.Set("X-Id", name)
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			s.t.Error(err)
			return
		}
		var body struct{ Context string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.StatusCode != status {
			s.t.Errorf("a delivery is answered with %d, not %d, %v", r.StatusCode, status, err)
		}
		r.Body.Close()
		contexts[body.Context] = true
	}
	for context := range contexts {
		s.ended(context)
		got := s.answer("GET", "/v1/contexts/"+context, "", 200)
		s.holds(got, "hooked", n, "done", fmt.Sprint(float64((n%1000)*(n%1000))))
	}
	if len(contexts) != 1 {
		s.t.Errorf("a delivery that came twice has started %d runs", len(contexts))
	}
}

// scheduled holds that each minute since a time has had its run, and one.
func (s *soaking) scheduled(began time.Time) {
	due := began.Truncate(time.Minute).Add(2 * time.Minute) // the first after the schedule was seen, for sure
	for ; due.Before(time.Now().Add(-10 * time.Second)); due = due.Add(time.Minute) {
		name := due.UTC().Format("minutely-20060102T150405Z")
		s.holds(s.answer("GET", "/v1/contexts/"+name, "", 200), name, 1, "done", sumFrom(1))
		s.mu.Lock()
		s.done["scheduled"]++
		s.mu.Unlock()
	}
}

// resume waits until the server has gone on by itself with what was brought about,
// and asks for what the run came to.
func (s *soaking) resume(plan, name string, n int, output string) {
	s.ended(name)
	s.holds(s.answer("POST", "/v1/contexts/"+name+"/resume", `{"wait":true}`, 200), plan, n, "done", output)
}

func (s *soaking) version(name string, _ int) {
	oldest := s.newest.Load() - 1 // a reload takes its time
	got := s.answer("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/version.lua","context":%q,"wait":true}`, name), 200)
	if v, ok := got["output"].(float64); !ok || int64(v) < oldest || int64(v) > s.newest.Load() {
		s.t.Errorf("version %v of %d to %d: %v", got["output"], oldest, s.newest.Load(), got)
	}
}

func (s *soaking) fork(name string, n int) {
	s.run("sum", name, n%1000, "done", sumFrom(n%1000))
	s.answer("POST", "/v1/contexts/"+name+"/fork", fmt.Sprintf(`{"context":"%s-again"}`, name), 200)
	got := s.answer("POST", "/v1/contexts/"+name+"-again/resume", `{"from":"1.9","wait":true}`, 200)
	s.holds(got, "fork", n, "done", sumFrom(n%1000))
}

func (s *soaking) read(name string, n int) {
	s.run("sum", name, n%1000, "done", sumFrom(n%1000))
	for _, path := range []string{"/log", "/calls", "/why?ref=state.sum", "/get?ref=state.all", "/approvals", ""} {
		s.answer("GET", "/v1/contexts/"+name+path, "", 200)
	}
	for _, path := range []string{"/v1/contexts?limit=5", "/v1/scripts", "/healthz"} {
		s.answer("GET", path, "", 200)
	}
	s.answer("GET", "/v1/contexts/"+name+"/get?ref=state.none", "", 404)
	s.answer("POST", "/v1/runs", `{"plan":"plans/none.lua"}`, 404)
	s.answer("POST", "/v1/contexts/"+name+"/messages", `{"type":"nonsense"}`, 422)
}

func (s *soaking) follow(name string, n int) {
	s.answer("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/sum.lua","context":%q,"input":{"n":%d}}`, name, n), 202)
	s.ended(name)
}

// ended waits for the event of a run's end.
func (s *soaking) ended(name string) {
	r, err := http.Get(s.url + "/v1/contexts/" + name + "/events")
	if err != nil {
		s.t.Error(err)
		return
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		var e struct{ Call, Status string }
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && json.Unmarshal([]byte(data), &e) == nil && e.Call == "" && e.Status == "done" {
			return
		}
	}
	s.t.Errorf("the events of %s end without an end of its run", name)
}

// save saves a script again and again, each time as soon as it has been loaded,
// and now and then a broken one.
func (s *soaking) save(end chan struct{}) {
	file := filepath.Join(s.dir, "lib/version.lua")
	for v := int64(2); ; v++ {
		if v%10 == 0 {
			s.replace(file, "return (")
		}
		s.newest.Store(v)
		s.replace(file, fmt.Sprint("return ", v))
		for s.loaded() < v {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

func (s *soaking) replace(file, text string) {
	if err := os.WriteFile(file+".new", []byte(text), 0o666); err != nil {
		s.t.Error(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		s.t.Error(err)
	}
}

// loaded is the version that runs by now.
func (s *soaking) loaded() int64 {
	got := s.answer("POST", "/v1/runs", `{"plan":"plans/version.lua","wait":true}`, 200)
	v, _ := got["output"].(float64)
	return int64(v)
}

// watch looks at what the server takes while it is busy: in the last quarter of
// the time it is what it was in the second.
func (s *soaking) watch(during time.Duration) {
	const looks = 40
	var all []map[string]float64
	for range looks {
		time.Sleep(during / looks)
		all = append(all, s.metrics())
	}
	if during < time.Minute { // too short for what grows slowly to show
		return
	}
	for name, room := range map[string]float64{
		"go_memstats_heap_alloc_bytes": 16 << 20, "process_resident_memory_bytes": 32 << 20, "go_goroutines": 64, "process_open_fds": 32,
	} {
		least := func(part []map[string]float64) float64 {
			values := make([]float64, len(part))
			for i, m := range part {
				values[i] = m[name]
			}
			return slices.Min(values)
		}
		before, after := least(all[looks/4:looks/2]), least(all[looks*3/4:])
		s.t.Logf("%s: %.0f, then %.0f", name, before, after)
		if before == 0 || after > before+room {
			s.t.Errorf("%s grew from %.0f to %.0f", name, before, after)
		}
	}
}

func (s *soaking) metrics() map[string]float64 {
	r, err := http.Get(s.url + "/metrics")
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer r.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return values
}
