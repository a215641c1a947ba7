// Package complete completes words for the shell, in the ways that cobra has for it.
package complete

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Offer returns the words that may replace begun. It returns none on an error, since a shell has no
// place to show one.
type Offer func(ctx context.Context, begun string) []string

// Max bounds how many words are offered.
const Max = 100

// offered tells the shell to keep the order of the words, and not to complete files.
const offered = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// Arguments completes up to most arguments, none of them twice.
func Arguments(most int, words Offer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, offered
		}
		return Matching(words(c.Context(), begun), begun, args), offered
	}
}

// FlagValue completes the value of a flag.
func FlagValue(words Offer) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return Matching(words(c.Context(), begun), begun, nil), offered
	}
}

// LastOfList completes the last of several values that are separated by commas.
func LastOfList(words Offer) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before, last := "", begun
		if comma := strings.LastIndex(begun, ","); comma >= 0 {
			before, last = begun[:comma+1], begun[comma+1:]
		}
		found := Matching(words(c.Context(), last), last, strings.Split(before, ","))
		for i := range found {
			found[i] = before + found[i]
		}
		return found, offered
	}
}

// WithoutSpace completes a word that may go on: the shell puts no space behind it.
func WithoutSpace(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		found, how := complete(c, args, begun)
		return found, how | cobra.ShellCompDirectiveNoSpace
	}
}

// Filter has the shell complete names of files or folders.
func Filter(how cobra.ShellCompDirective, extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, how)
}

// Matching returns the words that begin with begun and are not given yet.
func Matching(words []string, begun string, given []string) (fit []string) {
	for _, word := range words {
		if strings.HasPrefix(word, begun) && !slices.Contains(given, word) && len(fit) < Max {
			fit = append(fit, word)
		}
	}
	return fit
}

// Fixed offers the same words always.
func Fixed[T ~string](words ...T) Offer {
	return func(context.Context, string) (all []string) {
		for _, word := range words {
			all = append(all, string(word))
		}
		return all
	}
}
