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

// offer returns the words that may replace begun. It returns none on an error, since a shell has no
// place to show one.
type offer func(ctx context.Context, begun string) []string

// completer completes words for the shell, from the project and the log that the flags name.
type completer struct{ *app }

// register tells cobra how arguments and flags are completed. Cobra keeps that for the life of the
// process, so only a command that completes calls it.
func (o completer) register(root *cobra.Command) {
	plans := filter(cobra.ShellCompDirectiveFilterFileExt, "lua", "json")
	args := map[string]cobra.CompletionFunc{
		"append":  filter(cobra.ShellCompDirectiveDefault),
		"approve": arguments(1, o.offerHeld),
		"backup":  filter(cobra.ShellCompDirectiveDefault),
		"call":    arguments(1, o.offerTools),
		"check":   plans,
		"diff":    arguments(2, o.offerContexts),
		"get":     withoutSpace(arguments(1, o.offerPaths)),
		"graph":   plans,
		"init":    filter(cobra.ShellCompDirectiveFilterDirs),
		"prune":   arguments(maxOffers, o.offerContexts),
		"reject":  arguments(1, o.offerHeld),
		"replay":  arguments(1, o.offerContexts),
		"run":     plans,
		"test":    o.completeTests,
		"why":     withoutSpace(arguments(1, o.offerPaths)),
	}
	for _, c := range root.Commands() {
		if c.ValidArgsFunction != nil { // a command of cobra's own
			continue
		}
		if c.ValidArgsFunction = args[c.Name()]; c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"calls --status":  lastOfList(fixed(journal.Outcomes()...)),
		"calls --tool":    lastOfList(o.offerTools),
		"graph --format":  flagValue(fixed(slices.Sorted(maps.Keys(view.Formats))...)),
		"log --kind":      flagValue(o.offerKinds),
		"log --path":      withoutSpace(flagValue(o.offerPaths)),
		"log --tool":      flagValue(o.offerTools),
		"prune --status":  lastOfList(fixed(append(journal.RunStatuses(), "none")...)),
		"resume --retry":  flagValue(o.offerCalls(journal.Failed, journal.InDoubt)),
		"resume --result": flagValue(o.offerCalls(journal.Failed, journal.InDoubt)),
		"resume --skip":   flagValue(o.offerCalls(journal.Failed, journal.InDoubt)),
		"run --approve":   lastOfList(o.offerPolicies),
		"run --from":      flagValue(o.offerCalls(journal.Done, journal.Failed, journal.Skipped)),
		"run --mode":      flagValue(fixed("eager", "lazy")),
		"serve --log":     flagValue(fixed("text", "json")),
		" --context":      flagValue(o.offerContexts),
		" --project":      filter(cobra.ShellCompDirectiveFilterDirs),
	} {
		command, name, _ := strings.Cut(flag, " --")
		c, _, err := root.Find(strings.Fields(command))
		if err == nil {
			err = c.RegisterFlagCompletionFunc(name, complete)
		}
		if err != nil {
			panic(err) // a flag that does not exist is a fault of the table above
		}
	}
}

// maxOffers bounds how many words are offered.
const maxOffers = 100

// offered tells the shell to keep the order of the words, and not to complete files.
const offered = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// arguments completes up to most arguments, none of them twice.
func arguments(most int, words offer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, offered
		}
		return matching(words(c.Context(), begun), begun, args), offered
	}
}

// flagValue completes the value of a flag.
func flagValue(words offer) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return matching(words(c.Context(), begun), begun, nil), offered
	}
}

// lastOfList completes the last of several values that are separated by commas.
func lastOfList(words offer) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before, last := "", begun
		if comma := strings.LastIndex(begun, ","); comma >= 0 {
			before, last = begun[:comma+1], begun[comma+1:]
		}
		found := matching(words(c.Context(), last), last, strings.Split(before, ","))
		for i := range found {
			found[i] = before + found[i]
		}
		return found, offered
	}
}

// withoutSpace completes a word that may go on: the shell puts no space behind it.
func withoutSpace(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		found, how := complete(c, args, begun)
		return found, how | cobra.ShellCompDirectiveNoSpace
	}
}

// filter has the shell complete names of files or folders.
func filter(how cobra.ShellCompDirective, extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, how)
}

// matching returns the words that begin with begun and are not given yet.
func matching(words []string, begun string, given []string) (fit []string) {
	for _, word := range words {
		if strings.HasPrefix(word, begun) && !slices.Contains(given, word) && len(fit) < maxOffers {
			fit = append(fit, word)
		}
	}
	return fit
}

// fixed offers the same words always.
func fixed[T ~string](words ...T) offer {
	return func(context.Context, string) (all []string) {
		for _, word := range words {
			all = append(all, string(word))
		}
		return all
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
		if err != nil || len(names) == maxOffers {
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

// offerCalls offers the calls of the context's newest tick that have one of some statuses.
func (o completer) offerCalls(statuses ...journal.Status) offer {
	return func(ctx context.Context, _ string) (calls []string) {
		name, ok := o.tryReadContext(ctx)
		if !ok {
			return nil
		}
		run, err := journal.In(o.log, name).LastRun(ctx)
		if err != nil {
			return nil
		}
		records, _ := journal.In(o.log, name).CurrentRecords(ctx, 0)
		for _, r := range records {
			if r.Tick == run.Tick && slices.Contains(statuses, r.Status) {
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
	return matching(files, begun, args), cobra.ShellCompDirectiveDefault
}
