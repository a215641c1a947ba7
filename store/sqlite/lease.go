package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"obelus/store"
)

// process identifies the holder of a lease. A pid is reused, after the next boot at the latest, so
// the other fields distinguish one process from a later one.
type process struct {
	host, boot string
	namespace  string // namespace of the pid, and start time of the process
	pid        int64
	started    string
}

var self = sync.OnceValue(func() process {
	host, _ := os.Hostname() // without a name it judges no other process
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	pid := int64(os.Getpid())
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	if clock, _ := os.Readlink("/proc/self/ns/time"); clock != "" && clock != commonTime {
		namespace += " " + clock
	}
	return process{host: host, boot: strings.TrimSpace(string(boot)), namespace: namespace, pid: pid, started: started(pid)}
})

// commonTime is the namespace of time that Linux begins with. In another one processes
// seem to have started at other times.
const commonTime = "time:[4026531834]"

func (p process) String() string {
	switch own := self(); {
	case p == own:
		return "this process"
	case p.host == own.host && p.namespace != own.namespace:
		return fmt.Sprintf("process %d of another namespace of host %s", p.pid, p.host)
	}
	return fmt.Sprintf("process %d on host %s", p.pid, p.host)
}

// dead reports that the process is known to have ended: it was one of this machine and visible from
// here. A container may have the host's name and processes of its own, and some (gVisor, lxcfs)
// have a boot of their own too, so that another boot does not prove that this machine has been
// restarted.
func (p process) dead() bool {
	own := self()
	here := p.host == own.host && own.host != "" && p.boot == own.boot && p.namespace == own.namespace
	return p != own && here && (hasEnded(p.pid) || differ(p.started, started(p.pid)))
}

// differ compares what may not be known.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// ended is the start time of a process that has ended and whose parent has not waited for it yet:
// its pid is not free until then.
const ended = "ended"

// started is when a process began, in a unit of the system's own; "" if that
// can't be told.
func started(pid int64) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The second field is a name in brackets, with anything in it.
	const third, wanted = 3, 22
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= wanted-third {
		return ""
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return ended
	}
	return fields[wanted-third]
}

// lease is a row of leases. Without a row the lease is free, and the epoch is one that no lease of
// its context has had since.
type lease struct {
	epoch   int64
	holder  process
	until   int64
	changed bool
}

const (
	// A context without a row gets the row of the empty name: a free lease, with the greatest epoch of
	// all contexts that were pruned. It uses CASE, since SQLite would sort two rows to choose one.
	selectLease = `SELECT epoch, host, boot, namespace, pid, started, until FROM leases
		WHERE context = CASE WHEN EXISTS (SELECT 1 FROM leases WHERE context = ?1) THEN ?1 ELSE '' END`
	endLease     = `UPDATE leases SET until = 0 WHERE context = ?1 AND epoch = ?2`
	replaceLease = `REPLACE INTO leases (context, epoch, host, boot, namespace, pid, started, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`
)

func (c *conn) lease(ctx context.Context, name string) (*lease, error) {
	row, err := c.one(ctx, selectLease, name)
	if err != nil {
		return nil, err
	}
	return leaseOf(row), nil
}

func leaseOf(row []driver.Value) *lease {
	holder := process{host: text(row[1]), boot: text(row[2]), namespace: text(row[3]), pid: integer(row[4]), started: text(row[5])}
	return &lease{epoch: integer(row[0]), holder: holder, until: integer(row[6])}
}

// anyHeld returns an error for a context that is being run.
func (c *conn) anyHeld(ctx context.Context) error {
	var names []string
	err := c.each(ctx, `SELECT context FROM leases WHERE until > ?1`, []driver.Value{time.Now().UnixMilli()}, func(row []driver.Value) (bool, error) {
		names = append(names, text(row[0]))
		return true, nil
	})
	for _, name := range names {
		if held, err := c.lease(ctx, name); err != nil {
			return err
		} else if holder := held.holds(time.Now()); holder != "" {
			return &store.HeldError{Context: name, Holder: holder}
		}
	}
	return err
}

// holds returns the present holder of the lease, in words; "" if it is free.
func (l *lease) holds(now time.Time) string {
	if l.until <= now.UnixMilli() || l.holder.dead() {
		return ""
	}
	return l.holder.String()
}

// use changes the lease as an append does.
func (l *lease) use(b *store.Batch, now time.Time) error {
	if b.Lease == nil {
		return nil
	}
	switch {
	case b.Lease.Epoch != 0:
		if b.Lease.Epoch != l.epoch || l.until == 0 {
			return &store.HeldError{Context: b.Context, Holder: l.holds(now)}
		}
	default:
		if holder := l.holds(now); holder != "" {
			return &store.HeldError{Context: b.Context, Holder: holder}
		}
		*l = lease{epoch: l.epoch + 1, holder: self(), changed: true}
	}
	switch {
	case b.Lease.For <= 0:
		l.until, l.changed = 0, true
	case l.until-now.UnixMilli() < b.Lease.For.Milliseconds()/2 || l.until == 0:
		l.until, l.changed = now.Add(b.Lease.For).UnixMilli(), true
	}
	return nil
}

func (w *writer) putLease(name string, c *ends, l lease) error {
	if !l.changed {
		return nil
	}
	kept := l
	kept.changed = false
	c.lease = &kept
	return w.exec(replaceLease, name, l.epoch, l.holder.host, l.holder.boot, l.holder.namespace, l.holder.pid, l.holder.started, l.until)
}

// noteLease records a lease that an append has taken or given back.
func (w *writer) noteLease(r *request) {
	switch lease := r.batch.Lease; {
	case r.err != nil || lease == nil:
	case lease.For <= 0:
		delete(w.holding, r.batch.Context)
	case lease.Epoch == 0:
		w.holding[r.batch.Context] = r.result.Epoch
	}
}

// releaseLeases gives back all leases held, since no append can follow, and writes the changes of
// rows that were put off. Where that fails the leases lapse by themselves.
func (w *writer) releaseLeases() {
	if w.forget(); len(w.holding)+len(w.late) == 0 {
		return
	}
	_ = w.inPlace(func() error {
		if err := w.writeRows(); err != nil {
			return err
		}
		for name, epoch := range w.holding {
			if err := w.exec(endLease, name, epoch); err != nil {
				return err
			}
		}
		return nil
	})
}

// Holder implements [store.Log].
func (l *Log) Holder(ctx context.Context, name string) (holder string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	err = l.readers.read(func(c *conn) error {
		held, err := c.lease(ctx, name)
		if err == nil {
			holder = held.holds(time.Now())
		}
		return err
	})
	return holder, explain(l.path, err)
}
