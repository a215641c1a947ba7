package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/schedule"
	"obelus/host/supervise"
)

// metrics are the server's metrics for Prometheus, in a registry of their own.
type metrics struct {
	handler  http.Handler
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	runs     *prometheus.HistogramVec
	calls    *prometheus.HistogramVec
	tokens   *prometheus.HistogramVec
	asked    *prometheus.HistogramVec
	skips    *prometheus.CounterVec
}

// spans are histogram buckets from half a millisecond to minutes.
var spans = prometheus.ExponentialBuckets(0.0005, 4, 10)

func newMetrics(s *Server) *metrics {
	registry := prometheus.NewRegistry()
	m := &metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "obelus_http_requests_total", Help: "Requests, by route and status."}, []string{"route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "obelus_http_request_duration_seconds", Help: "How long requests took, by route.", Buckets: spans}, []string{"route"}),
		runs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "obelus_run_duration_seconds", Help: "Runs that ended or halted, by status, and how long they took.", Buckets: spans}, []string{"status"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "obelus_call_duration_seconds", Help: "Calls that settled, by tool and status (done, failed, skipped, handled, rejected), and how long they took.", Buckets: spans}, []string{"tool", "status"}),
		tokens: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gen_ai_client_token_usage", Help: "Tokens of requests to models, by model and type (input, output).",
			Buckets: prometheus.ExponentialBuckets(1, 4, 14)}, []string{"gen_ai_request_model", "gen_ai_token_type"}),
		asked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gen_ai_client_operation_duration_seconds", Help: "How long requests to models took, by model.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 14)}, []string{"gen_ai_request_model"}),
		skips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "obelus_schedule_skipped_total", Help: "Runs of schedules that this server has recorded as skipped, by schedule and reason (missed, overlapping, refused, cancelled)."}, []string{"schedule", "reason"}),
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	registry.MustRegister(m.requests, m.latency, m.runs, m.calls, m.tokens, m.asked, m.skips,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("obelus_runs_active", "Runs that have their turn.", func() float64 { active, _ := s.supervisor.Load(); return float64(active) }),
		gauge("obelus_runs_queued", "Runs that wait for their turn.", func() float64 { _, queued := s.supervisor.Load(); return float64(queued) }),
		gauge("obelus_event_streams", "Clients that follow a context.", func() float64 { return float64(s.streams.Load()) }),
		gauge("obelus_generation", "The number of the scripts that are loaded.", func() float64 { return float64(s.config.Host.Generation().Number) }),
		gauge("obelus_scripts_broken", "1 while the files hold scripts that do not load.", func() float64 {
			if s.config.Host.LastReload().Err != nil {
				return 1
			}
			return 0
		}))
	return m
}

func (m *metrics) serve(w http.ResponseWriter, r *http.Request) error {
	m.handler.ServeHTTP(w, r)
	return nil
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

// run counts a run that has ended or halted.
func (m *metrics) run(run *supervise.Run, took time.Duration) {
	status := "refused"
	if outcome, err := run.Wait(context.Background()); err == nil {
		status = string(outcome.Status)
	}
	m.runs.WithLabelValues(status).Observe(took.Seconds())
}

// skip counts runs of a schedule that are skipped.
func (m *metrics) skip(name string, k schedule.Skipped) {
	m.skips.WithLabelValues(name, string(k.Reason)).Add(float64(k.Count))
}

// call counts a settled call. There are few names of tools, since only the project has tools.
func (m *metrics) call(r journal.Record) {
	if r.Status.Settled() {
		m.calls.WithLabelValues(r.Tool, r.Outcome()).Observe(r.Duration / 1000)
	}
}

// spent counts a request to a model. There are few names of models, since only the settings have
// models.
func (m *metrics) spent(u plan.Usage) {
	m.tokens.WithLabelValues(u.Model, "input").Observe(float64(u.Input))
	m.tokens.WithLabelValues(u.Model, "output").Observe(float64(u.Output))
	m.asked.WithLabelValues(u.Model).Observe(u.Took.Seconds())
}
