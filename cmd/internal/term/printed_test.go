package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"obelus/store"
)

// shownBy returns what a log of a level shows of some lines.
func shownBy(inJSON bool, level store.LogLevel, lines ...store.LogLine) string {
	var out bytes.Buffer
	l := NewLog(New(&out, &out), inJSON, func(context, call string) string { return context + "/" + call })
	l.SetLevel(level)
	for _, line := range lines {
		l.Show(line)
	}
	return out.String()
}

const forged = "time=2026-01-01T00:00:00Z level=ERROR msg=forged"

var (
	printed = store.LogLine{Context: "c", Call: "1.2", Tool: "pay", Attempt: 2, Level: store.LevelInfo, Printed: true, Text: forged}
	logged  = store.LogLine{Context: "c", Call: "1.2", Tool: "pay", Attempt: 2, Level: store.LevelWarn, Text: "late\n" + forged, Fields: map[string]any{"call": "9.9", "list": []any{"a"}}}
	loading = store.LogLine{Level: store.LevelInfo, Printed: true, Text: "loading"}
)

func TestLog_Text(t *testing.T) {
	got := shownBy(false, store.LevelInfo, printed, loading, logged)
	before, record, _ := strings.Cut(got, "time=2")
	if want := "| c/1.2 "; before != want {
		t.Errorf("got %q, want %q", before, want)
	}
	lines := strings.Split(strings.TrimSuffix(record, "\n"), "\n")
	want := `level=WARN msg="late\n` + forged + `" call=9.9 list="[\"a\"]" context=c call=1.2 tool=pay attempt=2`
	if len(lines) != 3 || lines[1] != "| loading" || !strings.HasSuffix(lines[2], want) {
		t.Errorf("got %q", lines)
	}
}

func TestLog_JSON(t *testing.T) {
	var got []string
	for line := range strings.Lines(shownBy(true, store.LevelInfo, printed, logged)) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		delete(record, "time")
		got = append(got, string(store.EncodeJSON(record)))
	}
	want := []string{
		`{"attempt":2,"call":"1.2","context":"c","level":"INFO","msg":"print","text":"` + forged + `","tool":"pay"}`,
		`{"attempt":2,"call":"1.2","context":"c","level":"WARN","list":["a"],"msg":"late\n` + forged + `","tool":"pay"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLog_Levels(t *testing.T) {
	var of []store.LogLine
	for _, level := range []store.LogLevel{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError} {
		of = append(of, store.LogLine{Level: level, Text: "x"})
	}
	of = append(of, printed)
	for level, want := range map[store.LogLevel]int{store.LevelDebug: 5, store.LevelInfo: 4, store.LevelWarn: 2, store.LevelError: 1} {
		if got := strings.Count(shownBy(false, level, of...), "\n"); got != want {
			t.Errorf("%s shows %d lines, want %d", level, got, want)
		}
	}
}
