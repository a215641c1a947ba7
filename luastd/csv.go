package luastd

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"obelus/luastd/internal/formats"
)

// csv: tables as lines of fields, as in RFC 4180, and as they come. In Lua:
//
//	local csv = require("csv")
//	local rows = assert(csv.decode(text, { header = true, comma = ";" }))
//	local out = csv.encode(rows, { header = { "name", "age" } })
var csvFuncs = []Func{
	{"decode", csvDecode},
	{"encode", csvEncode},
}

// csv.decode(text, [{header = true | {"a", "b"}, comma = ";"}]) → rows | nil, err
//
// A line ends with a line feed, a carriage return, or both. A field is in quotes if it begins
// with one: within it commas and line ends are text, and two quotes are one. In other fields a
// quote is text. A byte order mark at the start is passed over, and so are empty lines.
//
// Each row is an array of strings; with a header it is a table by name: true
// takes the names from the first line, a list gives them for all lines; either way
// each once.
func csvDecode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	e.charge(L, len(text)/16+1)
	if encoding := formats.WideEncoding(text); encoding != "" {
		return failed(L, "not CSV that can be read: it is "+encoding+": convert it to UTF-8")
	}
	text = strings.TrimPrefix(text, formats.ByteOrderMark)
	opts := e.options(L, 2, "comma", "header")
	separator := comma(L, opts)
	header, fromRows := csvNames(e, L, opts.RawGetString("header"))
	if twice, ok := namedTwice(header); ok { // one column would be lost
		L.ArgError(2, fmt.Sprintf("header names %q twice", twice))
	}
	var records [][]string
	var err error
	e.aside(L, len(text)/8+1, func(ctx context.Context) {
		records, err = readCSV(ctx, text, string(separator), e.maxArray())
	})
	if err != nil {
		return failed(L, err.Error())
	}
	e.limitArray(L, len(records))
	rows := L.CreateTable(len(records), 0)
	e.Codec.MarkArray(rows)
	if header == nil && !fromRows {
		for i, record := range records {
			rows.RawSetInt(i+1, e.stringArray(L, record))
		}
		L.Push(rows)
		return 1
	}
	first := 0
	if fromRows && len(records) > 0 {
		header, first = records[0], 1
		if twice, ok := namedTwice(header); ok {
			return failed(L, fmt.Sprintf("not CSV with a header: row 1 names %q twice, and one column would be lost", twice))
		}
	}
	for i, record := range records[first:] {
		if len(record) != len(header) {
			return failed(L, fmt.Sprintf("not CSV: row %d has %d fields, the header names %d", first+i+1, len(record), len(header)))
		}
		e.charge(L, len(header)+1)
		row := L.CreateTable(0, len(header))
		for j, name := range header {
			row.RawSetString(name, lua.LString(record[j]))
		}
		rows.RawSetInt(i+1, row)
	}
	L.Push(rows)
	return 1
}

// readCSV reads rows up to one more than most, or up to one that has more fields than most. It
// leaves out empty lines. It stands in for encoding/csv, which changes line ends within quotes,
// ends no line at a carriage return alone, and either refuses a quote within a field or takes text
// behind a field in quotes for a part of it.
func readCSV(ctx context.Context, text, comma string, most int) (rows [][]string, err error) {
	fieldEnds := comma + "\r\n"
	for at := 0; at < len(text) && len(rows) <= most && ctx.Err() == nil; {
		if text[at] == '\n' || text[at] == '\r' {
			at++
			continue
		}
		var row []string
		for more := true; more && len(row) <= most; {
			field, length, err := csvQuoted(text[at:])
			if err != nil {
				return nil, fmt.Errorf("not CSV: %w, at %s", err, csvPosition(text, at))
			}
			if at += length; length == 0 {
				end := strings.IndexAny(text[at:], fieldEnds)
				if end < 0 {
					end = len(text) - at
				}
				field = text[at : at+end]
				at += end
			} else if at < len(text) && strings.IndexAny(text[at:], fieldEnds) != 0 {
				return nil, fmt.Errorf("not CSV: text follows a field in quotes, at %s: "+
					"a quote within such a field is written twice", csvPosition(text, at))
			}
			row = append(row, field)
			if more = strings.HasPrefix(text[at:], comma); more {
				at += len(comma)
			}
		}
		if rows = append(rows, row); len(row) > most {
			break
		}
	}
	return rows, nil
}

// csvPosition is position where a carriage return alone ends a line.
func csvPosition(text string, offset int) string {
	before := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text[:offset])
	return formats.Position(before, len(before))
}

var errOpenQuote = errors.New("the field in quotes that begins here does not end")

// csvQuoted reads the field in quotes that text begins with. Its length is 0 if text begins with
// something else.
func csvQuoted(text string) (field string, length int, err error) {
	if !strings.HasPrefix(text, `"`) {
		return "", 0, nil
	}
	for at := 1; ; at += 2 { // behind two quotes
		end := strings.IndexByte(text[at:], '"')
		if end < 0 {
			return "", 0, errOpenQuote
		}
		if at += end; !strings.HasPrefix(text[at:], `""`) {
			return strings.ReplaceAll(text[1:at], `""`, `"`), at + 1, nil
		}
	}
}

