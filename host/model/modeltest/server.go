package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Server is a provider of models that speaks OpenAI's Chat Completions and Anthropic's Messages,
// streamed and not. Its fields are to be set before the first request. It is safe for concurrent
// use.
type Server struct {
	// URL is the address to be configured for the OpenAI wire, such as http://127.0.0.1:1234/v1; it
	// does for the Anthropic wire, too.
	URL string

	// Answer returns the answer to a request. Nil answers by a value that fits the request's schema;
	// Seed and the number of the request decide which.
	Answer func(*Request) Reply

	// Fault returns what goes wrong with a request. Nil lets all go well.
	Fault func(*Request) Fault

	// Check returns an error for a wrong request, which is then refused, and fails the test.
	Check func(*Request) error

	// CheckSent is given each body and each event of the OpenAI wire that is sent, and whether it is
	// an event. Its error fails the test.
	CheckSent func(body []byte, isEvent bool) error

	Seed uint64

	// NumCtx is the window that it says of each model, as Ollama does; 0 where it is not asked for.
	NumCtx int

	t        testing.TB
	mu       sync.Mutex
	requests []*Request
}

// Request is a request that the server got.
type Request struct {
	Number int    // from 1
	Wire   string // openai or anthropic
	Header http.Header
	Remote string         // address of the client; empty without a network
	Text   []byte         // of the body
	Body   map[string]any // numbers are json.Number
	Mode   string         // schema, tools, json or text
	Schema any            // that is asked for, in the prompt or elsewhere; nil if there is none
	System string
	Prompt string // the user's messages
	Stream bool
}

// Reply is an answer of the server.
type Reply struct {
	Value   any    // is written as JSON, unless there is a Text
	Text    string // the answer as it is
	Refusal string
	Finish  string // in the provider's word; empty if the answer is complete

	// Tokens. Where both Input and Output are 0, there are as many as the texts make likely.
	Input, Output, CacheRead, CacheWrite, Reasoning int
	Cost                                            float64
}

// NewServer starts a server on this machine, which ends with the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := NewTransport(t)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/v1"
	return s
}

// NewTransport returns a server without a network: an [http.RoundTripper] that answers itself, as
// tests with testing/synctest need.
func NewTransport(t testing.TB) *Server {
	return &Server{URL: "http://localhost/v1", t: t}
}

// Requests returns the requests so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// RoundTrip implements [http.RoundTripper] without a network.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	w := &pipeWriter{header: http.Header{}, body: write, ready: make(chan struct{})}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		defer func() {
			err := io.EOF
			if recover() != nil {
				err = io.ErrUnexpectedEOF
			}
			w.WriteHeader(http.StatusOK)
			_ = write.CloseWithError(err)
		}()
		s.ServeHTTP(w, r)
	}()
	select {
	case <-w.ready:
	case <-r.Context().Done():
		_ = read.Close()
		return nil, r.Context().Err()
	}
	go func() {
		select {
		case <-r.Context().Done():
			_ = write.CloseWithError(r.Context().Err())
		case <-stop:
		}
	}()
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: read, ContentLength: -1, Request: r}, nil
}

// pipeWriter writes a response into a pipe.
type pipeWriter struct {
	header http.Header
	body   *io.PipeWriter
	ready  chan struct{} // closed once the status is known
	status int
}

// Header implements [http.ResponseWriter].
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		close(w.ready)
	}
}

