package model

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/model/modeltest"
	"obelus/store/memory"
)

// BenchmarkAsk is one request through a client to a server on this machine, beside the same request
// by net/http alone.
func BenchmarkAsk(b *testing.B) {
	server := modeltest.NewServer(b)
	server.Answer = worded
	c, err := NewClient(Config{Name: "wise", Model: "large", URL: server.URL, Key: "TEST_KEY"}, Options{Env: testEnv})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("client", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Ask(b.Context(), question(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	body := server.Requests()[0].Text
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			response, err := http.Post(server.URL+"/chat/completions", "application/json", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				b.Fatal(err)
			}
			_ = response.Body.Close()
		}
	})
}

// BenchmarkLatentCalls runs a plan of 1,000 calls that a model answers, 16 of them a request.
func BenchmarkLatentCalls(b *testing.B) {
	tool, err := plan.NewTool("judge", map[string]any{"properties": map[string]any{"text": map[string]any{"type": "string"}}, "_output": map[string]any{"type": "string"}})
	if err != nil {
		b.Fatal(err)
	}
	request := &plan.Request{}
	for i := range 1000 {
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": "judge", "text": fmt.Sprint("text ", i), "_outputPath": fmt.Sprintf("†state.r%d", i)}})
	}
	c := Config{Name: "m", URL: modeltest.NewServer(b).URL, Model: "m"}
	client, err := NewClient(c, Options{})
	if err != nil {
		b.Fatal(err)
	}
	registry := plan.NewRegistry()
	registry.Tools["judge"], registry.Model = tool, New(c, client)
	b.ReportAllocs()
	for b.Loop() {
		r := &engine.Runner{Log: memory.New(), Registry: registry}
		outcome, err := r.Run(b.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Status != journal.RunDone {
			b.Fatalf("%+v, %v", outcome, err)
		}
	}
}
