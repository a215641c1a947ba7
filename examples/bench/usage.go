package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// usage counts the resources that this process used, in all or between two times.
type usage struct {
	allocations uint64 // of Go's heap
	bytes       uint64 // that the allocations took
	system      systemUsage
}

// systemUsage is the part of usage that the system counts. It is zero where countsSystemUsage is
// false.
type systemUsage struct {
	cpu      time.Duration // user's and system's
	written  int64         // bytes: write-ahead log, checkpoints, and a server's answers
	switches int64         // how often a thread waited: voluntary context switches
}

// pageSize is the size of a page of SQLite's files.
const pageSize = 4096

// usedSoFar returns what this process has used since it began.
func usedSoFar() (u usage, err error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.allocations, u.bytes = m.Mallocs, m.TotalAlloc
	u.system, err = systemUsed()
	return u, err
}

// usedSince returns what this process has used since an earlier time.
func usedSince(before usage) (u usage, err error) {
	u, err = usedSoFar()
	u.allocations -= before.allocations
	u.bytes -= before.bytes
	u.system.cpu -= before.system.cpu
	u.system.written -= before.system.written
	u.system.switches -= before.system.switches
	return u, err
}

// describe prints the medians of turns, for each unit of a workload.
func describe(all []times, count int, unit string) string {
	each := func(of func(u usage) float64) string {
		return short(median(all, func(t times) float64 { return of(t.used) / float64(count) }))
	}
	text := fmt.Sprintf("%s allocations of %s KB", each(func(u usage) float64 { return float64(u.allocations) }),
		each(func(u usage) float64 { return float64(u.bytes) / 1000 }))
	if countsSystemUsage {
		text += fmt.Sprintf(", %s µs of CPU, %s pages, %s switches", each(func(u usage) float64 { return micros(u.system.cpu) }),
			each(func(u usage) float64 { return float64(u.system.written) / pageSize }), each(func(u usage) float64 { return float64(u.system.switches) }))
	} else {
		text += "; CPU, pages and switches are not counted on this system"
	}
	return text + " a " + unit
}

// flushTime returns the median time in which a written page of a file in a folder is flushed.
func flushTime(dir string) (median time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	took := make([]time.Duration, 33)
	for i := range took {
		if _, err := f.WriteAt(make([]byte, pageSize), 0); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
