// Command bench times Obelus beside the loop that one would write by hand for the same work: Lua
// run by gopher-lua, one SQLite row for each step, the value of the step before read back by
// SELECT; and as a server, beside an HTTP handler written by hand. The two take turns, each in a
// new file, and the figures are medians over the rounds, with the smallest and the largest in
// brackets.
//
//	go run ./examples/bench
//	go run ./examples/bench -synchronous normal -rounds 21 chain
//	go run ./examples/bench serve
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"obelus/host"
)

// settings are the same for both sides.
type settings struct {
	synchronous string // of SQLite: full or normal
	parallel    int    // calls that Obelus runs at once, and contexts
}

// logger receives the records of steps that log.
var logger = slog.New(slog.NewTextHandler(io.Discard, nil))

// times are the durations of one turn: of all of it, and of the first and the last part of a long
// one. used counts the process's resources during it.
type times struct {
	whole, first, last time.Duration
	used               usage
}

// pass records the first and the last part when a step of n is done.
func (t *times) pass(step, steps, part int, began time.Time) {
	if part == 0 {
		return
	}
	switch step {
	case part:
		t.first = time.Since(began)
	case steps - part:
		t.last = -time.Since(began)
	case steps:
		t.last += time.Since(began)
	}
}

// workload is work that each side does in a file of its own.
type workload struct {
	name  string
	title string
	count int    // number of units
	unit  string // name of the unit
	aim   string
	loop  func(settings, string) (times, error)
	ours  func(settings, string) (times, error)
}

const partOfHistory = 500

// defaultParallel is about the number from which more at once gain nothing, with two processors.
const defaultParallel = 128

var workloads = []workload{
	{"chain", "a chain of 100 steps, each of which reads the one before", 100, "step", "at most 0.30 of the loop's time (3 times at synchronous=normal)",
		func(s settings, file string) (times, error) { return loopChain(s, file, "add", 100, 0) },
		func(s settings, file string) (times, error) { return ourChain(s, file, "add", 100, 0) }},
	{"logged", "a chain of 100 steps that log, so that each waits until the one before is on the disk", 100, "step", "at most 1.25 times the loop's time",
		func(s settings, file string) (times, error) { return loopChain(s, file, "tell", 100, 0) },
		func(s settings, file string) (times, error) { return ourChain(s, file, "tell", 100, 0) }},
	{"fanout", "1,000 steps side by side, and one that joins them", 1001, "step", "at most 0.20 of the loop's time",
		func(s settings, file string) (times, error) { return loopFanout(s, file, 1000) },
		func(s settings, file string) (times, error) { return ourFanout(s, file, 1000) }},
	{"history", "one history of 5,000 steps", 5000, "step", "at most 0.35 of the loop's time; its last 500 steps at most 1.05 times its first 500",
		func(s settings, file string) (times, error) { return loopChain(s, file, "add", 5000, partOfHistory) },
		func(s settings, file string) (times, error) { return ourChain(s, file, "add", 5000, partOfHistory) }},
	{"contexts", "1,000 contexts of 5 steps", 1000, "context", "at most 0.30 of the loop's time",
		func(s settings, file string) (times, error) { return loopContexts(s, file, 1000, 5) },
		func(s settings, file string) (times, error) { return ourContexts(s, file, 1000, 5) }},
	{"serve", "a plan of one call over HTTP, asked for by 64 clients", 2000, "request", "at most 1/3 (0.33) of the handler's time where a flush takes 3 ms, at most its time where it takes 60 µs",
		func(s settings, file string) (times, error) { return loopServe(s, file, 64, 2000) },
		func(s settings, file string) (times, error) { return ourServe(s, file, 64, 2000) }},
	{"serve-one", "the same, asked for by one client", 500, "request", "at most 1.3 times the handler's time where a flush takes 3 ms",
		func(s settings, file string) (times, error) { return loopServe(s, file, 1, 500) },
		func(s settings, file string) (times, error) { return ourServe(s, file, 1, 500) }},
}

