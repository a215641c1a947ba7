package term

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"obelus/cmd/internal/termtest"
)

// TestProgress_FitsTheTerminal holds that lines that move are as wide and as many as the
// terminal has room for, and are found again once it is narrower.
func TestProgress_FitsTheTerminal(t *testing.T) {
	person, tty := termtest.Open(t)
	defer tty.Close()
	l := &liveLines{paint: func(_, text string) Painted { return Painted(text) }}
	for range 12 {
		l.running = append(l.running, liveCall{"1.1", strings.Repeat("x", 80), time.Now()})
	}
	terminal := bufio.NewReader(person)
	told := func(do func(io.Writer)) string {
		do(tty)
		io.WriteString(tty, "\x00")
		said, err := terminal.ReadString(0)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(strings.TrimSuffix(said, "\x00"), "\r\n", "\n")
	}
	for _, of := range []struct{ columns, rows, lines, upAt40 int }{{60, 24, 9, 17}, {20, 24, 9, 9}, {60, 6, 5, 9}, {3, 24, 9, 9}} {
		termtest.Resize(t, person, of.columns, of.rows)
		drawn := told(l.draw)
		lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
		if len(lines) != of.lines {
			t.Errorf("%d lines, not %d:\n%s", len(lines), of.lines, drawn)
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > of.columns && of.columns > 10 {
				t.Errorf("%d columns, not %d: %s", n, of.columns, line)
			}
		}
		termtest.Resize(t, person, 40, 24)
		if erased, want := told(l.erase), "\r\x1b["+strconv.Itoa(of.upAt40)+"A\x1b[J"; erased != want && of.columns > 10 {
			t.Errorf("%dx%d: erased by %q, not %q", of.columns, of.rows, erased, want)
		}
	}
}

// TestTerminal_UnendedLineAboveWhatMoves holds that a line without an end is kept above the lines
// that move.
func TestTerminal_UnendedLineAboveWhatMoves(t *testing.T) {
	var shown strings.Builder
	term := &Terminal{Err: &shown, live: &liveLines{running: []liveCall{{"1.1", "write", time.Now()}}, paint: func(_, text string) Painted { return Painted(text) }}}
	term.live.draw(&shown)
	term.Write([]byte("abc"))
	term.Infof("done")
	if got := shown.String(); !strings.Contains(got, "\x1b[1A\x1b[Jabc\n⠋ 1.1 write") || !strings.Contains(got, "\x1b[1A\x1b[Jdone\n⠋") {
		t.Errorf("%q", got)
	}
}
