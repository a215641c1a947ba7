package cmd

import (
	"bytes"
	"strings"
	"testing"
)

// brokenWriter is a fault of the program.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { panic("no such element") }

// TestMain_PanicInWords: nobody but who asks for it is shown how the program is built.
func TestMain_PanicInWords(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var stderr bytes.Buffer
		args := []string{"version"}
		if verbose {
			args = append(args, "-v")
		}
		if status := run(Config{}, args, strings.NewReader(""), brokenWriter{}, &stderr); status != exitFailed {
			t.Errorf("exit status %d", status)
		}
		text := stderr.String()
		if !strings.HasPrefix(text, "obelus: this is a fault of obelus: no such element (") || strings.Contains(text, "goroutine") != verbose {
			t.Errorf("it says %s", text)
		}
	}
}