// names lists the workloads.
func names() (all []string) {
	for _, w := range workloads {
		all = append(all, w.name)
	}
	return all
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == clientArg {
		exit(ask(os.Stdin, os.Stdout, os.Args[2:]))
		return
	}
	host.KeepHeap(host.HeapFloor) // as the command obelus does, for both
	var s settings
	flag.StringVar(&s.synchronous, "synchronous", "full", "what SQLite waits for: `full` is safe against a power cut, normal is not")
	flag.IntVar(&s.parallel, "parallel", defaultParallel, "how many calls, or contexts, run at once")
	rounds := flag.Int("rounds", 9, "how often each side has its turn")
	dir := flag.String("dir", os.TempDir(), "where the files are made; a disk of its own tells most")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [flags] ["+strings.Join(names(), "|")+"]…")
		flag.PrintDefaults()
	}
	flag.Parse()
	exit(run(os.Stdout, s, *rounds, *dir, flag.Args()))
}

// exit ends the process if there is an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, s settings, rounds int, dir string, chosen []string) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds must be at least 1, not %d", rounds)
	}
	for _, name := range chosen {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("there is no workload %q: there are %s", name, strings.Join(names(), ", "))
		}
	}
	fmt.Fprintf(out, "synchronous=%s, %d at once, %d rounds\n", s.synchronous, s.parallel, rounds)
	for _, w := range workloads {
		if len(chosen) > 0 && !slices.Contains(chosen, w.name) {
			continue
		}
		if err := w.measure(out, s, rounds, dir); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// measure runs both sides in turns, after one that does not count.
func (w workload) measure(out io.Writer, s settings, rounds int, dir string) error {
	var loop, ours []times
	var flushes []time.Duration
	for round := range rounds + 1 {
		flush, err := inFolder(dir, flushTime)
		if err != nil {
			return err
		}
		flushes = append(flushes, flush)
		theirs, err := turn(w.loop, s, dir)
		if err != nil {
			return err
		}
		own, err := turn(w.ours, s, dir)
		if err != nil {
			return err
		}
		if round > 0 {
			loop, ours = append(loop, theirs), append(ours, own)
		}
	}
	fmt.Fprintf(out, "\n%s (aim: %s)\n", w.title, w.aim)
	fmt.Fprintf(out, "  a flush takes %s µs\n", spread(flushes, micros))
	whole := func(t times) float64 { return micros(t.whole) / float64(w.count) }
	fmt.Fprintf(out, "  loop    %s µs/%s, %.0f %ss/s\n", spread(loop, whole), w.unit, 1e6/median(loop, whole), w.unit)
	fmt.Fprintf(out, "          %s\n", describe(loop, w.count, w.unit))
	fmt.Fprintf(out, "  obelus  %s µs/%s, %.0f %ss/s\n", spread(ours, whole), w.unit, 1e6/median(ours, whole), w.unit)
	fmt.Fprintf(out, "          %s\n", describe(ours, w.count, w.unit))
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = whole(ours[i]) / whole(loop[i])
	}
	itself := func(v float64) float64 { return v }
	fmt.Fprintf(out, "  ratio   %s\n", spread(ratios, itself))
	if ours[0].first > 0 {
		ends := func(t times) float64 { return micros(t.last) / micros(t.first) }
		fmt.Fprintf(out, "  last 500 steps beside the first: loop %s, obelus %s\n", spread(loop, ends), spread(ours, ends))
	}
	return nil
}

// turn runs one side in a new folder.
func turn(side func(settings, string) (times, error), s settings, dir string) (times, error) {
	return inFolder(dir, func(folder string) (times, error) { return side(s, filepath.Join(folder, "log.db")) })
}

// inFolder calls a function with a new folder, which is removed after it.
func inFolder[T any](dir string, do func(folder string) (T, error)) (result T, err error) {
	folder, err := os.MkdirTemp(dir, "obelus-bench-")
	if err != nil {
		return result, err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(folder)) }()
	return do(folder)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func sorted[T any](all []T, of func(T) float64) []float64 {
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	slices.Sort(values)
	return values
}

func median[T any](all []T, of func(T) float64) float64 {
	values := sorted(all, of)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// spread prints the median, the smallest and the largest figure.
func spread[T any](all []T, of func(T) float64) string {
	values := sorted(all, of)
	return fmt.Sprintf("%6s (%s to %s)", short(median(all, of)), short(values[0]), short(values[len(values)-1]))
}

// short prints three digits of a figure, or all digits before its point.
func short(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
