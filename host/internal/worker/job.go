package worker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/luastd"
	"obelus/store"
)

// setupMessage is the first message to a worker: the parts of the project that activities need. It
// is sent as JSON.
type setupMessage struct {
	Dir     string
	Grants  luastd.Grants
	Limits  limits.Limits
	Scripts map[string]string              // sources of files that scripts may require, by path
	Broken  map[string]*luaerr.ScriptError // errors of files that can't be read, by path

	DefaultModel string
}

// job is one call for a worker.
type job struct {
	file, sha256 string
	source       any // of the file; nil if the worker has it already
	name         string
	timeout      time.Duration
	bounds       string // JSON of Call.Bounds; empty for none
	in           plan.Invocation
}

// scriptID identifies a version of a script, by its path too: two files may have the same text.
func (j *job) scriptID() string { return j.file + "\x00" + j.sha256 }

// value returns the job as it is sent.
func (j *job) value() any {
	return []any{
		j.file, j.sha256, j.source, j.name, int64(j.timeout),
		j.in.Call, j.in.Context, j.in.Tool, j.in.Key, j.in.Attempt, j.bounds, j.in.Before,
	}
}

// readJob returns the job that was sent as v.
func readJob(v any) *job {
	list := v.([]any)
	j := &job{file: list[0].(string), sha256: list[1].(string), source: list[2], name: list[3].(string), timeout: time.Duration(toInt64(list[4]))}
	j.in.Call, _ = list[5].(map[string]any)
	j.in.Context, _ = list[6].(map[string]any)
	j.in.Tool, j.in.Key, j.in.Attempt = list[7], list[8].(string), int(toInt64(list[9]))
	j.bounds, j.in.Before = list[10].(string), int(toInt64(list[11]))
	return j
}

// readBounds returns the bounds that were sent as text. A text that can't be read is an error: the
// call would have all that the project grants.
func readBounds(text string) (bounds []luastd.Bound, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &bounds)
	}
	return bounds, err
}

func toInt64(v any) int64 {
	n, _ := v.(json.Number).Int64()
	return n
}

// answer is the outcome of a job. One of its fields is set.
type answer struct {
	result  plan.Result
	failure map[string]any      // fields of a [plan.Failure]
	fault   *luaerr.ScriptError // any other error
}

// value returns the answer as it is sent.
func (a *answer) value() any {
	switch {
	case a.failure != nil:
		return map[string]any{"failure": a.failure}
	case a.fault != nil:
		return map[string]any{"fault": string(store.EncodeJSON(a.fault))}
	case a.result.Message != nil:
		return map[string]any{"message": a.result.Message}
	}
	return map[string]any{"value": a.result.Value, "to": a.result.To}
}

// readAnswer returns the answer that was sent as v.
func readAnswer(v any) (a answer, err error) {
	is, ok := v.(map[string]any)
	if !ok {
		return a, errWire
	}
	a.failure, _ = is["failure"].(map[string]any)
	a.result.Message, _ = is["message"].(map[string]any)
	a.result.Value = is["value"]
	a.result.To, _ = is["to"].(string)
	if fault, ok := is["fault"].(string); ok {
		err = json.Unmarshal([]byte(fault), &a.fault)
	}
	return a, err
}

// outcome returns the answer as the result of [plan.Activity.Run].
func (a *answer) outcome() (plan.Result, error) {
	switch {
	case a.failure != nil:
		return plan.Result{}, &plan.Failure{Fields: a.failure, Loose: true}
	case a.fault != nil:
		return plan.Result{}, a.fault
	}
	a.result.Loose = true
	return a.result, nil
}

// outputSender sends the output of scripts, as strings before the outcome of the job: it must not
// be mistaken for the runtime's last messages on stderr.
type outputSender struct{ out io.Writer }

func (p outputSender) Write(text []byte) (int, error) {
	return len(text), send(p.out, string(text))
}

// logSender sends the log records of scripts, as lists before the outcome of the job: the level,
// the message, then names and values alternately.
type logSender struct{ out io.Writer }

func (r logSender) Enabled(context.Context, slog.Level) bool { return true }

func (r logSender) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r logSender) WithGroup(string) slog.Handler { return r }

func (r logSender) Handle(_ context.Context, record slog.Record) error {
	list := []any{int(record.Level), record.Message}
	record.Attrs(func(a slog.Attr) bool {
		list = append(list, a.Key, luastd.Unlogged(a.Value.Any()))
		return true
	})
	return send(r.out, list)
}

// logReceived logs a record that a logSender has sent.
func logReceived(log *slog.Logger, list []any) {
	var attrs []slog.Attr
	for i := 2; i+1 < len(list); i += 2 {
		attrs = append(attrs, slog.Any(list[i].(string), luastd.Logged(list[i+1])))
	}
	log.LogAttrs(context.Background(), slog.Level(toInt64(list[0])), list[1].(string), attrs...)
}
