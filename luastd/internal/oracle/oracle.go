// Package oracle asks another program for the right answers, for tests that compare with it.
package oracle

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"testing"
)

// Start starts another program that answers questions for a test until it ends. Questions
// and answers are lines of JSON.
func Start(t testing.TB, program string, args ...string) (ask func(question, answer any)) {
	t.Helper()
	cmd := exec.Command(program, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	questions, answers := json.NewEncoder(in), bufio.NewReader(out)
	return func(question, answer any) {
		if err := questions.Encode(question); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadBytes('\n')
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, answer); err != nil {
			t.Fatalf("%s answers %q: %v", program, line, err)
		}
	}
}
