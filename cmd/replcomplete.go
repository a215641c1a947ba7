package cmd

import (
	"context"
	"slices"
	"strings"

	"obelus/cmd/internal/view"
	"obelus/store"
)

// complete returns the words that fit at the end of a line: paths of the context behind a †, else
// names of Lua. head is the part of the line before each word.
func (p *prompt) complete(line string) (head string, words []string) {
	if at := strings.LastIndex(line, store.Dagger); at >= 0 {
		if begun := line[at+len(store.Dagger):]; !strings.ContainsAny(begun, " \t\"'()|&") {
			return line[:at], p.completePath(begun)
		}
	}
	from, words := p.lua.Complete(line)
	return line[:from], words
}

// completePath completes a path of the context. begun has no dagger.
func (p *prompt) completePath(begun string) (words []string) {
	p.withLog(func() error {
		ctx := context.Background()
		name, err := p.app.openForReading(ctx)
		if err != nil {
			return err
		}
		for _, path := range pathsBelow(ctx, p.app, name, begun[:strings.LastIndex(begun, ".")+1]) {
			if strings.HasPrefix(path, begun) {
				words = append(words, store.Dagger+path)
			}
		}
		return nil
	})
	return words
}

// pathsBelow returns the paths one segment below a prefix, sorted. The prefix is empty or ends with
// a dot.
func pathsBelow(ctx context.Context, a *app, name, prefix string) (paths []string) {
	if prefix == "" {
		kinds, _ := a.log.Kinds(ctx, name)
		for _, k := range kinds {
			paths = append(paths, k.Kind)
		}
		slices.Sort(paths)
		return slices.Compact(paths)
	}
	path, err := store.ParsePath(store.Dagger + strings.TrimSuffix(prefix, "."))
	if err != nil {
		return nil
	}
	found, err := (store.Resolver{Log: a.log, Context: name}).Resolve(ctx, path, "")
	object, ok := found.Value.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	for _, key := range view.SortedNames(object) {
		// Other keys are written in quotes.
		if _, err := store.ParsePath(store.Dagger + prefix + key); err == nil {
			paths = append(paths, prefix+key)
		}
	}
	return paths
}
