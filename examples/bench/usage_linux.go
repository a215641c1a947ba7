package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

const countsSystemUsage = true

// systemUsed returns the system's counters for this process. The blocks of getrusage do not serve
// as pages: where the page cache holds a file in large folios, a page that is written counts
// as all of its folio.
func systemUsed() (s systemUsage, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return s, err
	}
	s.cpu, s.switches = time.Duration(u.Utime.Nano()+u.Stime.Nano()), int64(u.Nvcsw)
	counts, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return s, err
	}
	_, written, _ := bytes.Cut(counts, []byte("wchar: "))
	_, err = fmt.Sscan(string(written), &s.written)
	return s, err
}
