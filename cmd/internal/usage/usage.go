// Package usage words the errors of a wrong use of the command, with suggestions of the use that
// was probably meant.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"obelus/cmd/internal/exit"
	"obelus/engine/spell"
)

// WrapArgs replaces cobra's complaint about arguments by one that shows how the command is called.
func WrapArgs(c *cobra.Command) {
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if check(c, args) != nil {
			given := "no arguments were given"
			if len(args) > 0 {
				given = fmt.Sprintf("these are the wrong arguments: %s", strings.Join(args, " "))
				if c.Flags().Lookup("input") != nil && slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "=") }) {
					given += " (input is given by -i key=text or -i key:=json)"
				}
			}
			return exit.Usagef("%s: %s\n  usage: %s", c.Name(), given, c.UseLine())
		}
		return nil
	}
}

// HelpArgs returns an error for help about an unknown command.
func HelpArgs(c *cobra.Command, args []string) error {
	if found, _, err := c.Root().Find(args); err != nil || found == c.Root() {
		return UnknownCommand(c.Root(), args)
	}
	return nil
}

// ShellArgs returns an error for a shell without completion.
func ShellArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, shell := range c.Commands() {
		shells = append(shells, shell.Name())
	}
	return exit.Usagef("completion: there is none for %s: it is for %s", args[0], strings.Join(shells, ", "))
}

// UnknownCommand returns an error for arguments to the program itself, with the nearest command.
func UnknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "obelus help lists them"
	if near := nearestCommand(c, args[0]); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return exit.Usagef("unknown command %q: %s", args[0], hint)
}

// nearestCommand returns the command that a word was probably meant to be, or the help about a
// topic. Of several that are as near, one wins that the word begins, or that begins the word.
func nearestCommand(c *cobra.Command, word string) string {
	var begun, others []string
	use := map[string]string{}
	add := func(name, usedAs string) {
		switch {
		case use[name] != "":
			return
		case strings.HasPrefix(name, word) || strings.HasPrefix(word, name):
			begun = append(begun, name)
		default:
			others = append(others, name)
		}
		use[name] = usedAs
	}
	for _, command := range c.Commands() {
		if command.IsAvailableCommand() {
			add(command.Name(), command.Name())
		}
	}
	if help, _, err := c.Find([]string{"help"}); err == nil {
		for _, topic := range help.Commands() {
			add(topic.Name(), "help "+topic.Name())
		}
	}
	near := spell.Nearest(word, append(begun, others...))
	if near == "" && word != "" && len(begun) > 0 {
		near = begun[0]
	}
	return use[near]
}

// FlagError replaces the flag library's complaint by one for people.
func FlagError(c *cobra.Command, err error) error {
	where := ""
	if c.HasParent() {
		where = c.Name() + ": "
	}
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		if bad.GetValue() == "" {
			return emptyFlag(bad.GetFlag())
		}
		name := bad.GetFlag().Name
		return exit.Usagef("%s--%s %s: expected %s", where, name, bad.GetValue(), expected(bad.GetFlag().Value.Type()))
	}
	near := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if name := spell.Nearest(unknown.GetSpecifiedName(), names); name != "" {
			near = fmt.Sprintf(" (did you mean --%s?)", name)
		}
	}
	return exit.Usage(where + err.Error() + near)
}

// CheckEmpty returns an error for a flag that was given without a value, as by a variable of the
// shell that is not set: the command would run as without the flag.
func CheckEmpty(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		switch kind, value := f.Value.Type(), f.Value.String(); {
		case err != nil:
		case kind == "string" && value == "", kind == "stringSlice" && value == "[]":
			err = emptyFlag(f)
		}
	})
	return err
}

func emptyFlag(f *pflag.Flag) error {
	value, help := pflag.UnquoteUsage(f)
	return exit.Usagef("--%s is empty: give it a value, or leave it out\n  --%[1]s %s: %s", f.Name, value, help)
}

// CheckWords returns an error for a word in a flag's list that is not known.
func CheckWords[T ~string](flag string, given []string, known ...T) error {
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	for _, word := range given {
		if slices.Contains(names, word) {
			continue
		}
		return exit.Usagef("--%s %s: %s", flag, word, Hint(word, names, "it is one of "+strings.Join(names, ", ")))
	}
	return nil
}

// Hint returns "did you mean" for a probable spelling mistake, else another text.
func Hint(word string, known []string, otherwise string) string {
	if near := spell.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// expected describes what a flag of a type takes.
func expected(flagType string) string {
	switch {
	case strings.HasPrefix(flagType, "int"):
		return "a whole number"
	case flagType == "stringSlice":
		return `words with commas between them, and no quotes within a word`
	case flagType == "bool":
		return "true or false"
	}
	return "a " + flagType
}
