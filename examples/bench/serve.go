package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/sync/errgroup"

	"obelus/host"
	"obelus/host/web"
	"obelus/store/sqlite"
)

// Request and answer of both servers. The handler that is written by hand ignores the plan.
const (
	runsPath   = "/v1/runs"
	runRequest = `{"plan":"plans/add.lua","input":{"n":21},"wait":true}`
	runAnswer  = `"output":22`
)

// handler is the HTTP handler that one would write by hand: a call of Lua, and a row in a
// transaction of its own. The loop has one Lua state and one connection.
type handler struct {
	mu   sync.Mutex
	loop *loop
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Input struct {
			N float64 `json:"n"`
		} `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	run := rand.Text()
	h.mu.Lock()
	output, err := h.loop.step(run, 1, "add", "n", lua.LNumber(asked.Input.N))
	h.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"context": run, "output": output})
}

// loopServe times requests to the handler.
func loopServe(s settings, file string, clients, requests int) (t times, err error) {
	l, err := openLoop(s, file)
	if err != nil {
		return t, err
	}
	defer func() { err = cmp.Or(err, l.close()) }()
	listener, err := listen()
	if err != nil {
		return t, err
	}
	server := &http.Server{Handler: &handler{loop: l}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t, err = timeRequests(listener.Addr(), clients, requests)
	err = cmp.Or(err, server.Close())
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = cmp.Or(err, stopped)
	}
	return t, err
}

// ourServe times requests to the server of package web.
func ourServe(s settings, file string, clients, requests int) (t times, err error) {
	project, err := writeProject(filepath.Dir(file))
	if err != nil {
		return t, err
	}
	h, err := host.Open(host.Config{Log: logger, FS: project})
	if err != nil {
		return t, err
	}
	log, err := sqlite.Open(file, sqlite.Options{Synchronous: s.synchronous})
	if err != nil {
		return t, err
	}
	defer func() { err = cmp.Or(err, log.Close()) }()
	listener, err := listen()
	if err != nil {
		return t, err
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- web.New(web.Config{Host: h, Log: log}).Serve(ctx, listener) }()
	t, err = timeRequests(listener.Addr(), clients, requests)
	stop()
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = cmp.Or(err, stopped)
	}
	return t, err
}

// writeProject writes the scripts to a new folder below a folder. The plan's file is an hour old,
// as plans of real projects are.
func writeProject(dir string) (fs.FS, error) {
	root := filepath.Join(dir, "project")
	if err := os.CopyFS(root, scripts); err != nil {
		return nil, err
	}
	old := time.Now().Add(-time.Hour)
	return os.DirFS(root), os.Chtimes(filepath.Join(root, "plans/add.lua"), old, old)
}

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// clientArg is the first argument of a process that is a client of a server.
const clientArg = "client"

// timeRequests has a process of its own make requests to a server in this one, so that what this
// process uses is the server's alone. The clock starts once each client has had one answer.
func timeRequests(address net.Addr, clients, requests int) (t times, err error) {
	program, err := os.Executable()
	if err != nil {
		return t, err
	}
	client := exec.Command(program, clientArg, "http://"+address.String()+runsPath, strconv.Itoa(clients), strconv.Itoa(requests))
	client.Stderr = os.Stderr
	begin, err := client.StdinPipe()
	if err != nil {
		return t, err
	}
	output, err := client.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := client.Start(); err != nil {
		return t, err
	}
	defer func() { err = cmp.Or(client.Wait(), err) }() // its own error is on the standard error
	defer begin.Close()
	lines := bufio.NewReader(output)
	if _, err := lines.ReadString('\n'); err != nil {
		return t, err
	}
	before, err := usedSoFar()
	if err != nil {
		return t, err
	}
	if _, err := fmt.Fprintln(begin); err != nil {
		return t, err
	}
	took, err := lines.ReadString('\n')
	if err != nil {
		return t, err
	}
	if t.used, err = usedSince(before); err != nil {
		return t, err
	}
	t.whole, err = time.ParseDuration(strings.TrimSpace(took))
	return t, err
}

// ask is the process that makes the requests: as many clients as it is told make so many together.
// It prints a line once each client has had an answer, waits for a line, and prints the time that
// the requests took after it.
func ask(in io.Reader, out io.Writer, args []string) error {
	if len(args) != 3 {
		return errors.New("a client needs an address, a number of clients and a number of requests")
	}
	clients, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	requests, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	together := func(do func() error) error {
		var group errgroup.Group
		for range clients {
			group.Go(do)
		}
		return group.Wait()
	}
	if err := together(func() error { return post(client, args[0]) }); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	began := time.Now()
	var made atomic.Int64
	err = together(func() error {
		for made.Add(1) <= requests {
			if err := post(client, args[0]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, time.Since(began))
	return err
}

// post makes one request, and checks the answer.
func post(client *http.Client, url string) error {
	answer, err := client.Post(url, "application/json", strings.NewReader(runRequest))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(runAnswer)) {
		return fmt.Errorf("the server gives %d %s, not %s", answer.StatusCode, text, runAnswer)
	}
	return nil
}
