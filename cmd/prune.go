package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/sqlite"
)

// pruneOptions are the flags of prune.
type pruneOptions struct {
	older    string
	statuses []string
	dry      bool
	noVacuum bool
}

func pruneCommand(a *app) *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use:   "prune [CONTEXT…]",
		Short: "remove whole contexts from the log",
		Long: `Remove contexts with all that they hold: those that are named, or those that were
last appended to --older-than some time ago, or stand at a --status; with both,
those for which both is true. Their delegates' contexts go with them. Those that
are named go all or none; others go some ten thousand messages at a time, in
whole contexts, so that runs can append meanwhile.

A context that a fork needs stays, and so does one whose run is unfinished, if only
interrupted, and not cancelled, but for a fork in which nobody has gone on with it. The file is made smaller
afterwards; nobody else can append meanwhile, and --no-vacuum leaves it out.`,
		Example: `  obelus prune --older-than 30d --dry-run
  obelus prune --status done,failed --older-than 24h
  obelus prune order-7`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return pruneContexts(c.Context(), a, args, o) },
	}
	c.Flags().StringVar(&o.older, "older-than", "", "contexts that were appended to last before: a `TIME` ago (30d, 12h), or a date (without a zone, of this machine's)")
	c.Flags().StringSliceVar(&o.statuses, "status", nil, "contexts whose run is `done,failed,...`, or none for those without one")
	c.Flags().BoolVar(&o.dry, "dry-run", false, "tell what would go, and remove nothing")
	c.Flags().BoolVar(&o.noVacuum, "no-vacuum", false, "leave the file as large as it is")
	return c
}

func pruneContexts(ctx context.Context, a *app, names []string, o pruneOptions) error {
	before, err := o.before()
	if err != nil {
		return err
	}
	if len(names) == 0 && o.older == "" && len(o.statuses) == 0 {
		return exit.Usage("prune what? Name contexts, or say --older-than or --status")
	}
	if err := checkWords("status", o.statuses, append(journal.RunStatuses(), "none")...); err != nil {
		return err
	}
	if err := a.openSettings(); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	removed, inside, failed := removeContexts(ctx, a, names, before, o)
	for _, name := range removed {
		if err := printPruned(a, name); err != nil {
			return err
		}
	}
	if len(removed) > 0 || failed == nil {
		reportPruned(a, len(removed), inside, o)
	}
	if failed != nil || len(removed) == 0 || o.dry || o.noVacuum {
		return failed
	}
	return vacuumLog(ctx, a)
}

// pruneTries is how often prune chooses anew when others are at the same contexts.
const pruneTries = 10

// outrun tells that what was chosen is no longer what it was. What goes by itself
// is left out the next time; what is named is told of.
func outrun(err error, named bool) bool {
	var changed *store.ChangedError
	var needed *store.NeededError
	var held *store.HeldError
	return errors.As(err, &changed) || !named && (errors.As(err, &needed) || errors.As(err, &held) || errors.Is(err, store.ErrNoContext))
}

// removeContexts chooses what goes and removes it, anew as long as others are faster. inside
// is how many contexts of delegates went with what was removed, also where an error
// ends that.
func removeContexts(ctx context.Context, a *app, names []string, before time.Time, o pruneOptions) (removed []string, inside int, err error) {
	for range pruneTries {
		var family *families
		if family, err = readFamilies(ctx, a); err != nil {
			break
		}
		var chosen []string
		if chosen, err = choosePruned(ctx, a, family, names, before, o); err != nil {
			break
		}
		var gone []string
		var with int
		gone, with, err = removeChosen(ctx, a, family, chosen, len(names) > 0, o.dry)
		removed, inside = append(removed, gone...), inside+with
		if !outrun(err, len(names) > 0) {
			break
		}
	}
	return removed, inside, err
}

// Who waits to append tries again every few milliseconds.
const (
	pruneTogether = 10_000 // messages, some tenths of a second
	prunePause    = 20 * time.Millisecond
)

