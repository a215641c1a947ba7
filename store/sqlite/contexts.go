package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"strings"
	"time"

	"obelus/store"
)

// milliseconds is how the rows of contexts say when they are due.
const milliseconds = "2006-01-02T15:04:05.000Z"

const (
	// In the order of [contextInfo].
	infoColumns = `c.context, c.parent, c.parent_call, c.created, c.updated, c.fork, c.fork_at,
	c.status, c.plan, c.error, c.tick, c.calls, c.done, c.failed, c.waiting, c.held, c.due, c.wakes, c.labels, c.retrying, c.waiting_on, c.background, c.started, c.worked_ms, c.bytes,
	COALESCE((SELECT max(seq) FROM messages AS m WHERE m.context = c.context), (SELECT max(upto) FROM lineage AS s WHERE s.context = c.context)),
	l.epoch, l.host, l.boot, l.namespace, l.pid, l.started, l.until`
	andLeases     = ` LEFT JOIN leases AS l ON l.context = c.context AND l.until > 0`
	selectInfo    = `SELECT ` + infoColumns + ` FROM contexts AS c` + andLeases + ` WHERE c.context = ?1`
	insertContext = `INSERT INTO contexts (context, parent, parent_call, created, updated, fork, fork_at, bytes, once,
	status, plan, error, tick, calls, done, failed, waiting, held, due, wakes, labels, retrying, waiting_on, background, started, worked_ms)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)`
	updateContext  = `UPDATE contexts SET updated = max(updated, ?2), bytes = bytes + ?3, due = iif(?4 AND wakes, ?5, due) WHERE context = ?1`
	updateStanding = `UPDATE contexts SET updated = max(updated, ?2), bytes = bytes + ?3,
	status = ?4, plan = ?5, error = ?6, tick = ?7, calls = ?8, done = ?9, failed = ?10, waiting = ?11, held = ?12, due = ?13, wakes = ?14, labels = ?15,
	retrying = ?16, waiting_on = ?17, background = ?18, started = ?19, worked_ms = ?20
	WHERE context = ?1`
	// The bytes that a holder which crashed had not written yet.
	updateBytes = `UPDATE contexts SET bytes = COALESCE((
		SELECT sum(COALESCE(octet_length(data), 0) + COALESCE(octet_length(schema), 0) + COALESCE(octet_length(producer), 0))
		FROM messages AS m WHERE m.context = ?1), 0) WHERE context = ?1`
)

// standingValues appends the columns of a standing, from status on.
func standingValues(to []driver.Value, s *store.Standing) []driver.Value {
	var due, labels, waitingOn, started driver.Value
	if !s.Started.IsZero() {
		started = s.Started.UTC().Format(milliseconds)
	}
	if !s.Due.IsZero() {
		due = s.Due.UTC().Format(milliseconds)
	}
	if len(s.Labels) > 0 {
		all := make(map[string]any, len(s.Labels))
		for name, value := range s.Labels {
			all[name] = value
		}
		labels = string(store.EncodeJSON(all))
	}
	if len(s.WaitingOn) > 0 {
		all := make([]any, len(s.WaitingOn))
		for i, path := range s.WaitingOn {
			all[i] = path
		}
		waitingOn = string(store.EncodeJSON(all))
	}
	return append(to, s.Status, s.Plan, s.Error, int64(s.Tick), int64(s.Calls), int64(s.Done), int64(s.Failed), int64(s.Waiting), int64(s.Held), due, s.Wakes, labels,
		int64(s.Retrying), waitingOn, int64(s.Background), started, float64(s.Worked)/float64(time.Millisecond))
}

// Info implements [store.Log].
func (l *Log) Info(ctx context.Context, name string) (info store.ContextInfo, err error) {
	if err := ctx.Err(); err != nil {
		return info, err
	}
	found := false
	err = l.readers.read(func(c *conn) error {
		return c.each(ctx, selectInfo, []driver.Value{name}, func(row []driver.Value) (bool, error) {
			found = true
			info, err = c.contextInfo(ctx, row)
			return false, err
		})
	})
	if err == nil && !found {
		return info, fmt.Errorf("%w: %s", store.ErrNoContext, name)
	}
	return info, explain(l.path, err)
}

