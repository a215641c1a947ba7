package view

import (
	"fmt"

	"obelus/store"
)

// Message returns a message on one line: its seq, its time, its call, its path and its data.
func Message(m *store.Message) string {
	what := string(m.Type)
	value := m.Data.Value
	if m.Type == store.TypeData {
		what = store.KindPath(m.Kind).String()
	}
	if m.Producer != nil {
		what = m.Path.String()
		value, _ = store.Dig(m.Data.Value, m.Path)
		if m.Method != "" {
			what += " " + string(m.Method)
		}
	}
	if m.Instance != "" {
		what += " " + m.Instance
	}
	by := m.Call
	if by == "" {
		by = "-"
	}
	text := "(schema)"
	if m.Data.Set {
		text = string(store.EncodeJSON(value))
	}
	return fmt.Sprintf("%4d  %s  %-5s  %s  %s", m.Seq, m.Date.Local().Format("15:04:05.000"), by, what, text)
}
