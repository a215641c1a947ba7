package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/spell"
	"obelus/store"
)

// Planner gives the calls of one tick after another (protocol §7, the loop). A
// Lua function, a Go function and a model are planners; a static list of calls
// is one that answers once, and needs no Planner.
type Planner interface {
	// Plan is asked when a tick begins. An error ends the run as failed, as does a
	// solution with what JSON doesn't have. A solution that is refused otherwise, or
	// a [*PlanError] in its place, becomes error messages in the context, and the
	// planner is asked again. It has all the time that it takes until ctx is done,
	// which it must heed: the run waits for it.
	Plan(ctx context.Context, ask Ask) (*Solution, error)
}

// PlannerFunc makes a planner of a Go function.
type PlannerFunc func(ctx context.Context, ask Ask) (*Solution, error)

// Plan calls f.
func (f PlannerFunc) Plan(ctx context.Context, ask Ask) (*Solution, error) { return f(ctx, ask) }

// Ask is a question to a planner. Its values are those of an [Invocation], shared, and must not be
// changed. Texts are as they are: a text that begins with † and goes into a solution becomes an
// expression there, whatever its source, unless it passes through [Literal].
type Ask struct {
	Context string // its name
	Tick    int    // the tick that is to be planned

	// Kinds holds the value of every kind of the context, or those that the request's scopes grant.
	// Where the context has instances, "_instances" holds the same for each of them.
	Kinds map[string]any
}

// Solution is a planner's answer: calls, and the final output once it is known. Its values may be
// anything that [store.FromGo] takes.
type Solution struct {
	Calls []Source

	// Output ends the loop when it is not null once the tick has settled. It
	// may hold references.
	Output any
}

// Planning is the planner of a request that a model plans (protocol §7).
type Planning struct {
	Model    string   // its name among the registry's models; empty for the default one
	Offer    []string // the tools that it may plan with, by name; nil for all
	Refusals int      // solutions refused in a row that end the run; 0 for DefaultRefusals
}

// DefaultRefusals is how many solutions of a model may be refused in a row.
const DefaultRefusals = 3

// Plan implements [Planner]: only a run asks a model, which it finds in its registry.
func (*Planning) Plan(context.Context, Ask) (*Solution, error) {
	return nil, errors.New("a model plans this request: only a run can ask it")
}

// ModelFor returns the model that plans, and what stands in its way if there is none.
func (p *Planning) ModelFor(registry *Registry) (PlanModel, error) {
	model, err := registry.ModelNamed(p.Model)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if model == nil {
		return nil, errors.New("a model is to plan it, as there are neither calls nor a function, and there is no model: give it calls, or set a model")
	}
	planner, ok := model.(PlanModel)
	if !ok {
		return nil, errors.New("a model is to plan it, as there are neither calls nor a function, and the model only answers calls: give it calls")
	}
	for _, name := range p.Offer {
		if _, ok := registry.Tool(name); !ok {
			return nil, fmt.Errorf("offer: unknown tool %q%s", name, spell.DidYouMean(name, registry.Names()))
		}
	}
	return planner, nil
}

// Offers returns the tools that a model plans with.
func (p *Planning) Offers(registry *Registry) []Offer {
	names := slices.Clone(p.Offer)
	if names == nil {
		names = registry.Names()
	}
	slices.Sort(names)
	var offers []Offer
	for _, name := range slices.Compact(names) {
		if tool, ok := registry.Tool(name); ok {
			offers = append(offers, tool.offer(registry))
		}
	}
	return offers
}

// offer returns the tool as a model is shown it. A tool without parameters of its own whose delegate
// declares the schema of its input takes that one, and the delegate's schema for the result.
func (t *Tool) offer(registry *Registry) Offer {
	object, _ := t.Schema.(map[string]any)
	o := Offer{Name: t.Name, Schema: object}
	if o.Schema == nil {
		o.Schema = map[string]any{}
	}
	name, delegated := t.consts["_delegate"].(string)
	_, has := registry.Activities[cmp.Or(t.activity, t.Name)]
	o.Latent = !has && !delegated
	if !delegated || len(t.parameters()) > 0 {
		return o
	}
	if d, err := registry.Delegate(name); err == nil && name != Anonymous {
		o.Schema = d.Request.resolveOffer(object)
	}
	return o
}

// resolveOffer adds to a tool's schema the parameters that the request's messages declare as its
// input, and the schema of the request's output.
func (r *Request) resolveOffer(tool map[string]any) map[string]any {
	var input map[string]any
	for _, m := range r.Context {
		if declared, ok := m.Schema.(map[string]any); ok && m.Kind == "input" {
			input = declared
		}
	}
	_, metas := splitMeta(tool)
	out := maps.Clone(tool)
	delete(out, "properties")
	maps.Copy(out, input)
	maps.Copy(out, metas)
	if _, has := out["_output"]; !has && r.Schema != nil {
		out["_output"] = r.Schema
	}
	return out
}

// InstancesKey is where a planner finds what instances hold.
const InstancesKey = "_instances"

// Literal returns a value of an [Ask] as a [Solution] says it: a text that begins with †,
// here or within, comes with a second one, so that it is not taken for an expression. Keys
// stay as they are, and what holds no such text is not copied.
func Literal(v any) any {
	made, _ := escape(v)
	return made
}

// escape reports whether it changes anything.
func escape(v any) (made any, changed bool) {
	switch v := v.(type) {
	case nil, bool, json.Number, float64, int, int64:
		return v, false
	case string:
		if strings.HasPrefix(v, store.Dagger) {
			return store.Dagger + v, true
		}
		return v, false
	case []any:
		list := v
		for i, e := range v {
			if made, changed := escape(e); changed {
				if &list[0] == &v[0] {
					list = slices.Clone(v)
				}
				list[i] = made
			}
		}
		return list, len(v) > 0 && &list[0] != &v[0]
	case map[string]any:
		var object map[string]any
		for key, e := range v {
			if made, changed := escape(e); changed {
				if object == nil {
					object = maps.Clone(v)
				}
				object[key] = made
			}
		}
		if object == nil {
			return v, false
		}
		return object, true
	}
	other, err := store.FromGo(v, "")
	if err != nil {
		return v, false // a solution with it is refused
	}
	made, _ = escape(other)
	return made, true
}
