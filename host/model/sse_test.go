package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// eventsOf reads all events of a stream, each as name=data.
func eventsOf(r io.Reader) (all []string, err error) {
	events := &eventReader{r: bufio.NewReader(r)}
	for {
		ev, err := events.next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return all, err
		}
		all = append(all, ev.name+"="+string(ev.data))
	}
}

func TestEventReader(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"events", "data: a\n\ndata: b\n\n", "=a|=b"},
		{"names", "event: error\ndata: {}\n\ndata: x\n\n", "error={}|=x"},
		{"several lines of data", "data: a\ndata: b\ndata:\ndata:  c\n\n", "=a\nb\n\n c"},
		{"CRLF", "event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", "e=a|=b"},
		{"CR alone", "data: a\r\rdata: b\r\r", "=a|=b"},
		{"CR, and an event that LF begins", "data: a\r\n\r\n\ndata: b\n\n", "=a|=b"},
		{"comments", ": hello\n\ndata: a\n: within\ndata: b\n\n:\n\n", "=a\nb"},
		{"fields that count for nothing", "id: 1\nretry: 5\nfoo: x\nfoo\ndata: a\n\n", "=a"},
		{"an event without data", "event: ping\n\ndata: a\n\n", "=a"},
		{"no empty line at the end", "data: a\n\ndata: b", "=a|=b"},
		{"an end of line, and no empty line", "data: a\n", "=a"},
		{"no space", "data:a\nevent:e\n\n", "e=a"},
		{"a byte order mark", "\ufeffdata: a\n\n", "=a"},
		{"characters beyond ASCII", "data: née † 雨 🙂\n\n", "=née † 雨 🙂"},
		{"nothing", "", ""},
		{"empty data", "data\n\ndata:\n\n", "=|="},
	} {
		for name, reader := range map[string]io.Reader{
			"whole": strings.NewReader(test.text), "bytes": iotest.OneByteReader(strings.NewReader(test.text)),
			"end with data": iotest.DataErrReader(strings.NewReader(test.text)),
		} {
			got, err := eventsOf(reader)
			if joined := strings.Join(got, "|"); err != nil || joined != test.want {
				t.Errorf("%s, %s: %q, %v; want %q", test.name, name, joined, err, test.want)
			}
		}
	}
}

func TestEventReader_Errors(t *testing.T) {
	broken := errors.New("broken")
	got, err := eventsOf(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !slices.Equal(got, []string{"=a"}) || err != broken {
		t.Errorf("%q, %v: want the first event, and the error", got, err)
	}
	endless := &bounded{iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 100))), 99}
	if text, err := io.ReadAll(endless); err != errTooLarge || len(text) != 99 {
		t.Errorf("%d bytes, %v: want 99 and the bound", len(text), err)
	}
	if text, err := io.ReadAll(&bounded{strings.NewReader(strings.Repeat("x", 99)), 99}); err != nil || len(text) != 99 {
		t.Errorf("%d bytes, %v: want all 99", len(text), err)
	}
}

// FuzzEventReader holds that events do not depend on the pieces in which they come, and that what
// is written as an event is read as one.
func FuzzEventReader(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: b\r\n\r\n: c\ndata: {\"d\":1}\n\n"), "x\ny", 3)
	f.Add([]byte("\ufeffdata\rdata:\r\n\r"), "", 1)
	f.Fuzz(func(t *testing.T, text []byte, data string, size int) {
		whole, err := eventsOf(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		events := &eventReader{r: bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(text)), 16+max(0, size%64))}
		for _, want := range whole {
			ev, err := events.next()
			if got := ev.name + "=" + string(ev.data); err != nil || got != want {
				t.Fatalf("in pieces: %q, %v; whole: %q", got, err, want)
			}
		}
		if strings.ContainsAny(data, "\r\n") {
			data = strings.NewReplacer("\r", " ", "\n", "\ndata: ").Replace(data)
		}
		got, err := eventsOf(strings.NewReader(fmt.Sprintf("data: %s\n\n", data)))
		if want := "=" + strings.ReplaceAll(data, "\ndata: ", "\n"); err != nil || len(got) != 1 || got[0] != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	})
}
