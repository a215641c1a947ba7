package cmd

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// screen is what a person sees of what is written to a terminal, as far as the
// program moves its cursor.
type screen struct {
	columns, rows int
	lines         [][]rune // all that there ever were; the last ones are on the screen
	row, column   int
}

func (s *screen) write(text string) {
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\r':
			s.column = 0
		case '\n':
			s.row++
		case '\x1b':
			number := ""
			for i += 2; i < len(runes) && strings.ContainsRune("0123456789;", runes[i]); i++ {
				number += string(runes[i])
			}
			n, _ := strconv.Atoi(number)
			switch runes[i] {
			case 'A':
				s.row = max(s.row-n, len(s.lines)-s.rows, 0)
			case 'J':
				s.lines = s.lines[:s.row+1]
				s.lines[s.row] = s.lines[s.row][:min(s.column, len(s.lines[s.row]))]
			}
		default:
			if s.column == s.columns {
				s.row, s.column = s.row+1, 0
			}
			s.grow()
			line := s.lines[s.row]
			for len(line) <= s.column {
				line = append(line, ' ')
			}
			line[s.column] = r
			s.lines[s.row] = line
			s.column++
		}
		s.grow()
	}
}

func (s *screen) grow() {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
}

func (s *screen) String() string {
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// onScreen runs the program at a terminal whose lines can be taken back, and gives
// what stands there in the end.
func onScreen(t *testing.T, dir string, rows int, typed []reply, args ...string) (seen string, status int) {
	t.Helper()
	of := converse(t, dir, "xterm", rows, typed, args...)
	s := &screen{columns: 60, rows: rows}
	s.write(of.written)
	return s.String(), of.status
}

var longNames = map[string]string{
	"obelus.lua": "return { parallel = 16 }",
	"activities/long.lua": `
		local time = require "time"
		Activity.register("aNameThatIsLongerThanTheTerminalIsWideByWhichItsLineWouldBreak", function(call) time.sleep(call.s) print("it says " .. call.s) end)`,
	"plans/long.lua": `
		local calls = {}
		for i = 1, 12 do calls[i] = { _tool = "aNameThatIsLongerThanTheTerminalIsWideByWhichItsLineWouldBreak", s = 0.3 + i / 20, _outputPath = "†a" .. i } end
		return calls`,
}

// TestProgress_LeavesNothing holds that of what moves nothing is left, be the
// names of calls ever so long or the terminal low.
func TestProgress_LeavesNothing(t *testing.T) {
	for _, rows := range []int{24, 5, 1} {
		dir := project(t, longNames)
		seen, status := onScreen(t, dir, rows, nil, "run", "plans/long.lua", "-c", "c")
		if status != exitDone {
			t.Errorf("it ended with %d", status)
		}
		if n := strings.Count(seen, "it says"); n != 12 || strings.Count(seen, " done ") != 12 || strings.ContainsAny(seen, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") || strings.Contains(seen, "more") {
			t.Errorf("in %d rows this is left:\n%s", rows, seen)
		}
	}
}

// TestProgress_Interrupted holds that the ^C of a terminal leaves nothing of what
// moves.
func TestProgress_Interrupted(t *testing.T) {
	dir := project(t, longNames)
	seen, _ := onScreen(t, dir, 24, []reply{{"⠋", "\x03"}}, "run", "plans/long.lua", "-c", "c")
	seen = strings.Replace(seen, "^Cinterrupted", "interrupted", 1) // if the program was quicker than the terminal
	if !strings.Contains("\n"+seen, "\ninterrupted: what runs may come to its end") || strings.ContainsAny(seen, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏^") {
		t.Errorf("this is left:\n%s", seen)
	}
}

// TestRun_EndsWithSummary holds that a person at a terminal is told how many calls ended how.
func TestRun_EndsWithSummary(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":           "return {}",
		"activities/check.lua": `Activity.register("check", function(call) if call.bad then error("it is bad") end return 1 end)`,
		"plans/p.lua":          `return { { _tool = "check", _outputPath = "†state.a" }, { _tool = "check", bad = true, _outputPath = "†state.b" }, { _tool = "check", n = "†state.b" } }`,
	})
	seen, status := onScreen(t, dir, 24, nil, "run", "plans/p.lua", "-c", "c")
	if status != exitFailed || !regexp.MustCompile(`(?m)^3 calls: 1 done, 1 failed, 1 skipped; [0-9.]+ (µs|ms|s)$`).MatchString(seen) {
		t.Errorf("it ended with %d, and this is left:\n%s", status, seen)
	}
	if seen, _ := onScreen(t, dir, 24, nil, "run", "plans/p.lua", "-q"); strings.Contains(seen, "calls") {
		t.Errorf("-q leaves this:\n%s", seen)
	}
}