// Contexts implements [store.Log].
func (l *Log) Contexts(ctx context.Context, f store.ContextFilter) iter.Seq2[store.ContextInfo, error] {
	return func(yield func(store.ContextInfo, error) bool) {
		f, size := f, firstPage
		if isScanned(&f) {
			size = scannedPage
		}
		read := func(c *conn, p *page[store.ContextInfo]) error { return c.contexts(ctx, &f, p) }
		goOn := func(info store.ContextInfo) bool {
			f.After = info.Mark()
			return true
		}
		pages(l, ctx, size, read, goOn)(yield)
	}
}

// contexts reads the next contexts of a list.
func (c *conn) contexts(ctx context.Context, f *store.ContextFilter, p *page[store.ContextInfo]) error {
	sql, values := selectContexts(f, p.size)
	return c.each(ctx, sql, values, func(row []driver.Value) (bool, error) {
		info, err := c.contextInfo(ctx, row)
		if err != nil {
			return false, err
		}
		return p.add(info, row), nil
	})
}

// selectContexts returns the query for the next contexts of a list.
func selectContexts(f *store.ContextFilter, size int) (sql string, values []driver.Value) {
	w, order := contextConditions(f), " ORDER BY "+updatedColumn(f)+" DESC, c.context DESC"
	// The rows are picked first and described then: SQLite would describe all rows that it sorts.
	picked := fmt.Sprintf("SELECT c.context FROM contexts AS c%s%s LIMIT %d", w, order, size)
	return "SELECT " + infoColumns + " FROM (" + picked + ") AS p CROSS JOIN contexts AS c ON c.context = p.context" + andLeases + order, w.values
}

// CountContexts implements [store.Log].
func (l *Log) CountContexts(ctx context.Context, f store.ContextFilter) (counts map[string]int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := contextConditions(&f)
	err = l.readers.read(func(c *conn) error {
		counts = map[string]int64{}
		return c.each(ctx, "SELECT c.status, count(*) FROM contexts AS c"+w.String()+" GROUP BY c.status", w.values, func(row []driver.Value) (bool, error) {
			counts[text(row[0])] = integer(row[1])
			return true, nil
		})
	})
	return counts, explain(l.path, err)
}

// updatedColumn returns the column updated as a list of a filter's contexts refers to it. Where the
// filter needs columns that are in no index, its index must not be used: reading all rows in the
// order of the table takes a fifth of the time of finding each by an index. A plus sign prevents
// the use; NOT INDEXED has no effect on a table without rowids.
func updatedColumn(f *store.ContextFilter) string {
	if isScanned(f) {
		return "+c.updated"
	}
	return "c.updated"
}

// isScanned reports whether a filter is about columns that are in no index.
func isScanned(f *store.ContextFilter) bool { return f.Plan+f.Text != "" || len(f.Labels) > 0 }

// contextConditions is the WHERE of a filter.
func contextConditions(f *store.ContextFilter) *conditions {
	var w conditions
	updated := updatedColumn(f)
	if f.Prefix != "" {
		w.add("c.context >= ?", f.Prefix)
		w.add("substr(c.context, 1, length(?)) = ?", f.Prefix, f.Prefix)
	}
	if f.Among != nil {
		among := make([]any, len(f.Among))
		for i, name := range f.Among {
			among[i] = name
		}
		w.add("c.context IN (SELECT value FROM json_each(?))", string(store.EncodeJSON(among)))
	}
	if f.Roots {
		w.add("c.parent IS NULL")
	}
	if f.Parent != "" {
		w.add("c.parent = ?", f.Parent)
	}
	if f.Fork != "" {
		w.add("c.fork = ?", f.Fork)
	}
	if !f.Since.IsZero() {
		w.add(updated+" >= ?", ceilMicroseconds(f.Since))
	}
	if !f.Until.IsZero() {
		w.add(updated+" < ?", ceilMicroseconds(f.Until))
	}
	if f.Statuses != nil {
		w.add("c.status IN (" + strings.TrimPrefix(strings.Repeat(", ?", len(f.Statuses)), ", ") + ")")
		for _, status := range f.Statuses {
			w.values = append(w.values, status)
		}
	}
	if f.Plan != "" {
		w.add("c.plan = ?", f.Plan)
	}
	if f.Text != "" {
		found, quoted := containing(f.Text), string(store.EncodeJSON(f.Text))
		// Few labels need to be read as JSON.
		w.add(`(c.context LIKE ? ESCAPE '\' OR c.plan LIKE ? ESCAPE '\' OR c.labels LIKE ? ESCAPE '\'
			AND EXISTS (SELECT 1 FROM json_each(c.labels) AS v WHERE v.value LIKE ? ESCAPE '\'))`, found, found, containing(quoted[1:len(quoted)-1]), found)
	}
	for name, value := range f.Labels {
		if store.CheckStoredContext(name) != nil { // no label has such a name
			w.add("0")
			continue
		}
		w.add("c.labels ->> ? = ?", `$."`+name+`"`, value)
	}
	if f.Held {
		w.add("c.held > 0")
	}
	if f.Retrying {
		w.add("c.retrying > 0")
	}
	if f.WaitingOn != "" {
		w.add("c.waiting_on IS NOT NULL")
		w.add("EXISTS (SELECT 1 FROM json_each(c.waiting_on) AS v WHERE v.value = ?)", f.WaitingOn)
	}
	if !f.Due.IsZero() {
		w.add("c.due <= ?", f.Due.UTC().Format(milliseconds))
	}
	if f.After.Context != "" {
		at := f.After.Updated.UTC().Format(microseconds)
		w.add(updated+" <= ?", at)
		w.add("("+updated+" < ? OR c.context < ?)", at, f.After.Context)
	}
	return &w
}

