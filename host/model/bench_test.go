package model

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"obelus/host/model/modeltest"
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
