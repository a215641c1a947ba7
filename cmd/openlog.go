package cmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/roots"
	"obelus/cmd/internal/suspend"
	"obelus/engine"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host"
	"obelus/host/ops"
	"obelus/host/schedule"
	"obelus/store"
	"obelus/store/sqlite"
)

// dbPath returns the log's file: --db, else the setting, else below the project, else below the
// working directory.
func (a *app) dbPath() (string, error) {
	if a.dbFlag != "" {
		return a.dbFlag, sqlite.CheckPath(a.dbFlag)
	}
	if a.host == nil {
		if err := a.openSettings(); err != nil {
			return "", err
		}
	}
	db := cmp.Or(a.host.Generation().Settings().DB, host.DefaultLog)
	if err := sqlite.CheckPath(db); err != nil {
		return "", fmt.Errorf("the setting db: %w", err)
	}
	if a.found {
		return filepath.Join(a.dir, filepath.FromSlash(db)), nil
	}
	return filepath.FromSlash(db), nil
}

// wrapLog returns the log that commands use for a log that was opened. Tests wrap it to inject
// faults.
var wrapLog = func(log *sqlite.Log) store.Log { return log }

// openLog opens the log for writing, and creates it if it is absent.
func (a *app) openLog() error {
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	log, err := sqlite.Open(path, a.logOptions())
	if err != nil {
		return err
	}
	a.log, a.unsuspend = wrapLog(log), suspend.BetweenCommits(log)
	return nil
}

// logOptions returns how the project's settings want its log written.
func (a *app) logOptions() sqlite.Options {
	if a.host == nil {
		return sqlite.Options{}
	}
	return sqlite.Options{Synchronous: a.host.Generation().Settings().Synchronous}
}

// schemaOptions returns how the project's settings want values validated.
func (a *app) schemaOptions() []schema.Option {
	if a.host == nil {
		return nil
	}
	return a.host.Generation().Registry().Schemas
}

// openExisting opens a log that exists, and brings it up to date. It is an error if there is none.
func (a *app) openExisting(options sqlite.Options) error {
	err := a.openIfPresent(options)
	if !errors.Is(err, sqlite.ErrOlder) {
		return err
	}
	a.term.Infof("the log is of an older obelus: bringing it up to date")
	if err = a.openIfPresent(sqlite.Options{}); errors.Is(err, sqlite.ErrReadOnly) {
		err = fmt.Errorf("%w (a log of an older obelus is brought up to date before it is read; a copy of it will do)", err)
	}
	return err
}

// openIfPresent opens a log that exists. For reading it is opened as it is, also if it is old.
func (a *app) openIfPresent(options sqlite.Options) error {
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("there is no log at %s: run a plan first, or name the log by --db or the project by -C", path)
	}
	log, err := sqlite.Open(path, options)
	if err != nil {
		return err
	}
	a.log = wrapLog(log)
	return nil
}

// openForReading opens the log and returns the context of a reading command.
func (a *app) openForReading(ctx context.Context) (name string, err error) {
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return "", err
	}
	return a.readContext(ctx)
}

// project returns the project with its log, which both are open.
func (a *app) project() ops.Project { return ops.Project{Host: a.host, Log: a.log} }

// lastRun is the newest run of a context, with its plan as the project has it now.
type lastRun struct {
	context   string
	request   *plan.Request // of the plan's file as it is now; nil without one
	runner    *engine.Runner
	planError error // the error of reading the plan's file, or nil
}

// openLastRun opens the project and the log, and returns the newest run of the context.
func (a *app) openLastRun(ctx context.Context) (run lastRun, err error) {
	if err := a.openProject(""); err != nil {
		return run, err
	}
	if run.context, err = a.openForReading(ctx); err != nil {
		return run, err
	}
	run.runner, run.request, run.planError, err = a.project().LastRun(ctx, run.context)
	return run, err
}

// readContext returns the context of a reading command: the one whose name begins with -c, else
// the root context that was appended to last, and that is not the record of a schedule.
func (a *app) readContext(ctx context.Context) (string, error) {
	var matches, inside []string
	for info, err := range a.log.Contexts(ctx, store.ContextFilter{Prefix: a.context}) {
		switch {
		case err != nil:
			return "", err
		case a.context == "" && info.Origin.Parent == "" && !schedule.IsRecord(info.Context), info.Context == a.context:
			return info.Context, nil
		case info.Origin.Parent != "":
			inside = append(inside, info.Context)
		case a.context != "":
			matches = append(matches, info.Context)
		}
	}
	if len(matches) == 0 { // the name of a delegate's context begins with its parent's
		matches = inside
	}
	switch {
	case a.context == "":
		return "", exit.Usage("the log holds no contexts yet: run a plan first")
	case len(matches) == 0:
		return "", a.noContext()
	case len(matches) > 1:
		return "", exit.Usagef("-c %s is the start of %d contexts, %s among them: give more of it", a.context, len(matches), strings.Join(matches[:2], " and "))
	}
	return matches[0], nil
}

func (a *app) noContext() error {
	return fmt.Errorf("%w: %s (obelus contexts lists them)", store.ErrNoContext, a.context)
}

// roots returns what finds the context that a command is to change.
func (a *app) roots() *roots.Finder {
	return &roots.Finder{Log: a.log, Context: a.context, Prefix: a.commandPrefix()}
}

// checkAt returns an error for an --at that no message can have.
func checkAt(c *cobra.Command, at int64) error {
	if c.Flags().Changed("at") && at < 1 {
		return exit.Usagef("--at %d: the first message has seq 1", at)
	}
	return nil
}

// newContext returns a name that no other context has.
func newContext() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// writeContext returns the context that a run or an append goes to: the one that -c names, else a
// new one.
func (a *app) writeContext() (string, error) {
	if a.context == "" {
		return newContext(), nil
	}
	if err := store.CheckContext(a.context); err != nil {
		return "", exit.Usage("-c " + err.Error())
	}
	return a.context, nil
}
