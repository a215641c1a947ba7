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

// permissionForm is the form of tables of permissions.
var permissionForm = setting.Form{Noun: "permission"}

// readPermissions reads a value of allow: of the settings, of the options of an activity, or of a
// tool.
func readPermissions(v any) (any, error) {
	var grants luastd.Grants
	if all, ok := v.(bool); ok {
		for _, p := range luastd.Permissions {
			p.Of(&grants).All = all && !p.Named
		}
		return grants, nil
	}
	if _, ok := permissionForm.Object(v); !ok {
		return setting.Unfit()
	}
	permissions := map[string]luastd.Permission{}
	for _, p := range luastd.Permissions {
		permissions[p.Name] = p
	}
	err := permissionForm.Table(v, slices.Sorted(maps.Keys(permissions)), func(name string, v any) error {
		grant := permissions[name].Of(&grants)
		if all, ok := v.(bool); ok {
			grant.All = all
			return nil
		}
		list, err := setting.Texts.Read(v)
		if grant.List, _ = list.([]string); err != nil {
			return setting.WrongType("true or a list of strings", v)
		}
		for _, entry := range grant.List {
			if err := permissions[name].Check(entry); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return grants, nil
}

// checkNames refuses permissions for a variable that has a secret, and for a model that does not
// exist. field is where they stand: "allow" or "_allow".
func (s *Settings) checkNames(allow luastd.Grants, field string) error {
	for _, name := range allow.Model.List {
		if !s.hasModel(name) && !strings.Contains(name, "/") { // which a flag may name
			return setting.At(fmt.Errorf("there is no model %q%s", name, luaerr.DidYouMean(name, s.modelNames())), field, "model")
		}
	}
	for _, name := range allow.Env.List {
		for _, secret := range s.secrets() {
			if (luastd.Grants{Secrets: []string{secret.name}}).IsSecret(name) {
				return setting.At(fmt.Errorf("the variable %s has %s, which no script may read", name, secret.what), field, "env")
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
	switch asked := a.options.Allow; {
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
	var left struct {
		Allow luastd.Grants `json:"_allow" kind:"allow"`
	}
	if errs := settingForm.Decode(map[string]any{"_allow": allow}, &left); errs != nil {
		return left.Allow, errs
	}
	return left.Allow, g.settings.checkNames(left.Allow, "_allow")
}
