package cli

import (
	"cmp"
	"errors"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/usage"
	"obelus/engine/history"
	"obelus/store"
)

// ReadTime reads the value of a flag for a time. The zero time is no limit.
func ReadTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, ok := history.ReadMoment(text); ok {
		return t, nil
	}
	return time.Time{}, exit.Usagef("--%s %s: expected a time such as 2026-01-31T12:00:00Z, or a span such as 90s or 7d", flag, text)
}

// ReadPath reads the value of a flag for a path. The zero path is any.
func ReadPath(flag, text string) (store.Path, error) {
	if text == "" {
		return store.Path{}, nil
	}
	path, err := store.ParseTyped(text)
	if err != nil {
		return store.Path{}, exit.Usagef("--%s %s: %s", flag, text, err)
	}
	return path, nil
}

// ReadLabels reads the values of --label.
func ReadLabels(list []string) (map[string]string, error) {
	labels, err := history.ReadLabels(list)
	return labels, FilterUsage(err)
}

// flagsOfFilter are the flags that have another name than the parameter over HTTP.
var flagsOfFilter = map[string]string{"q": "search", "waiting": "waiting-on"}

// FilterUsage returns the error of a filter in the words of the command; any other as it is.
func FilterUsage(err error) error {
	wrong, ok := errors.AsType[*history.FilterError](err)
	if !ok {
		return err
	}
	flag := cmp.Or(flagsOfFilter[wrong.Name], wrong.Name)
	if wrong.Known != nil {
		return usage.CheckWords(flag, []string{wrong.Value}, wrong.Known...)
	}
	return exit.Usagef("--%s %s: %s", flag, wrong.Value, wrong.Reason)
}
