package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// offerWords returns the words that may replace begun. It returns none on an error, since a shell
// has no place to show one.
type offerWords func(ctx context.Context, begun string) []string

// maxOffered bounds how many words are offered.
const maxOffered = 100

// offered tells the shell to keep the order of the words, and not to complete files.
const offered = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// completeArguments completes up to most arguments, none of them twice.
func completeArguments(most int, words offerWords) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, offered
		}
		return matchingWords(words(c.Context(), begun), begun, args), offered
	}
}

// completeFlag completes the value of a flag.
func completeFlag(words offerWords) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return matchingWords(words(c.Context(), begun), begun, nil), offered
	}
}

// completeList completes the last of several values that are separated by commas.
func completeList(words offerWords) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before, last := "", begun
		if comma := strings.LastIndex(begun, ","); comma >= 0 {
			before, last = begun[:comma+1], begun[comma+1:]
		}
		found := matchingWords(words(c.Context(), last), last, strings.Split(before, ","))
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

// completeFiles has the shell complete names of files or folders.
func completeFiles(how cobra.ShellCompDirective, extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, how)
}

// matchingWords returns the words that begin with begun and are not given yet.
func matchingWords(words []string, begun string, given []string) (fit []string) {
	for _, word := range words {
		if strings.HasPrefix(word, begun) && !slices.Contains(given, word) && len(fit) < maxOffered {
			fit = append(fit, word)
		}
	}
	return fit
}

// fixedWords offers the same words always.
func fixedWords[T ~string](words ...T) offerWords {
	return func(context.Context, string) (all []string) {
		for _, word := range words {
			all = append(all, string(word))
		}
		return all
	}
}
