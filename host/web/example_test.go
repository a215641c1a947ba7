package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/fstest"
	"time"

	"obelus/host"
	"obelus/host/web"
	"obelus/store/memory"
)

// A project and a log in memory, served.
func Example() {
	h, err := host.Open(host.Config{FS: fstest.MapFS{
		"activities/hello.lua": {Data: []byte(`Activity.register("hello", function(call) return "Hello, " .. call.name .. "!" end)`)},
		"plans/hello.json": {Data: []byte(`{
			"calls": [{"_tool": "hello", "name": "†input.name", "_outputPath": "†state.greeting"}],
			"output": "†state.greeting"
		}`)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := web.New(web.Config{Host: h, Log: memory.New()})
	defer server.Drain(context.Background())
	http := httptest.NewServer(server)
	defer http.Close()

	show(http.Client().Post(http.URL+"/v1/runs", "application/json",
		strings.NewReader(`{"plan": "plans/hello.json", "context": "c", "input": {"name": "Ada"}, "wait": true}`)))
	show(http.Client().Get(http.URL + "/v1/contexts/c/get?ref=state"))
	// Output:
	// {"context":"c","error":null,"output":"Hello, Ada!","status":"done"}
	// {"greeting":"Hello, Ada!"}
}

// A program with an HTTP server of its own: where it ends, it drains first.
func ExampleServer_Drain() {
	h, err := host.Open(host.Config{FS: fstest.MapFS{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := web.New(web.Config{Host: h, Log: memory.New()})
	server := &http.Server{Handler: served, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	go server.Serve(listener)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(errors.Join(served.Drain(ctx), server.Shutdown(ctx)))
	// Output: <nil>
}

func show(r *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	fmt.Print(string(text))
}
