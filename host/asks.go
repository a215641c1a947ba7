package host

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"obelus/engine/plan"
	"obelus/luastd"
)

// Ask is an entry of a permission that an activity asks for, or that a tool leaves its calls.
type Ask struct {
	By         string // `activity "fetch"`
	Tool       bool   // By is a tool
	File       string // that registers it; empty if that is not known
	Line       int
	Permission string // "net"
	Entry      string // "api.example.com"; empty for everything

	// Granted has the parts of the entry that are granted: itself, or entries that lie in it.
	Granted []string
	// Lacking names who lacks the rest: "the project", or `activity "fetch"` for the entry of a
	// tool. It is empty if the entry is granted as a whole.
	Lacking string
}

// Asks lists the permissions that activities of a registry ask for, and that its tools leave their
// calls, sorted by place. Nothing runs.
func (g *Generation) Asks(registry *plan.Registry) (all []Ask) {
	project := &g.project.Grants
	for _, name := range slices.Sorted(maps.Keys(registry.Activities)) {
		if a, asked := askingActivity(registry.Activities[name]); asked != nil {
			all = append(all, asksOf(Ask{By: asked.By, File: a.script.File, Line: a.line}, asked.Grants, project, nil)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(registry.Tools)) {
		tool := registry.Tools[name]
		if tool.Allow() == nil {
			continue
		}
		left, err := g.readToolAllow(tool.Allow())
		if err != nil { // its calls fail with it
			continue
		}
		activity, _ := tool.Suggested("_activity").(string)
		_, asked := askingActivity(registry.Activities[cmp.Or(activity, name)])
		all = append(all, asksOf(Ask{By: "tool " + strconv.Quote(name), Tool: true, File: tool.File, Line: tool.Line}, left, project, asked)...)
	}
	slices.SortStableFunc(all, func(a, b Ask) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// PermissionsOf lists the permissions that the activity of a call may use, such as
// "net api.example.com", or "net" for all of one: those of the project, as far as the activity asks
// for them and its tool leaves them. A call without an activity in Lua has none.
func (g *Generation) PermissionsOf(call *plan.Call) (all []string) {
	a, asked := askingActivity(call.Activity)
	if a == nil {
		return nil
	}
	granted := g.project.Grants
	if asked != nil {
		granted = granted.Within(asked.Grants)
	}
	for _, allow := range call.Definition.Allows() {
		left, err := g.readToolAllow(allow)
		if err != nil { // the call fails with it
			return nil
		}
		granted = granted.Within(left)
	}
	for _, p := range luastd.Permissions {
		grant := p.Of(&granted)
		if grant.All {
			all = append(all, p.Name)
			continue
		}
		for _, entry := range grant.List {
			all = append(all, p.Name+" "+entry)
		}
	}
	return all
}

// askingActivity returns an activity in Lua, and the permissions that it asks for; nil if it does
// not ask.
func askingActivity(registered *plan.Registered) (a *activity, asked *luastd.Bound) {
	if registered == nil {
		return nil, nil
	}
	switch found := registered.Activity.(type) {
	case *activity:
		a = found
	case isolated:
		a = found.activity
	case speculative:
		a = found.activity
	}
	if a == nil || a.grants.Bounds == nil || a.grants.Bounds.By[0].Silent {
		return a, nil
	}
	return a, &a.grants.Bounds.By[0]
}

// asksOf returns an Ask for each entry of asked, held to the permissions of the project and of the
// activity that runs the calls of a tool; nil if that does not ask.
func asksOf(as Ask, asked luastd.Grants, project *luastd.Grants, activity *luastd.Bound) (all []Ask) {
	for _, p := range luastd.Permissions {
		grant := p.Of(&asked)
		entries := []luastd.Grant{{All: true}}
		if !grant.All {
			entries = nil
			for _, entry := range grant.List {
				entries = append(entries, luastd.Grant{List: []string{entry}})
			}
		}
		for _, entry := range entries {
			var one luastd.Grants
			*p.Of(&one) = entry
			ask := as
			ask.Permission, ask.Lacking = p.Name, ""
			if !entry.All {
				ask.Entry = entry.List[0]
			}
			ask.hold(*p.Of(new(project.Within(one))), "the project")
			if activity != nil && ask.Lacking == "" {
				ask.hold(*p.Of(new(project.Within(activity.Grants).Within(one))), activity.By)
			}
			all = append(all, ask)
		}
	}
	return all
}

// hold records the granted parts of the entry: granted has the entry as far as it is granted.
func (a *Ask) hold(granted luastd.Grant, by string) {
	if a.Granted = slices.Clone(granted.List); granted.All {
		a.Granted = []string{""}
	}
	if !slices.Contains(a.Granted, a.Entry) {
		a.Lacking = by
	}
}
