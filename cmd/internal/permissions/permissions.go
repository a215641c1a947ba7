// Package permissions lists the permissions that activities and tools ask for, and shows which of
// them the project grants.
package permissions

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"obelus/cmd/internal/term"
	"obelus/engine/plan"
	"obelus/host"
)

// Check returns the problems of the permissions that a project and its plans ask for: a warning for
// each entry that is not granted, and if all is set a note for each other entry. It prints a table
// of the entries unless all is set. Plans are paths of files below dir.
func Check(t *term.Terminal, g *host.Generation, dir string, plans []string, all bool) (problems []plan.Problem, err error) {
	asks := find(g, dir, plans)
	if len(asks) == 0 {
		return nil, nil
	}
	var rows [][]string
	for _, ask := range asks {
		p := problem(ask)
		if all || p.Severity != plan.SeverityNote {
			problems = append(problems, p)
		}
		rows = append(rows, []string{ask.By, ask.Permission, cmp.Or(ask.Entry, everything), granted(ask)})
	}
	if !all {
		err = t.Table([]string{"WHO", "PERMISSION", "ENTRY", "GRANTED"}, rows)
	}
	return problems, err
}

// everything stands for an entry that names nothing.
const everything = "everything"

// find lists the entries of the project and of plans that can be read, each once.
func find(g *host.Generation, dir string, plans []string) []host.Ask {
	asks := g.Asks(g.Registry())
	for _, path := range plans {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			continue
		}
		name = filepath.ToSlash(name)
		request, registry, err := g.Plan(name)
		if err != nil { // it is told with the plan
			continue
		}
		for _, ask := range g.Asks(registry.WithRequest(request)) {
			ask.File = cmp.Or(ask.File, name) // of a tool that the plan brings
			same := func(other host.Ask) bool {
				return other.By == ask.By && (other.File == ask.File || other.File == "") && other.Permission == ask.Permission && other.Entry == ask.Entry
			}
			if !slices.ContainsFunc(asks, same) {
				asks = append(asks, ask)
			}
		}
	}
	return asks
}

// granted returns the last cell of an entry's row.
func granted(ask host.Ask) string {
	switch {
	case ask.Lacking == "":
		return "yes"
	case len(ask.Granted) == 0:
		return "no"
	}
	return "only " + strings.Join(ask.Granted, ", ")
}

// problem returns the problem of an entry. One for everything is never a warning: it asks for as
// much as the project grants.
func problem(ask host.Ask) plan.Problem {
	p := plan.Problem{File: ask.File, Line: ask.Line, Severity: plan.SeverityNote, Code: plan.CodePermission}
	verb := "asks for"
	if ask.Tool {
		verb = "leaves its calls"
	}
	entry, field := everything, ask.Permission+" = true"
	if ask.Entry != "" {
		entry = strconv.Quote(ask.Entry)
		field = ask.Permission + " = { " + entry + " }"
	}
	p.Message = fmt.Sprintf("%s %s %s: %s, %s", ask.By, verb, ask.Permission, entry, outcome(ask))
	if ask.Lacking == "" || ask.Entry == "" {
		return p
	}
	p.Severity = plan.SeverityWarning
	if ask.Lacking == project {
		p.Message += ": add " + field + " to allow in " + host.SettingsFile
	} else {
		p.Message += ": add " + field + " to the allow of its options"
	}
	return p
}

// project is [host.Ask.Lacking] for an entry that the settings or flags do not grant.
const project = "the project"

// outcome returns how much of an entry is granted, in words.
func outcome(ask host.Ask) string {
	part := strings.Join(ask.Granted, ", ")
	switch {
	case ask.Lacking == "":
		return "which is granted"
	case ask.Lacking == project && part == "":
		return "which the project does not grant"
	case ask.Lacking == project:
		return "of which the project grants only " + part
	case part == "":
		return "which " + ask.Lacking + " does not ask for"
	}
	return "of which " + ask.Lacking + " asks only for " + part
}
