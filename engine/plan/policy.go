package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/spell"
	"obelus/store"
)

// Policy says which calls are held for a person before they run. The zero
// Policy holds none.
type Policy struct {
	Never  bool // hold none, which a start says where the runner has a policy
	Always bool // every call
	Scopes bool // hold calls that request scopes, beside those that their tool prescribes
	// Hold calls of plans that a model made, except calls that a model answers.
	Planned bool
	Tools   []string // hold calls of these tools, and calls that activities of these names run
}

// ParsePolicy reads "never", "always", "planned", "scopes", or names of tools with commas
// between them.
func ParsePolicy(text string) (Policy, error) {
	var p Policy
	words := strings.Split(text, ",")
	for _, word := range words {
		switch word = strings.TrimSpace(word); word {
		case "":
			return p, errors.New(`expected never, always, planned, scopes or names of tools`)
		case "never":
			if len(words) > 1 {
				return p, errors.New("never stands alone: it would hold nothing, and there are others beside it")
			}
			p.Never = true
		case "always":
			p.Always = true
		case "scopes":
			p.Scopes = true
		case "planned":
			p.Planned = true
		default:
			p.Tools = append(p.Tools, word)
		}
	}
	return p, nil
}

// Or gives the policy, or another where it says nothing.
func (p Policy) Or(other Policy) Policy {
	if !p.Never && !p.Always && !p.Scopes && !p.Planned && len(p.Tools) == 0 {
		p = other
	}
	if p.Never {
		return Policy{}
	}
	return p
}

// With returns a policy that holds what either of two hold.
func (p Policy) With(other Policy) Policy {
	return Policy{
		Always: p.Always || other.Always, Scopes: p.Scopes || other.Scopes, Planned: p.Planned || other.Planned,
		Tools: slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Tools, other.Tools)))),
	}
}

// String is the policy as [ParsePolicy] reads it.
func (p Policy) String() string {
	words := slices.Clone(p.Tools)
	if p.Scopes {
		words = append(words, "scopes")
	}
	if p.Planned {
		words = append(words, "planned")
	}
	if p.Always {
		words = append(words, "always")
	}
	if len(words) == 0 {
		return "never"
	}
	return strings.Join(words, ",")
}

// MarshalText is [Policy.String].
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is [ParsePolicy].
func (p *Policy) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePolicy(string(text))
	return err
}

// PolicyError is a policy that names an unknown tool: it would hold nothing, though a person relies
// on it.
type PolicyError struct{ Message string }

func (e *PolicyError) Error() string { return e.Message }

// Class implements the interface of [store.ClassOf].
func (e *PolicyError) Class() store.Class { return store.Refused }

// Check refuses a policy that names tools which neither the plan nor its delegates know. A policy
// that a delegate inherits may name tools of others.
func (p Policy) Check(plan *Plan, registry *Registry, depth int) error {
	if depth > 0 || len(p.Tools) == 0 {
		return nil
	}
	names := registry.Names()
	for _, call := range plan.Calls {
		names = append(names, call.Tool)
	}
	unknown := func(tool string) bool { return !slices.Contains(names, tool) }
	if !slices.ContainsFunc(p.Tools, unknown) { // the usual case
		return nil
	}
	seen := map[*Delegate]bool{}
	for _, call := range plan.Calls {
		if call.Delegate != nil {
			names = append(names, call.Delegate.toolsFor(registry, seen)...)
		}
	}
	if i := slices.IndexFunc(p.Tools, unknown); i >= 0 {
		return &PolicyError{fmt.Sprintf("the approval policy names the tool %q, which is not registered%s", p.Tools[i],
			spell.DidYouMean(p.Tools[i], append(names, "never", "always", "planned", "scopes")))}
	}
	return nil
}

// For returns the policy for the calls of one plan, which a model may have made.
func (p Policy) For(byModel bool) Policy {
	p.Planned = p.Planned && byModel
	return p
}

// Holds reports whether a call is held under the policy of its plan, see [Policy.For]. A thought
// has no effect that could be approved.
func (p Policy) Holds(c *Call) bool {
	_, provisioned := c.Definition.consts["_scopes"]
	named := slices.Contains(p.Tools, c.Tool) || c.Activity != nil && slices.Contains(p.Tools, c.Activity.Name)
	return (c.Activity != nil || c.Output != nil) &&
		(p.Always || p.Planned && !c.latent() || p.Scopes && len(c.ScopePaths) > 0 && !provisioned || named)
}