// Write implements [http.ResponseWriter].
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements [http.Flusher].
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wire := ""
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		wire = "openai"
	case strings.HasSuffix(r.URL.Path, "/messages"):
		wire = "anthropic"
	case strings.HasSuffix(r.URL.Path, "/models") && r.Method == http.MethodGet:
		sendJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": "modeltest", "object": "model", "created": 0, "owned_by": "modeltest"}}})
		return
	case strings.HasSuffix(r.URL.Path, "/api/show") && s.NumCtx > 0:
		sendJSON(w, http.StatusOK, map[string]any{"parameters": fmt.Sprintf("num_ctx                        %d\ntemperature 1", s.NumCtx)})
		return
	default:
		sendError(w, http.StatusNotFound, "not_found_error", "there is nothing at "+r.URL.Path)
		return
	}
	if r.Method != http.MethodPost {
		sendError(w, http.StatusMethodNotAllowed, "invalid_request_error", "use POST")
		return
	}
	request, err := s.read(wire, r)
	if err == nil && s.Check != nil {
		if err = s.Check(request); err != nil {
			s.t.Errorf("request %d: %v\n%s", request.Number, err, request.Text)
		}
	}
	if err != nil {
		sendError(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	fault := NoFault
	if s.Fault != nil {
		fault = s.Fault(request)
	}
	if s.fail(w, r, request, fault) {
		return
	}
	s.send(w, request, fault, s.reply(request, fault), r.Context().Done())
}

// read reads a request and keeps it.
func (s *Server) read(wire string, r *http.Request) (*Request, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	request := &Request{Wire: wire, Header: r.Header.Clone(), Remote: r.RemoteAddr, Text: text}
	s.mu.Lock()
	s.requests = append(s.requests, request)
	request.Number = len(s.requests)
	s.mu.Unlock()
	if err := decode(text, &request.Body); err != nil {
		return nil, fmt.Errorf("the body is not a JSON object: %w", err)
	}
	if model, _ := request.Body["model"].(string); model == "" {
		return nil, fmt.Errorf("model is missing")
	}
	messages, _ := request.Body["messages"].([]any)
	if len(messages) == 0 {
		return nil, fmt.Errorf("messages is missing or empty")
	}
	request.Stream, _ = request.Body["stream"].(bool)
	request.System = texts(request.Body["system"])
	for _, m := range messages {
		message, _ := m.(map[string]any)
		if message["role"] == "system" {
			request.System += texts(message["content"])
		} else {
			request.Prompt += texts(message["content"])
		}
	}
	request.Mode, request.Schema = schemaOf(request.Body)
	if request.Schema == nil {
		request.Schema = schemaIn(request.Prompt)
	}
	return request, nil
}

// decode reads JSON, with numbers as texts.
func decode(text []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	return d.Decode(v)
}

// texts returns a content of either wire as text.
func texts(content any) string {
	switch content := content.(type) {
	case string:
		return content
	case []any:
		var b strings.Builder
		for _, part := range content {
			if o, ok := part.(map[string]any); ok {
				text, _ := o["text"].(string)
				b.WriteString(text + "\n\n")
			}
		}
		return strings.TrimSuffix(b.String(), "\n\n")
	}
	return ""
}

// schemaOf returns how a body asks for a schema, and which.
func schemaOf(body map[string]any) (mode string, schema any) {
	dig := func(v any, names ...string) any {
		for _, name := range names {
			o, _ := v.(map[string]any)
			v = o[name]
		}
		return v
	}
	if tools, _ := body["tools"].([]any); len(tools) > 0 {
		if schema = dig(tools[0], "input_schema"); schema == nil {
			schema = dig(tools[0], "function", "parameters")
		}
		return "tools", schema
	}
	if schema = dig(body, "output_config", "format", "schema"); schema != nil {
		return "schema", schema
	}
	switch dig(body, "response_format", "type") {
	case "json_schema":
		return "schema", dig(body, "response_format", "json_schema", "schema")
	case "json_object":
		return "json", nil
	}
	return "text", nil
}

// schemaIn finds the last JSON Schema in a prompt: a line that ends in one.
func schemaIn(prompt string) any {
	lines := strings.Split(prompt, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		at := strings.IndexByte(lines[i], '{')
		if at < 0 {
			continue
		}
		var o map[string]any
		if json.Unmarshal([]byte(lines[i][at:]), &o) != nil || decode([]byte(lines[i][at:]), &o) != nil {
			continue
		}
		for _, keyword := range []string{"type", "anyOf", "$ref", "properties", "enum", "const"} {
			if _, ok := o[keyword]; ok {
				return o
			}
		}
	}
	return nil
}

// reply returns the answer to a request.
func (s *Server) reply(r *Request, fault Fault) Reply {
	var reply Reply
	if s.Answer != nil {
		reply = s.Answer(r)
	} else {
		reply.Value = Generate(r.Schema, s.Seed+uint64(r.Number))
	}
	if reply.Text == "" && reply.Refusal == "" {
		text, err := json.Marshal(reply.Value)
		if err != nil {
			s.t.Errorf("request %d: the answer is not JSON: %v", r.Number, err)
		}
		reply.Text = string(text)
	}
	switch {
	case fault == Fences:
		reply.Text = "Here it is:\n```json\n" + reply.Text + "\n```\nIs there {anything} else?"
	case fault == Deaf && (r.Mode == "schema" || r.Mode == "tools"):
		reply.Text = "Certainly! Once upon a time …"
	case fault == Refuses:
		reply.Text, reply.Refusal = "", "I can't help with that."
	case fault == Length:
		reply.Text, reply.Finish = cutInHalf(reply.Text), map[string]string{"openai": "length", "anthropic": "max_tokens"}[r.Wire]
	}
	if reply.Input == 0 && reply.Output == 0 {
		reply.Input, reply.Output = len(r.Text)/4+1, len(reply.Text)/4+1
	}
	return reply
}

// cutInHalf returns the first half of a text.
func cutInHalf(text string) string {
	runes := []rune(text)
	return string(runes[:len(runes)/2])
}

// sendJSON sends a value.
func sendJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// sendError sends an error in a form that both wires have.
func sendError(w http.ResponseWriter, status int, kind, message string) {
	sendJSON(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message, "code": kind, "param": nil}})
}
