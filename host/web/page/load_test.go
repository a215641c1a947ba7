package page_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

var manyCalls = flag.Int("calls", 10_000, "how many calls the run has that BenchmarkRun asks for")

// BenchmarkRun asks for the tabs of a run with many calls, of which one waits, as it is and as it was.
func BenchmarkRun(b *testing.B) {
	s := serve(b, map[string]string{
		"obelus.lua":       `return { drain = "100ms" }`,
		"activities/a.lua": `Activity.register("echo", function(call) return { id = call.value } end)`,
		"plans/many.lua": fmt.Sprintf(`local calls = {}
			for i = 1, %d do calls[i] = { _tool = "echo", value = i, _instance = "i" .. (i %% 1000), _outputPath = "†state.n" } end
			calls[#calls + 1] = { _tool = "echo", value = "†state.never", _outputPath = "†state.last" }
			return { calls = calls }`, *manyCalls),
	}, nil)
	s.run("many", "plans/many.lua", "")
	for _, query := range []string{"", "?tab=calls", "?tab=timeline", "?tab=log", "?tab=state", "?at=N", "?at=N&tab=calls", "?at=N&tab=state&instance=i7", "?sel=1.77"} {
		b.Run(query, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for i := 0; b.Loop(); i++ {
				path := "/runs/many" + query
				if rest, past := strings.CutPrefix(query, "?at=N"); past {
					path = fmt.Sprintf("/runs/many?at=%d%s", 1+(i*7919)%*manyCalls, rest)
				}
				size = len(s.raw(path))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// raw asks for a page, and returns its text without reading it.
func (s *site) raw(path string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: status %d, %v", path, response.StatusCode, err)
	}
	return string(text)
}
