package plan

import (
	"errors"
	"fmt"
	"slices"

	"obelus/engine/internal/jsonvalue"
)

// allowProperty is the meta-property by which a tool narrows what its calls may do to the world. No
// call gives it.
const allowProperty = "_allow"

// Allow returns the permissions that the tool leaves its calls, as it has them in its const _allow;
// nil without one.
func (t *Tool) Allow() any { return t.consts[allowProperty] }

// Allows returns the permissions that the tool leaves its calls, and those that each tool leaves
// which it replaces: its calls have what all of them leave.
func (t *Tool) Allows() []any {
	if allow := t.Allow(); allow != nil {
		return append(slices.Clip(t.within), allow)
	}
	return t.within
}

// replacing returns the tool as one that replaces another, which it can only narrow: who may append
// a definition to a context must not give its calls more, nor show a model other data.
func (t *Tool) replacing(other *Tool) *Tool {
	if t == nil || other == nil || other == t {
		return t
	}
	if isAsWide := len(other.Allows()) == 0 && other.focus == t.focus; isAsWide {
		return t
	}
	narrowed := *t
	narrowed.within, narrowed.focus = other.Allows(), other.focus
	return &narrowed
}

// focusProperty is the meta-property by which a registered tool says how much a model sees of the
// context that is asked about its calls: all, and their scopes above all, or those alone.
const (
	focusProperty = "_focus"
	focusFirst    = "first"
	focusOnly     = "only"
)

// CheckBrought refuses a tool of a plan or of the log that says what registered tools alone say.
func (t *Tool) CheckBrought() error {
	if t.focus != "" {
		return fmt.Errorf("tool %q: _focus: a tool of a plan or of the log can't say how much a model sees: register the tool", t.Name)
	}
	return nil
}

// SeesScopesAlone reports whether a model that is asked about the call sees its scopes alone, as
// the _focus of its tool says (protocol §5).
func (c *Call) SeesScopesAlone() bool { return c.Definition.focus == focusOnly }

// checkAllow refuses an _allow that prescribes nothing, or that no call of the tool would have.
func (t *Tool) checkAllow() error {
	if t.meta[allowProperty] == nil {
		return nil
	}
	_, delegated := t.consts["_delegate"].(string)
	switch {
	case t.consts[allowProperty] == nil:
		return errors.New(`_allow must be a const: the permissions that the tool leaves its calls, as in _allow = { const = { net = { "api.example.com" } } }`)
	case delegated && t.consts["_delegate"] != Anonymous:
		return errors.New("_allow: the calls of its _delegate do the work: give _allow to their tools")
	}
	return nil
}

// CheckTool refuses a tool whose _allow [Registry.CheckAllow] refuses.
func (r *Registry) CheckTool(t *Tool) error {
	if allow := t.Allow(); allow != nil && r.CheckAllow != nil {
		if err := r.CheckAllow(allow); err != nil {
			return fmt.Errorf("tool %q: %w", t.Name, err)
		}
	}
	return nil
}

// refuseAllow refuses a call that gives _allow, and one that is handed to a delegate whose calls
// the _allow of its tool does not reach. A call in the log has what its tool has filled in.
func refuseAllow(c *Call, given map[string]any) error {
	v, gives := given[allowProperty]
	prescribed := c.Definition.Allow()
	name, _ := c.Issued["_delegate"].(string)
	switch {
	case gives && !(c.accepted && prescribed != nil && jsonvalue.Equal(v, prescribed)):
		return Faultf(CodePermission, "_allow: a call can't say what it may do, only its tool can, by a const, and its activity: leave it out of the call")
	case prescribed != nil && name != "" && name != Anonymous:
		return Faultf(CodePermission, "_allow: the calls of delegate %q do the work, which the _allow of tool %s does not reach: give it to their tools", name, c.Tool)
	}
	return nil
}
