// Package topics holds the texts of help that are about no command.
package topics

import (
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/engine/lazyregexp"
	"obelus/host"
	"obelus/host/web"
	"obelus/scripts"
)

var (
	//go:embed texts/activities.txt
	activities string
	//go:embed texts/expressions.txt
	expressions string
	//go:embed texts/models.txt
	models string
	//go:embed texts/page.txt
	page string
	//go:embed texts/plans.txt
	plans string
	//go:embed texts/settings.txt
	settings string
)

// topicList is the end of the program's help.
const topicList = `{{if not .HasParent}}{{range .Commands}}{{if eq .Name "help"}}
Additional help topics:{{range .Commands}}
  {{rpad .CommandPath .CommandPathPadding}} {{.Short}}{{end}}
{{end}}{{end}}{{end}}`

// AddTo adds the topics to the help command, below which one may have the name of a command, and
// their list to the help of the program.
func AddTo(help *cobra.Command) {
	topics := topicCommands()
	help.AddCommand(topics...)
	help.Root().SetUsageTemplate(help.Root().UsageTemplate() + topicList)
	commands := help.ValidArgsFunction
	help.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		names, directive := commands(c, args, word)
		for _, t := range topics {
			if len(args) == 0 && strings.HasPrefix(t.Name(), word) {
				names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, t.Name()+"\t") })
				names = append(names, t.Name()+"\t"+t.Short)
			}
		}
		return names, directive
	}
}

// topicCommands returns the topics, sorted. They do not run. Their texts are made only when they
// are asked for.
func topicCommands() (all []*cobra.Command) {
	for _, t := range []struct {
		name, short string
		text        func() string
	}{
		{"activities", "how to write activities and tools", withLists(activities)},
		{"expressions", "how to write expressions: every operator and function, with examples", withLists(expressions)},
		{"models", "how models answer calls and make plans", withLists(models)},
		{"modules", "what scripts can require", modulesTopic},
		{"page", "the page of obelus serve, with a tour", withLists(page)},
		{"plans", "how to write plans: calls, paths, what waits for what", withLists(plans)},
		{"server", "what obelus serve can be asked over HTTP, and answers", web.Doc},
		{"settings", "what obelus.lua can say, permissions and limits too", withLists(settings)},
	} {
		c := &cobra.Command{Use: t.name, Short: t.short}
		c.SetHelpFunc(func(c *cobra.Command, _ []string) { _, _ = io.WriteString(c.OutOrStdout(), t.text()) })
		all = append(all, c)
	}
	return all
}

// list stands for the list of the fields of a table.
var list = lazyregexp.New(`\{\{(\w+)\}\}\n`)

// withLists returns a text with the lists of what settings and options can say.
func withLists(text string) func() string {
	return func() string {
		return list().ReplaceAllStringFunc(text, func(found string) string {
			return host.TableHelp(list().FindStringSubmatch(found)[1])
		})
	}
}

// modulesTopic returns the text about modules, from their annotations for editors.
func modulesTopic() string {
	var b strings.Builder
	b.WriteString(`Modules of the project lie in lib/, and then in activities/: require "a.b" finds
a/b.lua, or a/b/init.lua. These are built in. What the world refuses, for want of
a permission perhaps, comes as nil and why; a wrong argument raises.
`)
	types := scripts.Types()
	files, err := fs.Glob(types, "*.lua")
	for _, file := range files {
		if file == "globals.lua" || file == "testing.lua" {
			continue
		}
		var annotations []byte
		if annotations, err = fs.ReadFile(types, file); err != nil {
			break
		}
		b.WriteString(moduleText(string(annotations)))
	}
	if err != nil {
		panic(err) // the files are embedded
	}
	return b.String()
}

// moduleText returns a module's annotations as text for people: a block for each function and each
// table with fields.
func moduleText(annotations string) string {
	var b strings.Builder
	module := ""
	for block := range strings.SplitSeq(annotations, "\n\n") {
		a := readAnnotation(block)
		switch {
		case module == "" && a.class != "":
			module = a.class
			fmt.Fprintf(&b, "\n%s\n", strings.Join(a.said, "\n"))
		case a.function != "" || len(a.fields) > 0:
			text := a.signature() + "\n"
			for _, line := range append(a.said, a.fields...) {
				text += "      " + line + "\n"
			}
			b.WriteString("  " + strings.ReplaceAll(text, module+".", ""))
		}
	}
	return b.String()
}

// annotation is one block of LuaCATS annotations.
type annotation struct {
	said, fields   []string
	class, of      string // its name, and the name of the class whose fields it inherits
	function       string // its name
	params, result []string
}

// readAnnotation parses one block.
func readAnnotation(block string) (a annotation) {
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		tag, rest, _ := strings.Cut(line, " ")
		switch name, isFunction := strings.CutPrefix(line, "function "); {
		case isFunction:
			a.function, _, _ = strings.Cut(name, "(")
		case tag == "---@class":
			a.class, a.of, _ = strings.Cut(rest, ": ")
		case tag == "---@field":
			a.fields = append(a.fields, rest)
		case tag == "---@param":
			name, rest, _ := strings.Cut(rest, " ")
			kind, gloss := cutType(rest)
			a.params = append(a.params, name+": "+kind)
			if gloss != "" {
				a.said = append(a.said, strings.TrimSuffix(name, "?")+": "+gloss)
			}
		case tag == "---@return":
			a.result = append(a.result, rest)
		case strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "---@"):
			a.said = append(a.said, line[len("---"):])
		}
	}
	return a
}

// signature returns the head of a function, or the name of a table.
func (a annotation) signature() string {
	if a.function == "" && a.of != "" {
		return a.class + ", with the fields of " + a.of
	}
	if a.function == "" {
		return a.class
	}
	text := a.function + "(" + strings.Join(a.params, ", ") + ")"
	if len(a.result) > 0 {
		text += " -> " + strings.Join(a.result, ", ")
	}
	return text
}

// cutType separates a type from its description. Blanks within brackets, and after a colon or a
// comma, belong to the type.
func cutType(text string) (kind, said string) {
	depth := 0
	for i, c := range text {
		switch {
		case strings.ContainsRune("({<", c):
			depth++
		case strings.ContainsRune(")}>", c):
			depth--
		case c == ' ' && depth == 0 && !strings.HasSuffix(text[:i], ":") && !strings.HasSuffix(text[:i], ","):
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
