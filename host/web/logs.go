package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"obelus/store"
)

// logLine is a line that a script printed or logged.
type logLine struct {
	N       int64          `json:"n"` // its position among the lines of all contexts, growing
	Context string         `json:"context"`
	Call    string         `json:"call"`
	Line    int64          `json:"line"` // its number in the call, from 1; a gap is of lines that are not kept
	Tool    string         `json:"tool"`
	Attempt int            `json:"attempt"`
	Date    time.Time      `json:"date"`
	Level   string         `json:"level"`
	Printed bool           `json:"printed,omitempty"` // and not logged
	Text    string         `json:"text"`
	Fields  map[string]any `json:"fields,omitempty"` // that were logged with it
}

// linePage is a page of lines of scripts.
type linePage struct {
	Lines []store.LogLine `json:"lines"`
	Next  int64           `json:"next,omitempty"` // the value of after for the next page; 0 for the last
}

func (s reading) getLogs(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f := store.LogFilter{Call: q.text("call"), Level: q.level(), After: q.after(), Newest: q.flag("newest")}
	limit := q.limit(defaultPage)
	if q.call("call"); q.err != nil {
		return q.err
	}
	var err error
	if f.Context, err = s.existingContext(r); err != nil {
		return err
	}
	return s.respond(w, r, func(ctx context.Context) (any, error) {
		page := linePage{Lines: []store.LogLine{}}
		for line, err := range s.log.Logs(ctx, f) {
			if err != nil {
				return nil, err
			}
			if int64(len(page.Lines)) == limit {
				if !f.Newest {
					page.Next = page.Lines[limit-1].N
				}
				break
			}
			page.Lines = append(page.Lines, line)
		}
		return page, nil
	})
}

// level reads the least level of lines.
func (q *query) level() store.LogLevel {
	text := q.text("level")
	level, ok := store.ParseLogLevel(text)
	if !ok && text != "" {
		q.err = wrong("level=%s: it is one of %s%s", text, strings.Join(store.LogLevels, ", "), suggestion(text, store.LogLevels))
	}
	return level
}
