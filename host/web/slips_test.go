package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"obelus/engine/journal"
)

// TestSlips_OverHTTP holds that what is misspelt in a request is told with what may be meant.
func TestSlips_OverHTTP(t *testing.T) {
	s := serve(t, work, nil, nil)
	for _, test := range []struct{ body, code, want string }{
		{`{"plan":"plans/duble.lua"}`, "no-plan", `did you mean "plans/double.lua"?`},
		{`{"plann":"plans/double.lua"}`, "request", `did you mean "plan"?`},
		{`{"plan":"plans/double.lua","inputs":{}}`, "request", `did you mean "input"?`},
		{`{"plan":"plans/bad.lua"}`, "plan", `did you mean "double"?`},
	} {
		status, text := s.ask("POST", "/v1/runs", test.body)
		if status < 400 || !strings.Contains(text, `"code":"`+test.code+`"`) || !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), test.want) {
			t.Errorf("%s: %d %s", test.body, status, text)
		}
	}
}

// TestMetrics_Format holds that each line is one of the text format, whatever the names in it, and
// that a metric of the server has its help once.
func TestMetrics_Format(t *testing.T) {
	s := serve(t, map[string]string{
		"activities/odd.lua": `Activity.register('say "hi" \\', {}, function() return 1 end)`,
		"plans/odd.json":     `{"calls": [{"_tool": "say \"hi\" \\", "_outputPath": "†said"}]}`,
	}, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/odd.json","wait":true}`)
	_, text := s.ask("GET", "/metrics", "")
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+( .+)?|[a-z_]+(\{[a-z_]+="([^"\\]|\\["\\n])*"(, ?[A-Za-z_]+="([^"\\]|\\["\\n])*")*\})? [-+.0-9Ie]+(nf)?)$`)
	helped := map[string]int{}
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !line.MatchString(l) {
			t.Errorf("%q is no line of the format", l)
		}
		if name, ok := strings.CutPrefix(l, "# HELP "); ok {
			name, help, _ := strings.Cut(name, " ")
			if helped[name]++; help == "" || helped[name] > 1 {
				t.Errorf("%q", l)
			}
		}
	}
	if len(helped) < 8 {
		t.Errorf("only these have help: %v", helped)
	}
	for _, want := range []string{`obelus_call_duration_seconds_count{status="done",tool="say \"hi\" \\"} 1`, "process_open_fds ", "go_goroutines "} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestMetrics_TellHandledAndRejected holds that both are counted apart from done and failed.
func TestMetrics_TellHandledAndRejected(t *testing.T) {
	files := map[string]string{"plans/handled.json": `{"calls": [{"_tool": "fail", "_outputPath": "†state.a || †error.a"}]}`}
	for name, text := range work {
		files[name] = text
	}
	s := serve(t, files, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/handled.json","wait":true}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"a","approve":"always","wait":true}`)
	s.ask("POST", "/v1/contexts/a/calls/1.1/reject", `{"reason":"no"}`)
	s.until("a", journal.RunFailed)
	s.ask("POST", "/v1/contexts/a/resume", `{"wait":true}`) // behind the run that the server went on with
	_, text := s.ask("GET", "/metrics", "")
	for _, want := range []string{`{status="handled",tool="fail"} 1`, `{status="rejected",tool="double"} 1`} {
		if !strings.Contains(text, "obelus_call_duration_seconds_count"+want) {
			t.Errorf("the metrics do not say %s", want)
		}
	}
	if strings.Contains(text, `count{status="done",tool="fail"}`) || strings.Contains(text, `count{status="failed",tool="double"}`) {
		t.Error("they are counted as done or failed too")
	}
}

// TestSlips_EmptyParts holds that calls that are null are no calls to check, which would be everything,
// and that an empty part of a path names nothing.
func TestSlips_EmptyParts(t *testing.T) {
	s := serve(t, work, nil, nil)
	if status, text := s.ask("POST", "/v1/check", `{"calls":null}`); status != http.StatusBadRequest || !strings.Contains(text, "calls must be an array of calls, not null") {
		t.Errorf("a check of null answers %d %s", status, text)
	}
	if status, text := s.ask("GET", "/v1/plans/", ""); status != http.StatusNotFound {
		t.Errorf("a plan without a name answers %d %s", status, text)
	}
}
