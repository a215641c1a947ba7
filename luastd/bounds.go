package luastd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bound narrows what a project grants, for calls of an activity or of a tool.
type Bound struct {
	Grants Grants // only the permissions; Root, Secrets and Guarded are the project's
	By     string // `activity "fetch"`; empty for scripts that no activity runs
	Option string // "allow" of an activity's options, or "_allow" of a tool
	Place  string // "activities/a.lua:3"; may be empty

	// Silent reports that nothing is asked for, and that the setting grants is "asked".
	Silent bool

	// Rehearsal reports that a function of a plan is asked only to compare or show what it gives.
	Rehearsal bool
}

// Bounds are the parts of narrowed grants. Refusals say which of them refuses.
type Bounds struct {
	Project Grants
	By      []Bound
}

// Narrow returns what the grants and all of the bounds allow.
func (g Grants) Narrow(by ...Bound) Grants {
	if len(by) == 0 {
		return g
	}
	both, bounds := g, &Bounds{Project: g, By: by}
	if g.Bounds != nil {
		bounds.Project, bounds.By = g.Bounds.Project, slices.Concat(g.Bounds.By, by)
	}
	for _, b := range by {
		both = both.Within(b.Grants)
	}
	both.Bounds = bounds
	return both
}

// missing describes a permission that grants lack.
type missing struct {
	kind    string   // "net"
	entries []string // that would grant it; none if only true would
	why     string   // further reason; may be empty
}

// flag returns the flag that would grant it.
func (m *missing) flag() string {
	flag := "--allow-" + m.kind
	if len(m.entries) > 0 {
		flag += "=" + strings.Join(m.entries, ",")
	}
	return flag
}

// field returns the field of a table of permissions that would grant it.
func (m *missing) field() string {
	if len(m.entries) == 0 {
		return m.kind + " = true"
	}
	quoted := make([]string, len(m.entries))
	for i, entry := range m.entries {
		quoted[i] = strconv.Quote(entry)
	}
	return m.kind + " = { " + strings.Join(quoted, ", ") + " }"
}

// remedy returns what the project has to write to grant it.
func (m *missing) remedy(project Grants) string {
	text := "run with " + m.flag() + " or set allow." + m.kind + " in obelus.lua"
	if m.kind == "model" && project.Net.All && project.Read.All && project.Write.All && project.Env.All {
		text += " (allow = true is all but model, which must be named)"
	}
	return text
}

// remedy returns why the bound refuses, and what has to be written where.
func (b Bound) remedy(m *missing) string {
	at := ""
	if b.Place != "" {
		at = " in " + b.Place
	}
	allow := "allow = { " + m.field() + " }"
	switch {
	case b.Rehearsal:
		return "a replay and a prompt ask the functions of plans without permissions, so that nothing is done again: do it in an activity, whose result is recorded"
	case b.Silent && b.By == "":
		return `the setting grants = "asked" gives activities what they ask for, and nothing to other scripts: do it in an activity with ` + allow + " in its options"
	case b.Silent:
		return fmt.Sprintf(`the setting grants = "asked" gives %s only what it asks for: add %s to its options%s`, b.By, allow, at)
	case b.Option == "_allow":
		return fmt.Sprintf("%s leaves its calls less: add %s to its _allow%s", b.By, m.field(), at)
	}
	return fmt.Sprintf("%s does not ask for it: add %s to the allow of its options%s", b.By, m.field(), at)
}

// refusal returns the text for an act without permission: which of the project, the
// activity and the tool does not grant it, and what to write where. lacks returns nil where grants
// suffice.
func (g Grants) refusal(what string, lacks func(Grants) *missing) string {
	if g.Bounds == nil {
		m := lacks(g)
		return what + " is not allowed: " + m.because() + m.remedy(g)
	}
	project := g.Bounds.Project
	var refusing []string
	why := ""
	for _, b := range g.Bounds.By {
		own := project
		for _, p := range Permissions {
			*p.Of(&own) = *p.Of(&b.Grants)
		}
		if m := lacks(own); m != nil {
			refusing, why = append(refusing, b.remedy(m)), m.because()
		}
	}
	if m := lacks(project); m != nil {
		refusing, why = append(refusing, "the project does not grant it: "+m.remedy(project)), m.because()
	}
	if len(refusing) == 0 { // each grants it, though by different entries
		m := lacks(g)
		refusing, why = []string{"no entry of the project's allow lies in one of " + g.Bounds.By[0].By}, m.because()
	}
	return what + " is not allowed: " + why + strings.Join(refusing, "; and ")
}

// because returns the further reason as it stands before a remedy.
func (m *missing) because() string {
	if m.why == "" {
		return ""
	}
	return m.why + ": "
}
