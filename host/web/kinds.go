package web

import (
	"strconv"
	"strings"

	"obelus/engine/history"
	"obelus/host/internal/setting"
	"obelus/host/ops"
	"obelus/host/web/internal/api"
	"obelus/store"
)

// kinds are the kinds of fields and parameters, beside those that all tables have.
var kinds = map[string]setting.Kind{
	"call":   setting.Match("the number of a call, such as 1.2", func(text string) bool { _, _, ok := splitCall(text); return ok }),
	"cursor": setting.Of("the next of a list", "", readCursor),
	"date":   {Want: "a time such as 2026-01-31T12:00:00Z, or a span before now such as 90s or 7d", Read: readDate},
	"filled": setting.Of("a string", "", readFilled),
	"flag":   {Want: "true or false", Schema: api.Schema{"type": "string", "enum": []any{"", "true", "false"}}, Read: readFlag},
	"level":  {Schema: api.Schema{"type": "string", "enum": []any{"debug", "info", "warn", "error"}}, Read: setting.Lower(levels).Read},
	"name":   {Schema: api.Schema{"type": "string", "pattern": "^[A-Za-z0-9._-]+$"}, Read: setting.Same[any]},
	"page":   {Want: pageSize.Want, Schema: api.Schema{"type": "integer", "minimum": 1, "maximum": maxPage}, Read: pageSize.Read},
	"path":   setting.Of("a path", "", func(text string) (any, error) { return store.ParseTyped(text) }),
	"words":  setting.Of("a list with commas", "", readWords),
	"table":  setting.Of("an object", "", setting.Same[map[string]any]),
}

// pageSize is the kind of the number of elements of a page.
var pageSize = setting.Range(1, maxPage)

// levels are the levels of lines.
var levels = setting.Choice([]store.LogLevel{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError}, store.LogLevels...)

// splitCall returns the tick and the position of a call, such as "1.2".
func splitCall(text string) (tick, position int, ok bool) {
	before, after, _ := strings.Cut(text, ".")
	tick, wrongTick := strconv.Atoi(before)
	position, wrongPosition := strconv.Atoi(after)
	return tick, position, wrongTick == nil && wrongPosition == nil && tick > 0 && position > 0
}

func readDate(v any) (any, error) {
	text, _ := v.(string)
	if t, ok := history.ReadMoment(text); ok {
		return t, nil
	}
	return setting.Unfit()
}

// readCursor reads the place at which a list goes on.
func readCursor(text string) (any, error) {
	if mark, ok := ops.ReadCursor(text); ok {
		return mark, nil
	}
	return setting.Unfit()
}

// readFilled reads a text. One of spaces alone is an empty one.
func readFilled(text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	return text, nil
}

// readFlag reads true or false. A flag that is given without a value is true.
func readFlag(v any) (any, error) {
	if isSet, ok := v.(bool); ok || v == "" {
		return isSet || v == "", nil
	}
	return setting.Unfit()
}

// readWords reads a list with commas.
func readWords(text string) (any, error) { return strings.Split(text, ","), nil }
