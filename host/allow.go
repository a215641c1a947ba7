package host

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/plan"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
	"obelus/luastd"
)

// readPermissions reads a value of allow: of the settings, of the options of an activity, or of a
// tool, where field is "_allow". Its error is a [*settingError] that begins with the field.
func readPermissions(v any, field string) (grants luastd.Grants, err error) {
	var names []string
	for _, p := range luastd.Permissions {
		names = append(names, p.Name)
	}
	if all, ok := v.(bool); ok {
		for _, p := range luastd.Permissions {
			p.Of(&grants).All = all && !p.Named
		}
		return grants, nil
	}
	given, ok := v.(map[string]any)
	if list, isList := v.([]any); isList && len(list) == 0 {
		given, ok = nil, true
	}
	if !ok {
		return grants, &settingError{nil, field + " " + setting.WrongType("true or a table like { read = {\"data\"} }", v).Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.Index(names, name)
		if i < 0 {
			return grants, &settingError{[]string{name}, field + ": unknown permission " + strconv.Quote(name) + luaerr.DidYouMean(name, names)}
		}
		p := luastd.Permissions[i]
		grant := p.Of(&grants)
		if all, ok := given[name].(bool); ok {
			grant.All = all
			continue
		}
		if grant.List, err = setting.Texts(given[name]); err != nil {
			return grants, &settingError{[]string{name}, field + "." + name + " " + setting.WrongType("true or a list of strings", given[name]).Error()}
		}
		for _, entry := range grant.List {
			if err := p.Check(entry); err != nil {
				return grants, &settingError{[]string{name}, field + "." + name + ": " + err.Error()}
			}
		}
	}
	return grants, nil
}

func readAllow(s *Settings, v any) (err error) {
	s.Allow, err = readPermissions(v, "allow")
	return err
}

func readGrantsSetting(s *Settings, v any) error {
	switch v {
	case "asked":
		s.Asked = true
	case "allowed":
	default:
		return setting.WrongType(`"asked" or "allowed"`, v)
	}
	return nil
}

// checkNames refuses permissions for a variable that has a secret, and for a model that does not
// exist. field is where they stand: "allow" or "_allow".
func (s *Settings) checkNames(allow luastd.Grants, field string) *settingError {
	for _, name := range allow.Model.List {
		if !s.hasModel(name) && !strings.Contains(name, "/") { // which a flag may name
			return &settingError{[]string{field, "model"}, fmt.Sprintf("%s.model: there is no model %q%s", field, name, luaerr.DidYouMean(name, s.modelNames()))}
		}
	}
	for _, name := range allow.Env.List {
		for _, secret := range s.secrets() {
			if (luastd.Grants{Secrets: []string{secret.name}}).IsSecret(name) {
				return &settingError{[]string{field, "env"}, fmt.Sprintf("%s.env: the variable %s has %s, which no script may read", field, name, secret.what)}
			}
		}
	}
	return nil
}

// secret is an environment variable that the settings name, and a description of its value.
type secret struct{ name, what string }

// secrets returns the environment variables with keys and headers of models and of the collector,
// and with the secrets of hooks, sorted by name. No script and no worker sees them.
func (s *Settings) secrets() (all []secret) {
	for _, c := range s.Models {
		for _, name := range c.Secrets() {
			all = append(all, secret{name, "the key or a header of model " + strconv.Quote(c.Name)})
		}
	}
	for _, name := range s.Serve.OTLP.Secrets() {
		all = append(all, secret{name, "a header of serve.otlp"})
	}
	for _, h := range s.Serve.Hooks {
		if h.Secret != "" {
			all = append(all, secret{h.Secret, "the secret of hook " + strconv.Quote(h.Name)})
		}
	}
	for _, t := range s.Serve.Tokens {
		all = append(all, secret{t.Env, "the token " + strconv.Quote(t.Name) + " of the server"})
	}
	slices.SortFunc(all, func(a, b secret) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b secret) bool { return a.name == b.name })
}

// scriptGrants returns the permissions of scripts that no activity runs: of the top levels of files
// as they are loaded, and of the functions of plans.
func (g *Generation) scriptGrants() *luastd.Grants {
	if g.unasked != nil {
		return g.unasked
	}
	return &g.project.Grants
}

// narrowed returns the project's permissions within bounds.
func (g *Generation) narrowed(by ...luastd.Bound) *luastd.Grants {
	if len(by) == 0 {
		return &g.project.Grants
	}
	grants := g.project.Grants.Narrow(by...)
	return &grants
}

// activityGrants returns the permissions of the calls of an activity, as far as its tool does not
// narrow them.
func (g *Generation) activityGrants(a registeredActivity) *luastd.Grants {
	bound := luastd.Bound{By: a.what, Option: "allow", Place: placeText(a.file, a.line)}
	switch asked := a.options.allow; {
	case asked != nil:
		bound.Grants = *asked
	case g.asked:
		bound.Silent = true
	default:
		return &g.project.Grants
	}
	return g.narrowed(bound)
}

func placeText(file string, line int) string {
	if file == "" || line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// callGrants returns the permissions of one call. In a worker the process that started it has
// narrowed them.
func (a *activity) callGrants(in plan.Invocation) (*luastd.Grants, error) {
	if len(in.Allows) == 0 || a.gen.askHost != nil {
		return a.grants, nil
	}
	name, _ := in.Call["_tool"].(string)
	bounds := make([]luastd.Bound, len(in.Allows))
	for i, allow := range in.Allows {
		left, err := a.gen.readToolAllow(allow)
		if err != nil {
			return nil, a.fail("%s", err)
		}
		bounds[i] = luastd.Bound{Grants: left, By: "tool " + strconv.Quote(name), Option: "_allow"}
		if tool, ok := a.gen.registry.Tool(name); ok {
			bounds[i].Place = placeText(tool.File, tool.Line)
		}
	}
	grants := a.grants.Narrow(bounds...)
	return &grants, nil
}

// readToolAllow reads the _allow of a tool.
func (g *Generation) readToolAllow(allow any) (luastd.Grants, error) {
	left, err := readPermissions(allow, "_allow")
	if err != nil {
		return left, err
	}
	if wrong := g.settings.checkNames(left, "_allow"); wrong != nil {
		return left, wrong
	}
	return left, nil
}
