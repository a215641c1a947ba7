package main

import (
	"path/filepath"
	"testing"
)

// BenchmarkWorkload is both sides of each workload, in a new file each time.
func BenchmarkWorkload(b *testing.B) {
	for _, w := range workloads {
		for _, side := range []struct {
			name string
			run  func(settings, string) (times, error)
		}{{"loop", w.loop}, {"obelus", w.ours}} {
			b.Run(w.name+"/"+side.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := side.run(settings{synchronous: "full", parallel: 64}, filepath.Join(b.TempDir(), "log.db")); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*w.count), "µs/"+w.unit)
			})
		}
	}
}
