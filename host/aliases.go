package host

import (
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
)

// SettingsFile marks a project and returns its settings.
const SettingsFile = limits.SettingsFile

// Limits bounds the means of scripts. Its fields give the defaults.
type Limits = limits.Limits

// ScriptError is something wrong with a script, for the script's author: it names the place in the
// Lua source and shows no Go.
type ScriptError = luaerr.ScriptError

// Errors is everything that is wrong with a project, sorted by file and line. [Open] fails with it;
// it is never empty.
type Errors = luaerr.Errors

// ParseSize reads a number of bytes as the settings have it: "64MB", "500 KB", "100". It is false
// for any other text, and for 0.
func ParseSize(text string) (n int, ok bool) { return setting.ParseSize(text) }
