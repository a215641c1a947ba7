package view

import (
	"fmt"

	"obelus/store"
)

// Message is a message on one line: its seq, its time, where it goes
// and by which call, and what it holds.
func Message(m *store.Message) string {
	what := string(m.Type)
	value := m.Data
	if m.Type == store.TypeData {
		what = store.KindPath(m.Kind).String()
	}
	if m.Producer != nil {
		what = m.Path.String()
		value, _ = store.Dig(m.Data, m.Path)
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
	if m.HasData {
		text = string(store.EncodeJSON(value))
	}
	return fmt.Sprintf("%4d  %s  %-5s  %s  %s", m.Seq, m.Date.Local().Format("15:04:05.000"), by, what, text)
}
