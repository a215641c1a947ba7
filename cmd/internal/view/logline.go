package view

import (
	"fmt"

	"obelus/cmd/internal/human"
	"obelus/store"
)

// LogLine returns a line that a script printed, after a bar, or logged, after its level: with its
// time, its call, the attempt of the call and its tool.
func LogLine(l store.LogLine) string {
	text := "| " + l.Text
	if !l.Printed {
		text = l.Level.String() + " " + l.Text
	}
	if len(l.Fields) > 0 {
		text += " " + human.JSON(l.Fields)
	}
	return fmt.Sprintf("%s  %-5s  #%d  %s  %s", l.Date.Local().Format("15:04:05.000"), l.Call, l.Attempt, l.Tool, text)
}

// DroppedLines says that lines of a call before one that is kept are not kept.
func DroppedLines(l store.LogLine, lines int64) string {
	return fmt.Sprintf("%12s  %-5s  (%s before that are not kept)", "", l.Call, human.Count(int(lines), "line"))
}
