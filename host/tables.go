package host

import (
	"reflect"
	"slices"
	"strings"

	"obelus/host/hook"
	"obelus/host/internal/setting"
	"obelus/host/model"
	"obelus/luastd"
)

// TableHelp returns the list of what a table of settings or options can say, for people: of
// settings, limits, serve, hooks and others, a line or more for each field. It is empty for another
// name.
func TableHelp(table string) string {
	of := map[string]reflect.Type{
		"hooks":     reflect.TypeFor[Hook](),
		"limits":    reflect.TypeFor[Limits](),
		"models":    reflect.TypeFor[model.Config](),
		"on":        reflect.TypeFor[Reactions](),
		"options":   reflect.TypeFor[activityOptions](),
		"schedules": reflect.TypeFor[Schedule](),
		"scheme":    reflect.TypeFor[hook.Scheme](),
		"serve":     reflect.TypeFor[Serving](),
		"settings":  reflect.TypeFor[Settings](),
		"tokens":    reflect.TypeFor[Token](),
	}
	var fields []setting.Field
	switch table {
	case "permissions":
		for _, p := range luastd.Permissions {
			fields = append(fields, setting.Field{Name: p.Name, About: p.About})
		}
	case "hooks": // scheme has the rest
		fields = slices.DeleteFunc(slices.Clone(setting.Fields(of[table])), setting.Field.IsEmbedded)
	default:
		if t := of[table]; t != nil {
			fields = setting.Fields(t)
		}
	}
	return setting.Help(fields)
}

// TableTypes returns annotations of settings, options of activities and requests for editors, in
// LuaCATS.
func TableTypes() string {
	permissions := make([]string, len(luastd.Permissions))
	for i, p := range luastd.Permissions {
		permissions[i] = p.Name + "?: boolean|string[]"
	}
	return "\n---Permissions. true is all but model, which is named. So are the _allow of a tool, and what\n" +
		"---an activity asks for.\n---@alias obelus.Allow boolean|{ " + strings.Join(permissions, ", ") + " }\n\n" +
		settingForm.Class("obelus.Settings", "What obelus.lua returns.", reflect.TypeFor[Settings]()) + "\n" +
		optionForm.Class("obelus.ActivityOptions", "", reflect.TypeFor[activityOptions]()) + "\n" +
		requestForm.Class("obelus.Request", "", reflect.TypeFor[requestTable]())
}
