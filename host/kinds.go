package host

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/engine/plan"
	"obelus/host/hook"
	"obelus/host/internal/setting"
	"obelus/host/schedule"
	"obelus/store"
)

// kinds are the kinds of values of settings and options, beside those that every form has.
var kinds = map[string]setting.Kind{
	"allow":       {Want: `true or a table like { read = {"data"} }`, Type: "obelus.Allow", Read: readPermissions},
	"approve":     {Want: `"never", "always", "planned", "scopes" or a list of tools`, Type: `"never"|"always"|"planned"|"scopes"|string|string[]`, Read: readApprove},
	"budget":      {Table: reflect.TypeFor[budgetTable]()},
	"cost":        {Want: "an amount above 0, in US dollars", Type: "number", Read: readCost},
	"grants":      setting.Choice([]bool{true, false}, "asked", "allowed"),
	"isolate":     {Want: `"process" or false`, Type: `"process"|"none"|false`, Read: readIsolate},
	"level":       setting.Lower(setting.Choice([]store.LogLevel{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError}, store.LogLevels...)),
	"logs":        {Want: `a size, such as "256KB", or 0 to keep nothing`, Type: "integer|string", Read: readKeptLogs},
	"model":       {Want: `the name of a model, text like "openai/gpt-5-mini", or a table`, Type: "string|obelus.Model", Read: readModel},
	"synchronous": setting.Lower(setting.Words("full", "normal")),

	"batch":  {Want: `a whole number above 0, or "instances"`, Type: `integer|"instances"`, Read: readBatch},
	"key":    {Want: `{ env = "NAME" }, with the name of the environment variable that has the key`, Type: "{ env: string }", Read: readKey},
	"price":  setting.Range(0, 1e6),
	"0 to 1": setting.Range(0, 1),
	"0 to 2": setting.Range(0, 2),

	"input":     setting.Of("a table of values by name", "table", readScheduleInput),
	"overlap":   setting.Words(schedule.Overlaps()...),
	"plan file": setting.Match(`a file below plans/, such as "plans/report.lua"`, isPlanFile),
	"schedule":  nameKind(schedule.CheckName),

	"encoding":      setting.Words("hex", "base64"),
	"header":        setting.Match("the name of a header", isHeaderName),
	"headers":       {Want: setting.Texts.Want, Type: setting.Texts.Type, Read: readInputHeaders},
	"hook":          nameKind(hook.CheckName),
	"key encoding":  setting.Words("text", "base64"),
	"secret":        variableKind("secret", "GITHUB_SECRET"),
	"target":        setting.Of("a string", "string", readTarget),
	"time or field": setting.Match("the name of a header", isTimeField),
	"verification":  setting.Words(hook.Verifications()...),

	"role":     setting.Choice([]Role{MayRead, MayRun, MayDecide}, roleNames[MayRead:]...),
	"token":    nameKind(checkTokenName),
	"variable": {Type: "string", Read: readTokenVariable},
}

// budgetTable is [plan.Budget] as the settings have it.
type budgetTable struct {
	Requests int     `json:"requests" jsonschema:"sent to models (default 200)"`
	Tokens   int64   `json:"tokens" jsonschema:"of input and output"`
	Cost     float64 `json:"cost" kind:"cost" jsonschema:"in US dollars"`
}

// readApprove reads words of a policy: one, or a list.
func readApprove(v any) (any, error) {
	if text, ok := v.(string); ok {
		return plan.ParsePolicy(text)
	}
	words, err := setting.Texts.Read(v)
	if texts, _ := words.([]string); len(texts) > 0 {
		return plan.ParsePolicy(strings.Join(texts, ","))
	}
	return nil, err
}

func readCost(v any) (any, error) {
	cost, err := setting.Range(0, 1e9).Read(v)
	if cost == 0.0 {
		return setting.Unfit()
	}
	return cost, err
}

func readIsolate(v any) (any, error) {
	if v == "process" || v == "none" || v == false {
		return v == "process", nil
	}
	return setting.Unfit()
}

