package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/engine"
	"obelus/host/luatest"
	"obelus/store"
	"obelus/store/sqlite"
)

// offer gives what can stand where begun does. Nothing stands for an error too:
// a shell has no place to show one.
type offer func(ctx context.Context, begun string) []string

// completions tells the shell what arguments and flags can be. Cobra keeps it
// for the life of the process, so only a command that completes asks for it.
func (a *app) completions(root *cobra.Command) {
	plans := filter(cobra.ShellCompDirectiveFilterFileExt, "lua", "json")
	args := map[string]cobra.CompletionFunc{
		"append":  filter(cobra.ShellCompDirectiveDefault),
		"approve": arguments(1, a.offerHeld),
		"backup":  filter(cobra.ShellCompDirectiveDefault),
		"call":    arguments(1, a.offerTools),
		"check":   plans,
		"diff":    arguments(2, a.offerContexts),
		"get":     unended(arguments(1, a.offerPaths)),
		"graph":   plans,
		"init":    filter(cobra.ShellCompDirectiveFilterDirs),
		"prune":   arguments(maxOffers, a.offerContexts),
		"reject":  arguments(1, a.offerHeld),
		"replay":  arguments(1, a.offerContexts),
		"run":     plans,
		"test":    a.completeTests,
		"why":     unended(arguments(1, a.offerPaths)),
	}
	for _, c := range root.Commands() {
		if c.ValidArgsFunction != nil { // cobra's own
			continue
		}
		if c.ValidArgsFunction = args[c.Name()]; c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"calls --status":  listed(only(engine.Outcomes()...)),
		"calls --tool":    listed(a.offerTools),
		"graph --format":  flagged(only(slices.Sorted(maps.Keys(graphFormats))...)),
		"log --kind":      flagged(a.offerKinds),
		"log --path":      unended(flagged(a.offerPaths)),
		"log --tool":      flagged(a.offerTools),
		"prune --status":  listed(only(append(engine.RunStatuses(), "none")...)),
		"resume --retry":  flagged(a.offerCalls(engine.Failed, engine.InDoubt)),
		"resume --result": flagged(a.offerCalls(engine.Failed, engine.InDoubt)),
		"resume --skip":   flagged(a.offerCalls(engine.Failed, engine.InDoubt)),
		"run --approve":   listed(a.offerPolicies),
		"run --from":      flagged(a.offerCalls(engine.Done, engine.Failed, engine.Skipped)),
		"run --mode":      flagged(only("eager", "lazy")),
		"serve --log":     flagged(only("text", "json")),
		" --context":      flagged(a.offerContexts),
		" --project":      filter(cobra.ShellCompDirectiveFilterDirs),
	} {
		command, name, _ := strings.Cut(flag, " --")
		c, _, err := root.Find(strings.Fields(command))
		if err == nil {
			err = c.RegisterFlagCompletionFunc(name, complete)
		}
		if err != nil {
			panic(err) // there is no such flag
		}
	}
}

// maxOffers bounds what is offered: nobody reads more.
const maxOffers = 100

const offered = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// arguments completes up to most arguments, each given once.
func arguments(most int, words offer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, offered
		}
		return fitting(words(c.Context(), begun), begun, args), offered
	}
}

// flagged completes the value of a flag.
func flagged(words offer) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return fitting(words(c.Context(), begun), begun, nil), offered
	}
}

// listed completes the last of several values that commas part.
func listed(words offer) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before, last := "", begun
		if comma := strings.LastIndex(begun, ","); comma >= 0 {
			before, last = begun[:comma+1], begun[comma+1:]
		}
		found := fitting(words(c.Context(), last), last, strings.Split(before, ","))
		for i := range found {
			found[i] = before + found[i]
		}
		return found, offered
	}
}

// unended completes what may go on: no space is put behind it.
func unended(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		found, how := complete(c, args, begun)
		return found, how | cobra.ShellCompDirectiveNoSpace
	}
}

// filter leaves it to the shell to complete names of files or folders.
func filter(how cobra.ShellCompDirective, extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, how)
}

// fitting are the words that begin so and are not there yet.
func fitting(words []string, begun string, given []string) (fit []string) {
	for _, word := range words {
		if strings.HasPrefix(word, begun) && !slices.Contains(given, word) && len(fit) < maxOffers {
			fit = append(fit, word)
		}
	}
	return fit
}

func only[T ~string](words ...T) offer {
	return func(context.Context, string) (all []string) {
		for _, word := range words {
			all = append(all, string(word))
		}
		return all
	}
}

// offerTools are the tools of the project.
func (a *app) offerTools(context.Context, string) []string {
	if a.openProject("") != nil {
		return nil
	}
	return a.host.Generation().Registry().Names()
}

// offerPolicies are which calls can be held.
func (a *app) offerPolicies(ctx context.Context, begun string) []string {
	return append([]string{"never", "always", "scopes"}, a.offerTools(ctx, begun)...)
}

// offerContexts are the contexts of the log, the latest first.
func (a *app) offerContexts(ctx context.Context, begun string) (names []string) {
	if !a.openQuietly() {
		return nil
	}
	for info, err := range a.log.Contexts(ctx, begun) {
		if err != nil || len(names) == maxOffers {
			break
		}
		names = append(names, info.Context)
	}
	return names
}

// offerHeld are the calls that are held for a person.
func (a *app) offerHeld(ctx context.Context, _ string) (calls []string) {
	if name, ok := a.contextQuietly(ctx); ok {
		held, _ := engine.Holds(ctx, a.log, name)
		for _, r := range held {
			calls = append(calls, r.Call)
		}
	}
	return calls
}

// offerCalls are the calls of the context's newest tick that stand in one of some
// ways.
func (a *app) offerCalls(statuses ...engine.Status) offer {
	return func(ctx context.Context, _ string) (calls []string) {
		name, ok := a.contextQuietly(ctx)
		if !ok {
			return nil
		}
		run, err := engine.LastRun(ctx, a.log, name)
		if err != nil {
			return nil
		}
		records, _ := engine.StandingRecords(ctx, a.log, name, 0)
		for _, r := range records {
			if r.Tick == run.Tick && slices.Contains(statuses, r.Status) {
				calls = append(calls, r.Call)
			}
		}
		return calls
	}
}

// offerKinds are the kinds of data in the context.
func (a *app) offerKinds(ctx context.Context, _ string) []string { return a.offerPaths(ctx, "") }

// offerPaths are the paths of the context, one step further than what is
// written.
func (a *app) offerPaths(ctx context.Context, begun string) (paths []string) {
	path, daggered := strings.CutPrefix(begun, store.Dagger)
	if name, ok := a.contextQuietly(ctx); ok {
		paths = a.pathsBelow(ctx, name, path[:strings.LastIndex(path, ".")+1])
	}
	if daggered {
		for i := range paths {
			paths[i] = store.Dagger + paths[i]
		}
	}
	return paths
}

// contextQuietly finds the context that reading commands are about.
func (a *app) contextQuietly(ctx context.Context) (name string, ok bool) {
	if !a.openQuietly() {
		return "", false
	}
	name, err := a.readContext(ctx)
	return name, err == nil
}

// openQuietly opens a log that is there for reading, and brings none up to date.
func (a *app) openQuietly() bool {
	return a.openThere(sqlite.Options{ReadOnly: true}) == nil
}

// completeTests completes the project's files of tests, or else any file.
func (a *app) completeTests(_ *cobra.Command, args []string, begun string) (files []string, how cobra.ShellCompDirective) {
	dir, _, err := a.findProject("")
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
	return fitting(files, begun, args), cobra.ShellCompDirectiveDefault
}