// containing is a pattern of LIKE for what contains a text, letters of ASCII in any case.
func containing(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}

// ceilMicroseconds formats a time for a comparison with [store.ContextInfo].Updated.
func ceilMicroseconds(t time.Time) string {
	return t.Add(time.Microsecond - 1).UTC().Format(microseconds)
}

// contextInfo reads a row of infoColumns.
func (c *conn) contextInfo(ctx context.Context, row []driver.Value) (info store.ContextInfo, err error) {
	info = store.ContextInfo{
		Context: text(row[0]), Origin: store.Origin{Parent: text(row[1]), Call: text(row[2]), Fork: text(row[5]), At: integer(row[6])},
		Bytes: integer(row[24]), Messages: integer(row[25]),
	}
	damaged := func(what string, err error) error {
		return &problem{ErrDamaged, fmt.Sprintf("is damaged: %s of context %s: %v", what, info.Context, err)}
	}
	if info.Created, err = date(row[3]); err == nil {
		info.Updated, err = date(row[4])
	}
	if err != nil {
		return info, damaged("dates", err)
	}
	if info.Standing, err = standing(row[7:24]); err != nil {
		return info, damaged("the standing", err)
	}
	if row[26] != nil {
		info.Holder = leaseOf(row[26:]).holds(time.Now())
		info.Lapsed = info.Holder == ""
	}
	if info.Origin.Fork == "" {
		return info, nil
	}
	spans, err := c.spans(ctx, info.Context)
	if err != nil {
		return info, err
	}
	for _, s := range spans[1:] {
		info.Shares = append(info.Shares, s.context)
	}
	return info, nil
}

// standing reads the columns from status to worked_ms.
func standing(row []driver.Value) (s store.Standing, err error) {
	number := func(i int) int { return int(integer(row[i])) }
	s = store.Standing{
		Status: text(row[0]), Plan: text(row[1]), Error: text(row[2]), Tick: number(3),
		Calls: number(4), Done: number(5), Failed: number(6), Waiting: number(7), Held: number(8), Wakes: number(10) != 0, Retrying: number(12), Background: number(14),
	}
	if row[9] != nil {
		if s.Due, err = date(row[9]); err != nil {
			return s, err
		}
	}
	if row[15] != nil {
		if s.Started, err = date(row[15]); err != nil {
			return s, err
		}
	}
	if ms, ok := row[16].(float64); ok {
		s.Worked = time.Duration(ms * float64(time.Millisecond))
	}
	if row[13] != nil {
		value, err := store.DecodeJSON([]byte(text(row[13])))
		if err != nil {
			return s, err
		}
		paths, _ := value.([]any)
		for _, path := range paths {
			path, _ := path.(string)
			s.WaitingOn = append(s.WaitingOn, path)
		}
	}
	if row[11] == nil {
		return s, nil
	}
	value, err := store.DecodeJSON([]byte(text(row[11])))
	labels, _ := value.(map[string]any)
	s.Labels = make(map[string]string, len(labels))
	for name, label := range labels {
		s.Labels[name], _ = label.(string)
	}
	return s, err
}
