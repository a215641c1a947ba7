//go:build unix

package cmd

import (
	"bufio"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"obelus/store"
	"obelus/store/sqlite"
)

// TestSuspend_BetweenCommits holds that others can append while a busy run is stopped by
// Ctrl-Z, and that it goes on afterwards.
func TestSuspend_BetweenCommits(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":          "return { ticks = 1000000 }",
		"activities/work.lua": `Activity.register("work", function() print("at work") return { text = ("x"):rep(20000) } end)`,
		"plans/p.lua":         `return function() return { calls = { { _tool = "work", _outputPath = "†state.a" } } } end`,
	})
	c := program(t, dir, "run", "plans/p.lua", "-c", "busy")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	lines := bufio.NewScanner(stderr)
	atWork := func() {
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), " at work") {
				return
			}
		}
		t.Fatal("the run has ended")
	}
	for i := range 30 {
		for range 1 + i%4 {
			atWork()
		}
		if err := c.Process.Signal(syscall.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("it has not stopped: %v, %v", status, err)
		}
		log, err := sqlite.Open(filepath.Join(dir, ".obelus/log.db"), sqlite.Options{BusyTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		note := store.Message{Type: store.TypeText, Data: store.Some("meanwhile")}
		batch := store.Batch{Context: "other", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{note}}
		if _, err := log.Append(t.Context(), batch); err != nil {
			t.Errorf("stop %d: %v", i, err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}