// removeChosen removes contexts with those of their delegates, unless they have
// changed since they were chosen: all at once, or else in portions.
func removeChosen(ctx context.Context, a *app, family *families, chosen []string, whole, dry bool) (removed []string, inside int, err error) {
	chosen = family.forksFirst(chosen)
	var portion []store.ContextInfo
	messages := int64(0)
	for i, name := range chosen {
		for _, member := range family.members(name) {
			portion = append(portion, family.infos[member])
			messages += family.infos[member].Messages
		}
		if last := i == len(chosen)-1; !last && (whole || messages < pruneTogether) {
			continue
		}
		if !dry {
			if len(removed) > 0 {
				time.Sleep(prunePause)
			}
			if err := a.log.Prune(ctx, portion...); err != nil {
				return removed, inside, err
			}
		}
		roots := i + 1 - len(removed)
		removed, inside = chosen[:i+1], inside+len(portion)-roots
		portion, messages = nil, 0
	}
	return removed, inside, nil
}

func printPruned(a *app, name string) error {
	if a.json {
		return a.term.ndjson(map[string]any{"context": name})
	}
	return a.term.line(name)
}

// reportPruned tells what has been done, or would be.
func reportPruned(a *app, n, inside int, o pruneOptions) {
	with := ""
	if inside > 0 {
		with = fmt.Sprintf(", and %d contexts of delegates", inside)
	}
	switch {
	case n == 0:
		a.term.say("there is nothing to prune")
	case o.dry:
		a.term.say("these %d would be removed%s", n, with)
	default:
		a.term.say("removed %d%s", n, with)
	}
}

// vacuumLog makes the file smaller, unless others need it.
func vacuumLog(ctx context.Context, a *app) error {
	log, ok := a.log.(*sqlite.Log)
	if !ok {
		return nil
	}
	err := log.Vacuum(ctx)
	var held *store.HeldError
	if !errors.As(err, &held) {
		return err
	}
	a.term.say("the file stays as large as it is: context %s is being run by %s", held.Context, held.Holder)
	return nil
}

// before is the time that --older-than names; zero for none.
func (o *pruneOptions) before() (time.Time, error) {
	if o.older == "" {
		return time.Time{}, nil
	}
	if t, ok := readPast(o.older); ok && !t.IsZero() { // which stands for none, and programs write it for none
		return t, nil
	}
	return time.Time{}, exit.Usagef("--older-than %s: expected a span such as 30d or 12h, or a date such as 2026-01-31", o.older)
}

// families are the contexts of a log, those of delegates with their parents.
type families struct {
	infos    map[string]store.ContextInfo
	roots    []string
	children map[string][]string
}

func readFamilies(ctx context.Context, a *app) (*families, error) {
	f := &families{infos: map[string]store.ContextInfo{}, children: map[string][]string{}}
	for info, err := range a.log.Contexts(ctx, "") {
		if err != nil {
			return nil, err
		}
		f.infos[info.Context] = info
		if info.Origin.Parent == "" {
			f.roots = append(f.roots, info.Context)
		}
		f.children[info.Origin.Parent] = append(f.children[info.Origin.Parent], info.Context)
	}
	return f, nil
}

// members are a context and those of its delegates, however deep.
func (f *families) members(name string) []string {
	all := []string{name}
	for _, child := range f.children[name] {
		all = append(all, f.members(child)...)
	}
	return all
}

// root is the context at the top of those that name is a delegate's in: itself,
// if it is none.
func (f *families) root(name string) string {
	for f.infos[name].Origin.Parent != "" {
		name = f.infos[name].Origin.Parent
	}
	return name
}

