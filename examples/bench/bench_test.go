package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"obelus/host"
)

// TestMain runs this program as a client if a workload starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == clientArg {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestWorkloads holds that both sides do the work, each to its end: they look at
// what it comes to themselves.
func TestWorkloads(t *testing.T) {
	for _, synchronous := range []string{"full", "normal"} {
		s := settings{synchronous: synchronous, parallel: 8}
		for name, side := range map[string]func(file string) (times, error){
			"loop chain":      func(file string) (times, error) { return loopChain(s, file, "add", 20, 5) },
			"obelus chain":    func(file string) (times, error) { return ourChain(s, file, "add", 20, 5) },
			"loop logged":     func(file string) (times, error) { return loopChain(s, file, "tell", 20, 0) },
			"obelus logged":   func(file string) (times, error) { return ourChain(s, file, "tell", 20, 0) },
			"loop fanout":     func(file string) (times, error) { return loopFanout(s, file, 20) },
			"obelus fanout":   func(file string) (times, error) { return ourFanout(s, file, 20) },
			"loop contexts":   func(file string) (times, error) { return loopContexts(s, file, 20, 3) },
			"obelus contexts": func(file string) (times, error) { return ourContexts(s, file, 20, 3) },
			"loop serve":      func(file string) (times, error) { return loopServe(s, file, 4, 20) },
			"obelus serve":    func(file string) (times, error) { return ourServe(s, file, 4, 20) },
		} {
			got, err := side(filepath.Join(t.TempDir(), "log.db"))
			if err != nil || got.whole <= 0 {
				t.Errorf("%s, synchronous=%s: %v, %v", name, synchronous, got, err)
			}
			if strings.HasSuffix(name, "chain") && (got.first <= 0 || got.last <= 0 || got.first+got.last > got.whole) {
				t.Errorf("%s: its ends are %v", name, got)
			}
		}
	}
}

// TestReport holds that a workload is measured and told, and that one that is
// none is refused.
func TestReport(t *testing.T) {
	s := settings{synchronous: "normal", parallel: 8}
	var out strings.Builder
	if err := run(&out, s, 1, t.TempDir(), []string{"chain"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a chain of 100 steps", "a flush takes ", "loop ", "obelus ", "ratio ", " allocations of ", "µs of CPU, ", " pages, ", " switches a step"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not tell %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "fan") {
		t.Errorf("it measures more than it was asked to:\n%s", out.String())
	}
	for _, err := range []error{run(&out, s, 1, t.TempDir(), []string{"chian"}), run(&out, s, 0, t.TempDir(), nil), run(&out, s, 1, "/nowhere/at/all", nil)} {
		if err == nil {
			t.Error("it measures what it can't")
		}
	}
}

// BenchmarkWorkload is both sides of each workload, in a new file each time.
func BenchmarkWorkload(b *testing.B) {
	host.KeepHeap(host.HeapFloor)
	for _, w := range workloads {
		for _, side := range []struct {
			name string
			run  func(settings, string) (times, error)
		}{{"loop", w.loop}, {"obelus", w.ours}} {
			b.Run(w.name+"/"+side.name, func(b *testing.B) {
				b.ReportAllocs()
				var whole time.Duration // without the time that opening takes
				for b.Loop() {
					t, err := side.run(settings{synchronous: "full", parallel: defaultParallel}, filepath.Join(b.TempDir(), "log.db"))
					if err != nil {
						b.Fatal(err)
					}
					whole += t.whole
				}
				b.ReportMetric(micros(whole)/float64(b.N*w.count), "µs/"+w.unit)
			})
		}
	}
}
