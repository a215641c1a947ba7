package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/fstest"

	"obelus/host"
	"obelus/host/web"
	"obelus/store"
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
	server := web.New(web.Config{Host: h, Log: store.NewMemory()})
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

func show(r *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	fmt.Print(string(text))
}