// forksFirst orders roots so that each comes after those that share what it, or a
// delegate of it, holds.
func (f *families) forksFirst(roots []string) (ordered []string) {
	forks := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(f.infos)) {
		for _, shared := range f.infos[name].Shares {
			forks[f.root(shared)] = append(forks[f.root(shared)], f.root(name))
		}
	}
	wanted := setOf(roots)
	var visit func(root string)
	visit = func(root string) {
		if !wanted[root] {
			return
		}
		wanted[root] = false // it has its place, or is about to
		for _, fork := range forks[root] {
			visit(fork)
		}
		ordered = append(ordered, root)
	}
	for _, root := range roots {
		visit(root)
	}
	return ordered
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// choosePruned picks the contexts that go. Of those that are named every one must be
// able to.
func choosePruned(ctx context.Context, a *app, f *families, names []string, before time.Time, o pruneOptions) ([]string, error) {
	var chosen []string
	for _, name := range names {
		if _, ok := f.infos[name]; !ok {
			return nil, fmt.Errorf("%w: %s (obelus contexts lists them; prune takes whole names)", store.ErrNoContext, name)
		}
	}
	for _, name := range f.roots {
		named := slices.Contains(names, name)
		if len(names) > 0 && !named || !before.IsZero() && !f.infos[name].Updated.Before(before) {
			continue
		}
		run, err := journal.CurrentRun(ctx, a.log, name)
		if err != nil {
			return nil, err
		}
		status := string(run.Status)
		if status == "" {
			status = "none"
		}
		if len(o.statuses) > 0 && !slices.Contains(o.statuses, status) {
			continue
		}
		which, run, err := findUnfinished(ctx, a, f, name, run)
		switch {
		case err != nil:
			return nil, err
		case which != "" && named && run.Status == journal.RunRunning:
			return nil, exit.Usagef("context %s is running, and stays until that has come to its end or was interrupted", which)
		case which != "" && named:
			return nil, exit.Usagef("context %s is unfinished (%s), and stays: %s cancel -c %[1]s gives it up", which, run.Status, a.again())
		case which != "":
			continue
		}
		chosen = append(chosen, name)
	}
	for _, name := range names {
		if f.infos[name].Origin.Parent != "" {
			return nil, exit.Usagef("context %s is a delegate's: it goes with %s", name, f.infos[name].Origin.Parent)
		}
	}
	return withoutNeeded(a, f, chosen, len(names) > 0)
}

// findUnfinished finds a run that is, and that nobody has given up, among that of a context and
// those in its delegates' contexts that are part of no other. Where there is none, it has no
// name.
func findUnfinished(ctx context.Context, a *app, f *families, name string, run journal.Run) (which string, _ journal.Run, err error) {
	untouched, err := isUntouchedFork(ctx, a, name)
	if err != nil || !isOver(run) && !untouched {
		return name, run, err
	}
	for _, member := range f.members(name)[1:] {
		root, err := journal.Root(ctx, a.log, member)
		if err != nil {
			return member, run, err
		}
		if root != member {
			continue
		}
		if run, err = journal.CurrentRun(ctx, a.log, member); err != nil || !isOver(run) {
			return member, run, err
		}
	}
	return "", run, nil
}

func isOver(run journal.Run) bool { return run.Status.Finished() || run.Status == journal.RunCancelled }

// isUntouchedFork tells of a fork in which nobody has gone on with what ran where it was
// made, and to which nothing has come: nothing of its own would be lost.
func isUntouchedFork(ctx context.Context, a *app, name string) (bool, error) {
	entry, ok, err := store.Newest(ctx, a.log, store.JournalFilter{Context: name})
	return ok && journal.Forked(entry), err
}

// withoutNeeded leaves out what forks need that stay; of those that are named none may be.
func withoutNeeded(a *app, f *families, chosen []string, named bool) ([]string, error) {
	for {
		needed, goes := map[string]error{}, setOf(chosen)
		for _, fork := range slices.Sorted(maps.Keys(f.infos)) {
			info := f.infos[fork]
			if goes[f.root(fork)] {
				continue
			}
			for _, shared := range info.Shares {
				if root := f.root(shared); needed[root] == nil {
					needed[root] = &store.NeededError{Context: shared, Fork: fork}
				}
			}
		}
		var rest []string
		for _, name := range chosen {
			if err := needed[name]; err != nil && named {
				return nil, err
			} else if err == nil {
				rest = append(rest, name)
			}
		}
		if len(rest) == len(chosen) {
			return chosen, nil
		}
		chosen = rest
	}
}