func readKeptLogs(v any) (any, error) {
	if v == "0" || v == json.Number("0") {
		return 0, nil
	}
	return setting.Size.Read(v)
}

// readModel reads the name of the default model; a table that describes it is read later.
func readModel(v any) (any, error) {
	if _, ok := v.(map[string]any); ok {
		return defaultModel, nil
	}
	return setting.NonEmpty.Read(v)
}

// batchInstances is a batch that joins questions of several instances.
const batchInstances = -1

func readBatch(v any) (any, error) {
	if v == "instances" {
		return batchInstances, nil
	}
	return setting.Positive.Read(v)
}

// readKey reads the name of the environment variable that has a key.
func readKey(v any) (any, error) {
	table, _ := v.(map[string]any)
	name, _ := table["env"].(string)
	if _, text := v.(string); text { // it may be the key itself, which no message may repeat
		return nil, setting.Errorf(`must be { env = "NAME" }, with the name of the environment variable that has the key: a key does not belong into this file`)
	}
	if name == "" || len(table) != 1 {
		return setting.Unfit()
	}
	return name, nil
}

// readScheduleInput reads the input of a schedule, in which due is the server's.
func readScheduleInput(input map[string]any) (any, error) {
	if _, ok := input["due"]; ok {
		return nil, setting.Errorf("must not have due: the server sets it to the time at which the run is due")
	}
	return input, nil
}

// isPlanFile reports whether a name is one of a plan that a server may start.
func isPlanFile(name string) bool {
	return strings.HasPrefix(name, "plans/") && path.Clean(name) == name && slices.Contains([]string{".lua", ".json"}, path.Ext(name))
}

var (
	headerName   = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	variableName = lazyregexp.New(`^[A-Z_][A-Z0-9_]*$`)
)

func isHeaderName(text string) bool { return headerName().MatchString(text) }

func isTimeField(text string) bool {
	return isHeaderName(text) || len(text) > 1 && strings.HasSuffix(text, "=")
}

// readInputHeaders reads the headers that are part of the input. What enters the log stays there,
// so those with secrets are refused.
func readInputHeaders(v any) (any, error) {
	names, err := setting.Texts.Read(v)
	if err != nil {
		return nil, err
	}
	for _, name := range names.([]string) {
		if !isHeaderName(name) {
			return nil, setting.Errorf("must be names of headers, not %q", name)
		}
		if secretName().MatchString(name) || strings.EqualFold(name, "cookie") {
			return nil, setting.Errorf("must not have %s: it may be a secret, and what enters the log stays there", name)
		}
	}
	return names, nil
}

func readTarget(text string) (any, error) {
	target, err := hook.ParseTarget(text)
	if err != nil {
		return nil, setting.Errorf("is wrong: %s", err)
	}
	return target, nil
}

// nameKind returns the kind of names that check accepts.
func nameKind(check func(name string) error) setting.Kind {
	return setting.Of("", "string", func(name string) (any, error) { return name, check(name) })
}

// variableKind returns the kind of names of environment variables that have something secret. Its
// error does not repeat the text, which may be the secret itself.
func variableKind(what, example string) setting.Kind {
	return setting.Kind{Type: "string", Read: func(v any) (any, error) {
		if name, _ := v.(string); variableName().MatchString(name) {
			return name, nil
		}
		return nil, setting.Errorf("must be the name of the environment variable that has the %s, such as %q: a %[1]s does not belong into this file", what, example)
	}}
}

func readTokenVariable(v any) (any, error) {
	if v == ServerTokenVariable {
		return nil, setting.Errorf("must not be %s, the token that has all roles: name another variable", v)
	}
	return variableKind("token", "CI_TOKEN").Read(v)
}

// checkTokenName refuses a text that can't name a token.
func checkTokenName(name string) error {
	switch {
	case !tokenName().MatchString(name):
		return fmt.Errorf("%q is no name for it: it has up to 64 letters, digits, _, - and ., and begins with a letter", name)
	case name == "token" || name == "local":
		return fmt.Errorf("decisions without a named token are recorded as by %q: choose another name", name)
	}
	return nil
}
