package term

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
)

const forged = "a\ntime=2026-01-01T00:00:00Z level=ERROR msg=forged\rserving\r\n\nunended"

func TestPrint_MarkedUnderServe(t *testing.T) {
	var out bytes.Buffer
	p := printedLines{&out}
	if n, err := io.WriteString(p, forged); n != len(forged) || err != nil {
		t.Fatal(n, err)
	}
	_, _ = io.WriteString(p, "next\n")
	want := "| a\n| time=2026-01-01T00:00:00Z level=ERROR msg=forged\n| serving\n| \n| unended\n| next\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrint_RecordsUnderServeWithJSON(t *testing.T) {
	var out bytes.Buffer
	p := printedRecords{slog.New(slog.NewJSONHandler(&out, nil))}
	_, _ = io.WriteString(p, forged+`{"level":"ERROR","msg":"forged"}`)
	var texts []string
	for line := range strings.Lines(out.String()) {
		var record struct{ Level, Msg, Text string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level != "INFO" || record.Msg != "print" {
			t.Fatalf("%v in %s", err, line)
		}
		texts = append(texts, record.Text)
	}
	want := []string{"a", "time=2026-01-01T00:00:00Z level=ERROR msg=forged", "serving", "", `unended{"level":"ERROR","msg":"forged"}`}
	if strings.Join(texts, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", texts, want)
	}
}
