package web

import (
	"context"
	"time"

	"obelus/host/supervise"
	"obelus/host/trace"
)

// traceGrace bounds how long a server that ends waits for a collector.
const traceGrace = 3 * time.Second

// newExporter returns what sends runs to a collector; nil if there is none.
func (s *Server) newExporter(c trace.Config) *trace.Exporter {
	if c.URL == "" {
		return nil
	}
	sender, err := trace.NewSender(c)
	if err != nil { // which the settings were checked for
		s.logger.Error("no traces are sent", "error", err)
		return nil
	}
	options := func() trace.Options { return s.config.Host.Generation().Settings().TraceOptions(c.Content) }
	return trace.NewExporter(s.config.Log, sender, options, s.logger)
}

// ended counts a run that has ended or halted, and has it sent to the collector.
func (s *Server) ended(run *supervise.Run, took time.Duration) {
	s.metrics.run(run, took)
	if s.exporter == nil {
		return
	}
	if _, err := run.Wait(context.Background()); err == nil {
		s.exporter.Add(run.Context())
	}
}