func comma(L *lua.LState, opts *lua.LTable) rune {
	v := opts.RawGetString("comma")
	if v == lua.LNil {
		return ','
	}
	text, ok := v.(lua.LString)
	r, n := utf8.DecodeRuneInString(string(text))
	if !ok || n != len(text) || r == utf8.RuneError || r == 0 || r == '"' || r == '\n' || r == '\r' {
		L.ArgError(2, "comma must be one character")
	}
	return r
}

// csv.encode(rows, [{header = true | {"a", "b"}, comma = ";"}]) → text
//
// Rows are arrays, or tables by name if a header is given: a list of the
// fields, or true for all that rows have, sorted.
func csvEncode(e *Env, L *lua.LState) int {
	opts := e.options(L, 2, "comma", "header")
	v, err := e.Codec.FromLua(L.CheckTable(1), "rows")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	if object, ok := v.(map[string]any); ok && len(object) == 0 {
		v = []any{}
	}
	rows, ok := v.([]any)
	if !ok {
		L.ArgError(1, "rows are an array")
	}
	header := csvHeader(e, L, opts.RawGetString("header"), rows)
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = comma(L, opts)
	e.aside(L, weight(v), func(ctx context.Context) {
		err = csvWrite(&b, w, rows, header, func() bool { return b.Len() > e.maxString() || ctx.Err() != nil })
	})
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	text := b.String()
	// A reader removes the first one, and this one belongs to a field.
	if strings.HasPrefix(text, formats.ByteOrderMark) {
		text = formats.ByteOrderMark + text
	}
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

// csvWrite writes rows by w to b until there are enough.
func csvWrite(b *strings.Builder, w *csv.Writer, rows []any, header []string, enough func() bool) error {
	write := func(record []string) {
		if len(record) == 1 && record[0] == "" { // an empty line would be no row
			w.Flush()
			b.WriteString("\"\"\n")
			return
		}
		w.Write(record)
	}
	if header != nil {
		write(header)
	}
	for i, row := range rows {
		record, err := csvRecord(row, header)
		if err != nil {
			return fmt.Errorf("rows[%d]: %w", i+1, err)
		}
		if write(record); enough() {
			break
		}
	}
	w.Flush()
	return nil
}

func csvHeader(e *Env, L *lua.LState, option lua.LValue, rows []any) []string {
	header, fromRows := csvNames(e, L, option)
	if !fromRows || len(rows) == 0 {
		return header
	}
	if _, ok := rows[0].(map[string]any); !ok {
		L.ArgError(2, "header = true is for rows that are tables by name")
	}
	columns := map[string]bool{}
	for _, row := range rows {
		fields, _ := row.(map[string]any)
		for name := range fields {
			columns[name] = true
		}
	}
	header = slices.AppendSeq([]string{}, maps.Keys(columns)) // none is another header than no header
	slices.Sort(header)
	return header
}

// csvNames reads the option header: a list of names, or that the rows have them.
func csvNames(e *Env, L *lua.LState, option lua.LValue) (names []string, fromRows bool) {
	if !lua.LVAsBool(option) || option == lua.LTrue {
		return nil, option == lua.LTrue
	}
	list, ok := e.optionValue(L, option, "header").([]any)
	for _, name := range list {
		text, isText := name.(string)
		ok = ok && isText
		names = append(names, text)
	}
	if !ok || len(names) == 0 {
		L.ArgError(2, "header is true or an array of names")
	}
	return names, false
}

func namedTwice(names []string) (string, bool) {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

// errEmptyRow is of a row that would be an empty line, which is no row.
var errEmptyRow = errors.New("a row has a field at least")

func csvRecord(row any, header []string) ([]string, error) {
	switch row := row.(type) {
	case []any:
		if len(row) == 0 {
			return nil, errEmptyRow
		}
		if header != nil && len(row) > len(header) {
			return nil, fmt.Errorf("it has %d fields, and the header names only %d", len(row), len(header))
		}
		record := make([]string, max(len(row), len(header))) // the last fields of a row may be nil
		for i, v := range row {
			var err error
			if record[i], err = csvField(v); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i+1, err)
			}
		}
		return record, nil
	case map[string]any:
		if header == nil && len(row) == 0 {
			return nil, errEmptyRow
		}
		if header == nil {
			return nil, errors.New("a row with names needs a header")
		}
		record := make([]string, len(header))
		for i, name := range header {
			var err error
			if record[i], err = csvField(row[name]); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return record, nil
	}
	return nil, errors.New("a row is a table")
}

func csvField(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	case bool:
		return fmt.Sprint(v), nil
	}
	return "", errors.New("a field is text, a number or a boolean")
}
