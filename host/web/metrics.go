package web

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/schedule"
	"obelus/host/supervise"
)

// metrics are the server's metrics in the text format of Prometheus, apart from those of other
// servers in the process.
type metrics struct{ set *vm.Set }

// Buckets of histograms: spans of time from half a millisecond to minutes, spans of requests to
// models from ten milliseconds, and tokens.
var (
	spans      = vm.ExponentialBuckets(0.0005, 4, 10)
	modelSpans = vm.ExponentialBuckets(0.01, 2, 14)
	tokens     = vm.ExponentialBuckets(1, 4, 14)
)

// metricHelp writes what each metric is into the empty HELP lines that the library writes.
var metricHelp = strings.NewReplacer(helpLines(
	"obelus_http_requests_total", "Requests, by route and status.",
	"obelus_http_request_duration_seconds", "How long requests took, by route.",
	"obelus_run_duration_seconds", "Runs that ended or halted, by status, and how long they took.",
	"obelus_call_duration_seconds", "Calls that settled, by tool and status (done, failed, skipped, handled, rejected), and how long they took.",
	"obelus_schedule_skipped_total", "Runs of schedules that this server has recorded as skipped, by schedule and reason (missed, overlapping, refused, cancelled).",
	"gen_ai_client_token_usage", "Tokens of requests to models, by model and type (input, output).",
	"gen_ai_client_operation_duration_seconds", "How long requests to models took, by model.",
	"obelus_runs_active", "Runs that have their turn.",
	"obelus_runs_queued", "Runs that wait for their turn.",
	"obelus_event_streams", "Clients that follow a context.",
	"obelus_generation", "The number of the scripts that are loaded.",
	"obelus_scripts_broken", "1 while the files hold scripts that do not load.",
)...)

// helpLines are HELP lines of metrics without and with a text, from names and texts in turn.
func helpLines(namesAndTexts ...string) (lines []string) {
	for i := 0; i < len(namesAndTexts); i += 2 {
		empty := "# HELP " + namesAndTexts[i]
		lines = append(lines, empty+"\n", empty+" "+namesAndTexts[i+1]+"\n")
	}
	return lines
}

func newMetrics(s *Server) *metrics {
	vm.ExposeMetadata(true)
	set := vm.NewSet()
	set.NewGauge("obelus_runs_active", func() float64 { active, _ := s.supervisor.Load(); return float64(active) })
	set.NewGauge("obelus_runs_queued", func() float64 { _, queued := s.supervisor.Load(); return float64(queued) })
	set.NewGauge("obelus_event_streams", func() float64 { return float64(s.streams.Load()) })
	set.NewGauge("obelus_generation", func() float64 { return float64(s.config.Host.Generation().Number) })
	set.NewGauge("obelus_scripts_broken", func() float64 {
		if s.config.Host.LastReload().Err != nil {
			return 1
		}
		return 0
	})
	return &metrics{set}
}

// serve writes the server's metrics, and those of the process.
func (m *metrics) serve(w http.ResponseWriter, r *http.Request) error {
	var text bytes.Buffer
	m.set.WritePrometheus(&text)
	vm.WriteProcessMetrics(&text)
	vm.WriteFDMetrics(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = metricHelp.WriteString(w, text.String()) // an error is a client's that has gone
	return nil
}

// counter returns a counter with labels, given as names and values in turn.
func (m *metrics) counter(name string, labels ...string) *vm.Counter {
	return m.set.GetOrCreateCounter(labelled(name, labels))
}

// histogram returns a histogram with labels, given as names and values in turn.
func (m *metrics) histogram(name string, bounds []float64, labels ...string) *vm.PrometheusHistogram {
	return m.set.GetOrCreatePrometheusHistogramExt(labelled(name, labels), bounds)
}

// escapeLabel escapes the value of a label.
var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled is the name of a metric with its labels, as the format writes it.
func labelled(name string, labels []string) string {
	var b strings.Builder
	b.Grow(128)
	b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(labels[i])
		b.WriteString(`="`)
		_, _ = escapeLabel.WriteString(&b, labels[i+1])
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.counter("obelus_http_requests_total", "route", route, "status", strconv.Itoa(status)).Inc()
	m.histogram("obelus_http_request_duration_seconds", spans, "route", route).Update(took.Seconds())
}

// run counts a run that has ended or halted.
func (m *metrics) run(run *supervise.Run, took time.Duration) {
	status := "refused"
	if outcome, err := run.Wait(context.Background()); err == nil {
		status = string(outcome.Status)
	}
	m.histogram("obelus_run_duration_seconds", spans, "status", status).Update(took.Seconds())
}

// skip counts runs of a schedule that are skipped.
func (m *metrics) skip(name string, k schedule.Skipped) {
	m.counter("obelus_schedule_skipped_total", "reason", string(k.Reason), "schedule", name).Add(k.Count)
}

// call counts a settled call. There are few names of tools, since only the project has tools.
func (m *metrics) call(r journal.Record) {
	if r.Status.Settled() {
		m.histogram("obelus_call_duration_seconds", spans, "status", r.Outcome(), "tool", r.Tool).Update(r.Duration / 1000)
	}
}

// spent counts a request to a model. There are few names of models, since only the settings have
// models.
func (m *metrics) spent(u plan.Usage) {
	m.histogram("gen_ai_client_token_usage", tokens, "gen_ai_request_model", u.Model, "gen_ai_token_type", "input").Update(float64(u.Input))
	m.histogram("gen_ai_client_token_usage", tokens, "gen_ai_request_model", u.Model, "gen_ai_token_type", "output").Update(float64(u.Output))
	m.histogram("gen_ai_client_operation_duration_seconds", modelSpans, "gen_ai_request_model", u.Model).Update(u.Took.Seconds())
}
