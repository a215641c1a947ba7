package web

import (
	"cmp"
	"context"
	"time"

	"obelus/host/web/internal/api"
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

// linesSchema returns the schema of a page of lines, which write themselves as JSON.
func linesSchema() api.Schema {
	return api.Object(api.Schema{"lines": api.List(api.Of[logLine]()), "next?": api.Positive()})
}

// logsIn picks lines of scripts.
type logsIn struct {
	contextIn
	Call   string         `query:"call" kind:"call" jsonschema:"Lines of this call, such as 1.2."`
	Level  store.LogLevel `query:"level" kind:"level" jsonschema:"Lines from this level on: debug, info (also what was printed), warn or error."`
	After  int64          `query:"after" kind:"count" jsonschema:"The next of the page before."`
	Newest bool           `query:"newest" jsonschema:"true begins at the end."`
	Limit  int64          `query:"limit" kind:"page" jsonschema:"At most so many."`
}

func (s *Server) getLogs(ctx context.Context, in logsIn) (page linePage, err error) {
	limit := cmp.Or(in.Limit, defaultPage)
	page.Lines = []store.LogLine{}
	for line, err := range s.log.Logs(ctx, store.LogFilter{Context: in.Context, Call: in.Call, Level: in.Level, After: in.After, Newest: in.Newest}) {
		if err != nil {
			return page, err
		}
		if int64(len(page.Lines)) == limit {
			if !in.Newest {
				page.Next = page.Lines[limit-1].N
			}
			break
		}
		page.Lines = append(page.Lines, line)
	}
	return page, nil
}
