package web

import (
	"bytes"
	"context"
	"fmt"
	"math"
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
type metrics struct {
	all                              []*metric
	requests, latency                *metric
	runs, calls, tokens, asks, skips *metric
}

// metric is a metric with its help, and its values by labels.
type metric struct {
	name, kind, help string
	bounds           []float64 // of a histogram's buckets
	values           *vm.Set
}

// Buckets of histograms: spans of time from half a millisecond to minutes, spans of requests to
// models from ten milliseconds, and tokens.
var (
	spans        = vm.ExponentialBuckets(0.0005, 4, 10)
	modelSpans   = vm.ExponentialBuckets(0.01, 2, 14)
	tokenBuckets = vm.ExponentialBuckets(1, 4, 14)
)

func newMetrics(s *Server) *metrics {
	m := &metrics{}
	m.requests = m.add("obelus_http_requests_total", "counter", "Requests, by route and status.", nil)
	m.latency = m.add("obelus_http_request_duration_seconds", "histogram", "How long requests took, by route.", spans)
	m.runs = m.add("obelus_run_duration_seconds", "histogram", "Runs that ended or halted, by status, and how long they took.", spans)
	m.calls = m.add("obelus_call_duration_seconds", "histogram", "Calls that settled, by tool and status (done, failed, skipped, handled, rejected), and how long they took.", spans)
	m.tokens = m.add("gen_ai_client_token_usage", "histogram", "Tokens of requests to models, by model and type (input, output).", tokenBuckets)
	m.asks = m.add("gen_ai_client_operation_duration_seconds", "histogram", "How long requests to models took, by model.", modelSpans)
	m.skips = m.add("obelus_schedule_skipped_total", "counter", "Runs of schedules that this server has recorded as skipped, by schedule and reason (missed, overlapping, refused, cancelled).", nil)
	m.gauge("obelus_runs_active", "Runs that have their turn.", func() float64 { active, _ := s.supervisor.Load(); return float64(active) })
	m.gauge("obelus_runs_queued", "Runs that wait for their turn.", func() float64 { _, queued := s.supervisor.Load(); return float64(queued) })
	m.gauge("obelus_held", "Decisions that wait for a person, in all contexts of the log.", func() float64 { n, _ := s.held(); return n })
	m.gauge("obelus_held_oldest_seconds", "How long the oldest of them has waited; 0 for none.", func() float64 { _, age := s.held(); return age })
	m.gauge("obelus_event_streams", "Clients that follow a context.", func() float64 { return float64(s.streams.Load()) })
	m.gauge("obelus_generation", "The number of the scripts that are loaded.", func() float64 { return float64(s.config.Host.Generation().Number) })
	m.gauge("obelus_scripts_broken", "1 while the files hold scripts that do not load.", func() float64 {
		if s.config.Host.LastReload().Err != nil {
			return 1
		}
		return 0
	})
	return m
}

// held returns how many decisions wait for a person, and for how many seconds the oldest does; NaN
// where the log can't be read.
func (s *Server) held() (n, age float64) {
	var count int
	var oldest time.Time
	_, leave, err := s.reserve(context.Background(), s.room, func(ctx context.Context) ([]byte, error) {
		held, err := s.waiting.Look(ctx)
		if err != nil {
			return nil, err
		}
		count = held.Number
		oldest, err = s.waiting.Oldest(ctx)
		return nil, err
	})
	if err == nil {
		leave()
	}
	switch {
	case err != nil:
		return math.NaN(), math.NaN()
	case !oldest.IsZero():
		age = max(time.Since(oldest).Seconds(), 0)
	}
	return float64(count), age
}

// add adds a metric, a histogram with the upper bounds of its buckets.
func (m *metrics) add(name, kind, help string, bounds []float64) *metric {
	added := &metric{name, kind, help, bounds, vm.NewSet()}
	m.all = append(m.all, added)
	return added
}

func (m *metrics) gauge(name, help string, value func() float64) {
	m.add(name, "gauge", help, nil).values.NewGauge(name, value)
}

// serve writes the metrics of the server, and those of the process.
func (m *metrics) serve(w http.ResponseWriter, r *http.Request) error {
	var text, values bytes.Buffer
	for _, one := range m.all {
		values.Reset()
		if one.values.WritePrometheus(&values); values.Len() > 0 {
			fmt.Fprintf(&text, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n%[4]s", one.name, one.help, one.kind, &values)
		}
	}
	vm.WriteProcessMetrics(&text)
	vm.WriteFDMetrics(&text)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = text.WriteTo(w) // an error is a client's that has gone
	return nil
}

// count adds to the counter with some labels, given as names and values in turn.
func (m *metric) count(n int, labels ...string) {
	m.values.GetOrCreateCounter(m.labelled(labels)).Add(n)
}

// observe adds a value to the histogram with some labels, given as names and values in turn.
func (m *metric) observe(value float64, labels ...string) {
	m.values.GetOrCreatePrometheusHistogramExt(m.labelled(labels), m.bounds).Update(value)
}

// escapeLabel escapes the value of a label.
var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled is the name of the metric with labels, as the format writes it.
func (m *metric) labelled(labels []string) string {
	var b strings.Builder
	b.Grow(128)
	b.WriteString(m.name)
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
	m.requests.count(1, "route", route, "status", strconv.Itoa(status))
	m.latency.observe(took.Seconds(), "route", route)
}

// run counts a run that has ended or halted.
func (m *metrics) run(run *supervise.Run, took time.Duration) {
	status := "refused"
	if outcome, err := run.Wait(context.Background()); err == nil {
		status = string(outcome.Status)
	}
	m.runs.observe(took.Seconds(), "status", status)
}

// skip counts runs of a schedule that are skipped.
func (m *metrics) skip(name string, k schedule.Skipped) {
	m.skips.count(k.Count, "reason", string(k.Reason), "schedule", name)
}

// call counts a settled call. There are few names of tools, since only the project has tools.
func (m *metrics) call(r journal.Record) {
	if r.Status.Settled() {
		m.calls.observe(r.Duration/1000, "status", r.Outcome(), "tool", r.Tool)
	}
}

// spent counts a request to a model. There are few names of models, since only the settings have
// models.
func (m *metrics) spent(u plan.Usage) {
	m.tokens.observe(float64(u.Input), "gen_ai_request_model", u.Model, "gen_ai_token_type", "input")
	m.tokens.observe(float64(u.Output), "gen_ai_request_model", u.Model, "gen_ai_token_type", "output")
	m.asks.observe(u.Took.Seconds(), "gen_ai_request_model", u.Model)
}
