package cmd

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/view"
	"obelus/engine/journal"
	"obelus/host/luatest"
	"obelus/store"
	"obelus/store/sqlite"
)

// completer completes words for the shell, from the project and the log that the flags name.
type completer struct{ *app }

// register tells cobra how arguments and flags are completed. Cobra keeps that for the life of the
// process, so only a command that completes calls it.
func (o completer) register(root *cobra.Command) {
	plans := completeFiles(cobra.ShellCompDirectiveFilterFileExt, "lua", "json")
	args := map[string]cobra.CompletionFunc{
		"append":  completeFiles(cobra.ShellCompDirectiveDefault),
		"approve": completeArguments(1, o.offerHeld),
		"backup":  completeFiles(cobra.ShellCompDirectiveDefault),
		"call":    completeArguments(1, o.offerTools),
		"check":   plans,
		"diff":    completeArguments(2, o.offerContexts),
		"get":     withoutSpace(completeArguments(1, o.offerPaths)),
		"graph":   plans,
		"init":    completeFiles(cobra.ShellCompDirectiveFilterDirs),
		"logs":    completeArguments(1, o.offerCalls()),
		"prune":   completeArguments(maxOffered, o.offerContexts),
		"reject":  completeArguments(1, o.offerHeld),
		"replay":  completeArguments(1, o.offerContexts),
		"run":     plans,
		"test":    o.completeTests,
		"why":     withoutSpace(completeArguments(1, o.offerPaths)),
	}
	for _, c := range root.Commands() {
		if c.ValidArgsFunction != nil { // a command of cobra's own
			continue
		}
		if c.ValidArgsFunction = args[c.Name()]; c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	levels := completeFlag(fixedWords(store.LogLevels...))
	for flag, with := range map[string]cobra.CompletionFunc{
		"calls --status":    completeList(fixedWords(journal.Outcomes()...)),
		"calls --tool":      completeList(o.offerTools),
		"graph --format":    completeFlag(fixedWords(slices.Sorted(maps.Keys(view.Formats))...)),
		"log --kind":        completeFlag(o.offerKinds),
		"log --path":        withoutSpace(completeFlag(o.offerPaths)),
		"log --tool":        completeFlag(o.offerTools),
		"logs --level":      levels,
		"prune --status":    completeList(fixedWords(append(journal.RunStatuses(), "none")...)),
		"resume --retry":    completeFlag(o.offerCalls(journal.Failed, journal.InDoubt)),
		"resume --result":   completeFlag(o.offerCalls(journal.Failed, journal.InDoubt)),
		"resume --skip":     completeFlag(o.offerCalls(journal.Failed, journal.InDoubt)),
		"run --approve":     completeList(o.offerPolicies),
		"run --from":        completeFlag(o.offerCalls(journal.Done, journal.Failed, journal.Skipped)),
		"run --log-level":   levels,
		"run --mode":        completeFlag(fixedWords("eager", "lazy")),
		"serve --log-level": levels,
		"serve --log":       completeFlag(fixedWords("text", "json")),
		" --context":        completeFlag(o.offerContexts),
		" --project":        completeFiles(cobra.ShellCompDirectiveFilterDirs),
	} {
		command, name, _ := strings.Cut(flag, " --")
		c, _, err := root.Find(strings.Fields(command))
		if err == nil {
			err = c.RegisterFlagCompletionFunc(name, with)
		}
		if err != nil {
			panic(err) // a flag that does not exist is a fault of the table above
		}
	}
}

// offerTools offers the project's tools.
func (o completer) offerTools(context.Context, string) []string {
	if o.openProject("") != nil {
		return nil
	}
	return o.host.Generation().Registry().Names()
}

// offerPolicies offers approval policies.
func (o completer) offerPolicies(ctx context.Context, begun string) []string {
	return append([]string{"never", "always", "planned", "scopes"}, o.offerTools(ctx, begun)...)
}

// offerContexts offers the contexts of the log, the latest first.
func (o completer) offerContexts(ctx context.Context, begun string) (names []string) {
	if !o.tryOpenLog() {
		return nil
	}
	for info, err := range o.log.Contexts(ctx, store.ContextFilter{Prefix: begun}) {
		if err != nil || len(names) == maxOffered {
			break
		}
		names = append(names, info.Context)
	}
	return names
}

// offerHeld offers the calls that are held for a person.
func (o completer) offerHeld(ctx context.Context, _ string) (calls []string) {
	if name, ok := o.tryReadContext(ctx); ok {
		held, _ := journal.In(o.log, name).Holds(ctx)
		for _, r := range held {
			calls = append(calls, r.Call)
		}
	}
	return calls
}

// offerCalls offers the calls of the context's newest tick that have one of some statuses, or any.
func (o completer) offerCalls(statuses ...journal.Status) offerWords {
	return func(ctx context.Context, _ string) (calls []string) {
		name, ok := o.tryReadContext(ctx)
		if !ok {
			return nil
		}
		run, err := journal.In(o.log, name).LastRun(ctx)
		if err != nil {
			return nil
		}
		records, _ := journal.In(o.log, name).CurrentRecords(ctx)
		for _, r := range records {
			if r.Tick == run.Tick && (len(statuses) == 0 || slices.Contains(statuses, r.Status)) {
				calls = append(calls, r.Call)
			}
		}
		return calls
	}
}

// offerKinds offers the kinds of data in the context.
func (o completer) offerKinds(ctx context.Context, _ string) []string { return o.offerPaths(ctx, "") }

// offerPaths offers the paths of the context, one segment further than begun.
func (o completer) offerPaths(ctx context.Context, begun string) (paths []string) {
	path, daggered := strings.CutPrefix(begun, store.Dagger)
	if name, ok := o.tryReadContext(ctx); ok {
		paths = pathsBelow(ctx, o.app, name, path[:strings.LastIndex(path, ".")+1])
	}
	if daggered {
		for i := range paths {
			paths[i] = store.Dagger + paths[i]
		}
	}
	return paths
}

// tryReadContext returns the context that reading commands take.
func (o completer) tryReadContext(ctx context.Context) (name string, ok bool) {
	if !o.tryOpenLog() {
		return "", false
	}
	name, err := o.readContext(ctx)
	return name, err == nil
}

// tryOpenLog opens an existing log for reading, without bringing it up to date.
func (o completer) tryOpenLog() bool {
	return o.openIfPresent(sqlite.Options{ReadOnly: true}) == nil
}

// completeTests completes the project's test files, or any file.
func (o completer) completeTests(_ *cobra.Command, args []string, begun string) (files []string, how cobra.ShellCompDirective) {
	dir, _, err := o.findProject("")
	here, err2 := filepath.Abs(".")
	if err != nil || err2 != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names, _ := luatest.Files(os.DirFS(dir), "tests")
	for _, name := range names {
		if below, err := filepath.Rel(here, filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			files = append(files, below)
		}
	}
	return matchingWords(files, begun, args), cobra.ShellCompDirectiveDefault
}
