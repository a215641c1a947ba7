package luastd_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/luastd"
	"obelus/store"
)

// run runs the body of a Lua function and gives its result as JSON; an error
// is its text.
func run(t *testing.T, config host.Config, body string) string {
	t.Helper()
	return runFor(t, config, 20*slower, body)
}

// runFor is run with a timeout in seconds.
func runFor(t *testing.T, config host.Config, timeout float64, body string) string {
	t.Helper()
	return runUnder(t, config, "return {}", timeout, body)
}

// runUnder is runFor under an obelus.lua.
func runUnder(t *testing.T, config host.Config, settings string, timeout float64, body string) string {
	t.Helper()
	prelude := ""
	for _, module := range luastd.Modules {
		prelude += "local " + module.Name + " = require '" + module.Name + "' "
	}
	config.FS = fstest.MapFS{"obelus.lua": {Data: []byte(settings)}, "activities/a.lua": {Data: []byte(fmt.Sprintf("%s\nActivity.register('a', {timeout = %g}, function(call) %s end)", prelude, timeout, body))}}
	h, err := host.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Generation().Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{})
	if err != nil {
		return err.Error()
	}
	return string(store.EncodeJSON(r.Value))
}

// timely holds f to what it gives, and to a time in one of three tries: a busy machine
// is late now and then, and what does not end with its call is so always.
func timely(t *testing.T, what, want string, most time.Duration, f func() string) {
	t.Helper()
	var took []time.Duration
	for range 3 {
		runtime.GC()
		began := time.Now()
		if got := f(); got != want {
			t.Errorf("%s: %.100s", what, got)
			return
		}
		if took = append(took, time.Since(began)); took[len(took)-1] <= most {
			return
		}
	}
	t.Errorf("%s takes %v", what, took)
}

func TestModules_Sorted(t *testing.T) {
	if !slices.IsSortedFunc(luastd.Modules, func(a, b luastd.Module) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("modules are not sorted")
	}
	for _, m := range luastd.Modules {
		if !slices.IsSortedFunc(m.Funcs, func(a, b luastd.Func) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("functions of %s are not sorted", m.Name)
		}
	}
}

// frozen is a clock that stands still and does not wait.
type frozen struct{ slept *time.Duration }

func (frozen) Now() time.Time { return time.Unix(1_700_000_000, 250_000_000) }

func (f frozen) Sleep(_ context.Context, d time.Duration) error {
	*f.slept += d
	return nil
}

func TestModules_Functions(t *testing.T) {
	tests := []struct{ body, want string }{
		{`return json.encode({b = 1, a = {1, json.null, "<é>"}, e = {}, l = json.array()})`, `"{\"a\":[1,null,\"<é>\"],\"b\":1,\"e\":{},\"l\":[]}"`},
		{`return json.encode({1}, {indent = " "})`, `"[\n 1\n]"`},
		{`return json.encode({1, {}, {a = {2}}}, {indent = "\t"})`, `"[\n\t1,\n\t{},\n\t{\n\t\t\"a\": [\n\t\t\t2\n\t\t]\n\t}\n]"`},
		{`return {json.encode({1}, {indent = 2}), json.encode({1}, {indent = 0}), json.encode({1}, {indent = ""}), json.encode({{}}, {indent = 10})}`, `["[\n  1\n]","[1]","[1]","[\n          {}\n]"]`},
		{`return json.encode({1}, {indent = 11})`, `activities/a.lua:2: bad argument #2 to json.encode: indent is a whole number from 0 to 10, or at most as many spaces and tabs`},
		{`return json.encode({1}, {indent = 1.5})`, `activities/a.lua:2: bad argument #2 to json.encode: indent is a whole number from 0 to 10, or at most as many spaces and tabs`},
		{`return json.encode({1}, {indent = 0/0})`, `activities/a.lua:2: bad argument #2 to json.encode: indent is a whole number from 0 to 10, or at most as many spaces and tabs`},
		{`return json.encode({1}, {indent = "--"})`, `activities/a.lua:2: bad argument #2 to json.encode: indent is a whole number from 0 to 10, or at most as many spaces and tabs`},
		{`return json.encode({1}, {indent = true})`, `activities/a.lua:2: bad argument #2 to json.encode: indent is a whole number from 0 to 10, or at most as many spaces and tabs`},
		{`local t = json.decode(("["):rep(100) .. ("1,"):rep(2e4) .. "1" .. ("]"):rep(100)) return json.encode(t, {indent = 10})`, `activities/a.lua:2: a string would be longer than 16777216 bytes`},
		{`return json.encode(nil)`, `"null"`},
		{`return json.decode('{"a":[1,null,2.50],"big":12345678901234567890}')`, `{"a":[1,null,2.50],"big":12345678901234567890}`},
		{`return json.decode('{"big":12345678901234567890}').big`, `"12345678901234567890"`},
		{`return json.decode("null") == json.null`, `true`},
		{`return {json.decode("{"), select(2, json.decode("{"))}`, `activities/a.lua: activity a: result[1]: a hole in an array: put json.null there`},
		{`return select(2, json.decode("{"))`, `"not JSON: it ends too early, at line 1 column 2"`},
		{`return select(2, json.decode('{"a": 1,\n"\\ud83dx": 2}'))`, `"not JSON that can be read: \\ud83d is half a character: the other half is not there, at line 2 column 2"`},
		{`return select(2, json.decode('"\\uDe00"'))`, `"not JSON that can be read: \\uDe00 is half a character: the other half is not there, at line 1 column 2"`},
		{`return {json.decode('"\\ud83d\\ude00 \\\\ud83d \\ufffd"')}`, `["😀 \\ud83d �"]`},
		{`return select(2, json.decode(""))`, `"not JSON: it is empty"`},
		{`return select(2, json.decode("{}\n x"))`, `"not JSON: more text after the value, at line 2 column 2"`},
		{`return select(2, json.decode("[1,\n]"))`, `"not JSON: invalid character ']' looking for beginning of value, at line 2 column 1"`},
		{`return select(2, json.decode("\255"))`, `"not JSON: it is not valid UTF-8"`},
		{`return select(2, json.decode(("["):rep(200) .. ("]"):rep(200)))`, `"not JSON that can be read: nested deeper than 128"`},
		{`return {json.decode("\239\187\191{\"a\":1}"), (select(2, json.decode("\239\187\191{x"))), (select(2, json.decode("\239\187\191")))}`, `[{"a":1},"not JSON: invalid character 'x' looking for beginning of object key string, at line 1 column 2","not JSON: it is empty"]`},
		{`local t = {} for _, text in ipairs{"\255\254[\0]\0", "\254\255\0[\0]", "[\0]\0", "\0[\0]", "1\0", "\0001", "\255\254\0\0001\0\0\0", "1\0\0\0", "\0\0\0001"} do
			for name, decode in pairs{JSON = json.decode, YAML = yaml.decode, CSV = csv.decode} do
				local _, err = decode(text)
				local encoding = #t < 6 and "UTF-16" or "UTF-32"
				assert(err == "not " .. name .. " that can be read: it is " .. encoding .. ": convert it to UTF-8", err)
			end
			t[#t + 1] = true
		end return #t`, `9`},
		{`return {csv.decode("a\0b"), csv.decode("\0"), (select(2, json.decode("\0"))), (select(2, json.decode("[\255]")))}`, `[[["a\u0000b"]],[["\u0000"]],"not JSON: invalid character '\\x00' looking for beginning of value, at line 1 column 1","not JSON: it is not valid UTF-8"]`},
		{`return json.encode({a = {b = 0/0}})`, `activities/a.lua:2: value.a.b: NaN is not a JSON number`},
		{`return json.encode({}, {pretty = true})`, `activities/a.lua:2: bad argument #2 to json.encode: unknown option pretty (one of indent)`},
		{`return json.array{1, 2}`, `[1,2]`},

		{`return str.split("a,b,,c", ",")`, `["a","b","","c"]`},
		{`return str.split("  a b\tc ")`, `["a","b","c"]`},
		{`return str.split("", ",")`, `[""]`},
		{`return str.split("a", "")`, `activities/a.lua:2: bad argument #2 to str.split: must not be empty`},
		{`return str.lines("a\r\nb\n\nc")`, `["a","b","","c"]`},
		{`return str.lines("")`, `[]`},
		{`return str.trim("  a b \n") .. "|" .. str.trim("xxaxx", "x")`, `"a b|a"`},
		{`return {str.starts("abc", "ab"), str.ends("abc", "bc"), str.contains("a.c", ".")}`, `[true,true,true]`},
		{`return str.replace("a.b.c", ".", "-") .. str.replace("a.b.c", ".", "-", 1)`, `"a-b-ca-b.c"`},
		{`return str.replace(("x"):rep(1e6), "x", ("y"):rep(1000))`, `activities/a.lua:2: a string would be longer than 16777216 bytes`},
		{`return str.trim(nil)`, `activities/a.lua:2: bad argument #1 to str.trim: string expected, got nil`},

		{`return csv.decode("a,b\n1,\"x,y\"\n")`, `[["a","b"],["1","x,y"]]`},
		{`return csv.decode("a;b\n1;2", {header = true, comma = ";"})`, `[{"a":"1","b":"2"}]`},
		{`return csv.decode("1,2\n3,4", {header = {"a", "b"}})`, `[{"a":"1","b":"2"},{"a":"3","b":"4"}]`},
		{`return csv.decode("1,2", {header = false})`, `[["1","2"]]`},
		{`return select(2, csv.decode("1,2\n3", {header = {"a", "b"}}))`, `"not CSV: row 2 has 1 fields, the header names 2"`},
		{`return csv.decode("", {header = "yes"})`, `activities/a.lua:2: bad argument #2 to csv.decode: header is true or an array of names`},
		{`return csv.decode("", {header = {}})`, `activities/a.lua:2: bad argument #2 to csv.decode: header is true or an array of names`},
		{`return csv.decode("1,2", {header = {"a", "b", "a"}})`, `activities/a.lua:2: bad argument #2 to csv.decode: header names "a" twice`},
		{`return csv.decode("a,a\n1,2")`, `[["a","a"],["1","2"]]`},
		{`return csv.encode({{a = 1}}, {header = {"a", "a"}})`, `"a,a\n1,1\n"`},
		{`return csv.encode({}, {header = {1}})`, `activities/a.lua:2: bad argument #2 to csv.encode: header is true or an array of names`},
		{`return csv.decode('a,"b\r\nc ""\r\n"" \r\r\n"\r\n"d"\r\n')`, `[["a","b\r\nc \"\r\n\" \r\r\n"],["d"]]`},
		{`return csv.decode(csv.encode({{"\r\n", "\r", "\n"}}))`, `[["\r\n","\r","\n"]]`},
		{`return csv.decode("")`, `[]`},
		{`return csv.decode("", {header = true})`, `[]`},
		{`return select(2, csv.decode("a,b,a\n1,2,3", {header = true}))`, `"not CSV with a header: row 1 names \"a\" twice, and one column would be lost"`},
		{`return select(2, csv.decode("a,b\n1", {header = true}))`, `"not CSV: row 2 has 1 fields, the header names 2"`},
		{`return select(2, csv.decode('a,"b\n'))`, `"not CSV: the field in quotes that begins here does not end, at line 1 column 3"`},
		{`return csv.encode({{1, "x,y", true}, {2.5, json.null, "é"}})`, `"1,\"x,y\",true\n2.5,,é\n"`},
		{`return csv.encode({{""}, {"a"}, {"", ""}})`, `"\"\"\na\n,\n"`},
		{`return csv.decode(csv.encode({{"\239\187\191a"}}))`, "[[\"\ufeffa\"]]"},
		{`return csv.encode({{1}}, {comma = "\0"})`, `activities/a.lua:2: bad argument #2 to csv.encode: comma must be one character`},
		{`return csv.encode({{}}, {header = true})`, `"\n\n"`},
		{`return csv.encode({{name = "Ada"}, {name = "Bo", phone = "123"}}, {header = true})`, `"name,phone\nAda,\nBo,123\n"`},
		{`return csv.encode({{b = 1, a = 2}, {a = 3}}, {header = true})`, `"a,b\n2,1\n3,\n"`},
		{`return csv.encode({{b = 1, a = 2}}, {header = {"b", "a"}, comma = ";"})`, `"b;a\n1;2\n"`},
		{`return csv.encode({})`, `""`},
		{`return csv.encode({{a = 1}})`, `activities/a.lua:2: rows[1]: a row with names needs a header`},
		{`return csv.encode({{{}}})`, `activities/a.lua:2: rows[1]: [1]: a field is text, a number or a boolean`},
		{`return {csv.decode("id,name\r1,a\r", {header = true}), csv.decode("a,b\r1,2\r"), csv.decode("a\r\n\rb\n\rc\r\r\nd")}`, `[[{"id":"1","name":"a"}],[["a","b"],["1","2"]],[["a"],["b"],["c"],["d"]]]`},
		{`return {csv.decode("3\" pipe,5 \"x\", \"y\"\n\"a\r\nb\",\"c\"\"\",\"\""), csv.decode("a;\"b,;\"", {comma = ";"}), csv.decode("a†\"†\"†", {comma = "†"})}`, `[[["3\" pipe","5 \"x\""," \"y\""],["a\r\nb","c\"",""]],[["a","b,;"]],[["a","†",""]]]`},
		{`return {select(2, csv.decode("a\n\"b\"c")), (select(2, csv.decode("a,\"b")))}`, `["not CSV: text follows a field in quotes, at line 2 column 4: a quote within such a field is written twice","not CSV: the field in quotes that begins here does not end, at line 1 column 3"]`},
		{`return {select(2, csv.decode("a\rb\r\n\"c\"d")), (select(2, pcall(csv.decode, (","):rep(3e6))))}`, `["not CSV: text follows a field in quotes, at line 3 column 4: a quote within such a field is written twice","an array would be longer than 1048574 elements"]`},
		{`return csv.decode("a,\"x\ry\"\r\nb\r")`, `[["a","x\ry"],["b"]]`},
		{`return csv.encode({{1}, {}})`, `activities/a.lua:2: rows[2]: a row has a field at least`},
		{`return csv.encode({json.array{}})`, `activities/a.lua:2: rows[1]: a row has a field at least`},
		{`return csv.encode({{1, 2, 3}}, {header = {"x", "y"}})`, `activities/a.lua:2: rows[1]: it has 3 fields, and the header names only 2`},
		{`return csv.encode({{1, nil}, {1, 2}}, {header = {"x", "y"}})`, `"x,y\n1,\n1,2\n"`},
		{`return csv.encode({{1, 2}, {a = 3}}, {header = {"a", "b"}})`, `"a,b\n1,2\n3,\n"`},
		{`return csv.encode({3})`, `activities/a.lua:2: rows[1]: a row is a table`},
		{`return csv.decode("", {comma = "ab"})`, `activities/a.lua:2: bad argument #2 to csv.decode: comma must be one character`},

		{`return time.now()`, `1700000000.25`},
		{`return time.format(time.now())`, `"2023-11-14T22:13:20.25Z"`},
		{`local t = {} for _, s in ipairs{"2024-02-28T12:00:00.123Z", "1969-12-31T23:59:59.5Z", "2024-02-28T12:00:00.000001Z", "2024-02-28T12:00:00Z", "0000-01-01T00:00:00.1Z", "9999-12-31T23:59:59.9Z"} do t[#t + 1] = time.format(assert(time.parse(s))) == s end return t`, `[true,true,true,true,true,true]`},
		{`return {time.format(1.5, "%T.%f"), time.format(-0.5, "%T,%L"), time.parse("1970-01-01 00:00:01.500000", "%F %T.%f"), time.parse("05,25", "%S,%L") == time.parse("5.25", "%S"), (select(2, pcall(time.parse, "1", "%f"))), time.format(0.25, "")}`, `["00:00:01.500000","23:59:59,500",1.5,true,"bad argument #2 to time.parse: %f in the layout can't be read back",""]`},
		{`local t = {} for i, s in ipairs{"2016-12-31T23:59:60Z", "2016-12-31T15:59:60.5-08:00", "2015-07-01T01:59:60+02:00", "1972-06-30t23:59:60z"} do t[i] = time.format(time.parse(s)) end return t`, `["2017-01-01T00:00:00Z","2017-01-01T00:00:00.5Z","2015-07-01T00:00:00Z","1972-07-01T00:00:00Z"]`},
		{`return {time.format(time.parse("31.12.2016 23:59:60", "%d.%m.%Y %T")), (select(2, time.parse("1.12.2016 23:59:60", "%d.%m.%Y %T"))), (select(2, time.parse("2016-12-31T23:59:60+01:00")))}`, `["2017-01-01T00:00:00Z","\"1.12.2016 23:59:60\" does not fit the layout \"%d.%m.%Y %T\": a second 60 can end a month in UTC only","\"2016-12-31T23:59:60+01:00\" is not a time as in RFC 3339: a second 60 can end a month in UTC only"]`},
		{`local t = {} for i, s in ipairs{"2023-02-29T00:00:00Z", "2023-02-29", "2023-04-31", "2024-02-30", "2023-13-01", "2023-00-01", "2023-01-00", "2023-01-01T24:00:00Z", "2023-01-01T00:60:00Z", "2023-01-01T00:00:61Z", "2023-01-01T00:00:00+24:00", "2023-01-01T00:00:00-01:60", "2023-01-01", "2023-01-01T00:00:00", "2023-01-01 00:00:00Z", "2023-1-1"} do
				local v, err = time.parse(s) t[i] = (tostring(v) .. err):gsub("^.- 3339: ", "")
			end return t`, `["February 2023 has 28 days","February 2023 has 28 days","April 2023 has 30 days","February 2024 has 29 days","there is no month 13","there is no month 0","there is no day 0","there is no hour 24: 23 is the last one of a day","there is no minute 60","there is no second 61","there is no offset +24:00","there is no offset -01:60","it is a date alone, which the layout %Y-%m-%d reads","at its end Z for UTC, or an offset like +01:00, is missing","2006-01-02T15:04:05Z","2006-01-02T15:04:05Z"]`},
		{`local t = {} for i, c in ipairs{{"29 Feb 2023", "%d %b %Y"}, {"30 february", "%e %B"}, {"31.4.", "%d.%m."}, {"32", "%d"}, {"29.2.23", "%d.%m.%y"}, {"2023 366", "%Y %j"}, {"13 PM", "%I %p"}, {"24:00", "%R"}, {"1:60", "%M:%S"}, {"0/1", "%m/%d"}, {"2023/23 2 29", "%Y/%y %m %d"}} do
				local v, err = time.parse(c[1], c[2]) t[i] = (tostring(v) .. err):gsub('^.*": ', "")
			end return t`, `["February 2023 has 28 days","February has 29 days","April has 30 days","a month has 31 days","February 2023 has 28 days","there is no day 366 of a year with 365 days","there is no hour 13 with AM or PM","there is no hour 24: 23 is the last one of a day","a second 60 can end a month in UTC only","there is no month 0","February 2023 has 28 days"]`},
		{`return time.format(0, "%Y-%m-%d %H:%M:%S %a %A %b %B %j %p %I %y %e %% %u %w %V %s")`, `"1970-01-01 00:00:00 Thu Thursday Jan January 001 AM 12 70  1 % 4 4 01 0"`},
		{`return time.format(1700000000, "%r %g") .. time.parse("2023-11-14 10:13:20 PM", "%F %r")`, `"10:13:20 PM 231700000000"`},
		{`return {time.parse("2139/39", "%Y/%y") == time.parse("2139", "%Y"), select(2, time.parse("2139/40", "%Y/%y"))}`, `[true,"\"2139/40\" does not fit the layout \"%Y/%y\""]`},
		{`return time.format(1.5, "%S.%L %f")`, `"01.500 500000"`},
		{`return time.format(0, "%Q")`, `activities/a.lua:2: bad argument #2 to time.format: unknown %Q in the layout`},
		{`return time.format(253402300799.5) .. time.format(-62167219200)`, `"9999-12-31T23:59:59.5Z0000-01-01T00:00:00Z"`},
		{`return time.format(253402300800)`, `activities/a.lua:2: bad argument #1 to time.format: must be a time in the years 0 to 9999, in seconds since 1970`},
		{`return time.format(-62167219201)`, `activities/a.lua:2: bad argument #1 to time.format: must be a time in the years 0 to 9999, in seconds since 1970`},
		{`return time.format(0/0, "%Y")`, `activities/a.lua:2: bad argument #1 to time.format: must be a time in the years 0 to 9999, in seconds since 1970`},
		{`return time.format(-math.huge)`, `activities/a.lua:2: bad argument #1 to time.format: must be a time in the years 0 to 9999, in seconds since 1970`},
		{`return os.date("%Y", math.huge)`, `activities/a.lua:2: bad argument #2 to os.date: must be a time in the years 0 to 9999, in seconds since 1970`},
		{`return time.parse("2023-11-14T22:13:20Z")`, `1700000000`},
		{`return time.parse("2023-11-14t22:13:20z")`, `1700000000`},
		{`return time.parse("12:00 pm", "%I:%M %p") - time.parse("12:00 Am", "%I:%M %p")`, `43200`},
		{`return time.parse("2023-11-14T23:13:20.5+01:00")`, `1700000000.5`},
		{`return time.parse("14.11.2023 22:13", "%d.%m.%Y %H:%M")`, `1699999980`},
		{`return time.parse("7", "%s")`, `7`},
		{`return {time.parse("5 Feb 2024", "%d %b %Y"), time.parse("1.2.2024", "%d.%m.%Y"), time.parse("1.2.2024 3:4:5", "%d.%m.%Y %H:%M:%S"), time.parse("1/2/24 3:04 PM", "%m/%d/%y %I:%M %p")}`, `[1707091200,1706745600,1706756645,1704207840]`},
		{`return {time.parse("20240205T070809Z", "%Y%m%dT%H%M%SZ"), time.parse("2024_02_05", "%Y_%m_%d"), time.parse("0705", "%m%S") == time.parse("07 05", "%m %S")}`, `[1707116889,1707091200,true]`},
		{`return {time.parse("Mon Feb  5 07:08:09 2024", "%c"), time.parse("2024-02-05   07:08:09.5", "%F %T"), time.parse("monday, 5 february 2024", "%A, %e %B %Y"), time.parse("2024-036 100%", "%Y-%j %H%%") == nil}`, `[1707116889,1707116889.5,1707091200,true]`},
		{`return {time.parse("2024-02-05 07:08:09 +0100", "%F %T %z"), time.parse("2024-02-05 07:08:09 UTC", "%F %T %Z"), time.parse("2024-02-05 07:08:09 GMT", "%F %T %Z"), time.parse("2024-02-05T07:08:09Z", "%FT%T%Z")}`, `[1707113289,1707116889,1707116889,1707116889]`},
		{`return {time.parse("2024-02-05T07:08:09Z", "%FT%T%z"), time.parse("2024-02-05 07:08:09+01:00", "%F %T%z"), time.parse("-05:30 5.2.2024", "%z %d.%m.%Y")}`, `[1707116889,1707113289,1707111000]`},
		{`return {time.parse("1.2.9", "%d.%m.%y"), time.parse("1.2.70", "%d.%m.%y"), time.parse("2024-36", "%Y-%j"), time.parse("6 of 2024", "%j %Y") == nil, time.parse("2024-6", "%Y-%j")}`, `[1233446400,2678400,1707091200,true,1704499200]`},
		{`return {time.parse("+1:00", "%z") == nil, time.parse("+01:0", "%z") == nil, time.parse("01:00", "%z") == nil, time.parse("z", "%z") == nil, time.parse("", "%z") == nil, time.parse("", "%y") == nil, time.parse("2024 0", "%Y %j") == nil, time.parse("+01:000", "%z") == nil}`, `[true,true,true,true,true,true,true,true]`},
		{`return select(2, time.parse("2024-02-05 07:08:09 CET", "%F %T %Z"))`, `"the zone \"CET\" is not known: of names only UTC, GMT and Z are, and %z reads an offset like +0100"`},
		{`return select(2, time.parse("30.2.2024", "%d.%m.%Y"))`, `"\"30.2.2024\" does not fit the layout \"%d.%m.%Y\": February 2024 has 29 days"`},
		{`return select(2, time.parse("1.2.2024x", "%d.%m.%Y"))`, `"\"1.2.2024x\" does not fit the layout \"%d.%m.%Y\""`},
		{`return {time.parse("", "%d") == nil, time.parse("5", "%d%m") == nil, time.parse("12:00:00.", "%T") == nil, time.parse("+01", "%z") == nil}`, `[true,true,true,true]`},
		{`return select(2, time.parse("soon"))`, `"\"soon\" is not a time as in RFC 3339: 2006-01-02T15:04:05Z"`},
		{`return select(2, time.parse("x", "%Y"))`, `"\"x\" does not fit the layout \"%Y\""`},
		{`return time.parse("x", "%Q")`, `activities/a.lua:2: bad argument #2 to time.parse: %Q in the layout can't be read back`},
		{`return time.parse("x", "2006")`, `activities/a.lua:2: bad argument #2 to time.parse: "2" in the layout is neither a % verb nor punctuation`},
		{`time.sleep(1.5); return true`, `true`},
		{`time.sleep(-1)`, `activities/a.lua:2: bad argument #1 to time.sleep: must not be negative`},

		{`log.info("x", {f = print})`, `activities/a.lua:2: fields.f: a function is not a JSON value`},
		{`log.info("x", {1})`, `activities/a.lua:2: bad argument #2 to log.info: fields have names`},

		{`return select(2, fs.read("x"))`, `"reading \"x\" is not possible: the project has no folder on disk"`},
		{`return select(2, fs.read(""))`, `"reading \".\" is not possible: the project has no folder on disk"`},
	}
	for _, test := range tests {
		slept := time.Duration(0)
		if got := run(t, host.Config{Clock: frozen{&slept}}, test.body); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.body, got, test.want)
		}
	}
}

func TestLog_Records(t *testing.T) {
	var out bytes.Buffer
	run(t, host.Config{Stderr: &out}, `log.debug("d"); log.info("i", {n = 1, o = {a = {1}}}); log.warn("w"); log.error("e")`)
	for i, want := range []string{`level=DEBUG msg=d`, `level=INFO msg=i n=1 o="{\"a\":[1]}"`, `level=WARN msg=w`, `level=ERROR msg=e`} {
		lines := strings.Split(out.String(), "\n")
		if i >= len(lines) || !strings.HasSuffix(lines[i], want) {
			t.Errorf("got %s, want %s", out.String(), want)
		}
	}
}

// disk makes a project with data/ that may be read, out/ that may be written,
// and what is not granted around it.
func disk(t *testing.T) (config host.Config, dir string) {
	t.Helper()
	outer := t.TempDir()
	dir = filepath.Join(outer, "project")
	for _, folder := range []string{"data/sub", "out", "data2"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"data/a.txt": "hello", "secret.txt": "secret", "data2/b.txt": "secret", "one.txt": "one", "../outside.txt": "secret", "data/sub/c.txt": "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"data/up": "..", "data/out": "../../outside.txt", "data/abs": filepath.Join(outer, "outside.txt"), "data/fine": "a.txt", "data/in": filepath.Join(dir, "data/a.txt"), "data/one": filepath.Join(dir, "one.txt"), "out/in": filepath.Join(dir, "data/a.txt"), "out/leak": "../secret.txt", "out/dangling": "../gone", "out/hanging": "gone"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	return host.Config{Dir: dir, Grants: &luastd.Grants{
		Read:  luastd.Grant{List: []string{"data", "one.txt", "gone"}},
		Write: luastd.Grant{List: []string{"out", "new.txt"}},
	}}, dir
}

func TestFS_Files(t *testing.T) {
	config, _ := disk(t)
	tests := []struct{ body, want string }{
		{`return fs.read("data/a.txt")`, `"hello"`},
		{`return fs.read("./data/../data/a.txt")`, `"hello"`},
		{`return fs.read("data/fine")`, `"hello"`},
		{`return fs.read("data/in")`, `"hello"`},
		{`return {fs.read("data/one"), fs.stat("data/one").size}`, `["one",3]`},
		{`return {fs.remove("out/in"), fs.exists("data/a.txt")}`, `[true,true]`},
		{`return fs.read("one.txt")`, `"one"`},
		{`return fs.list("data")`, `["a.txt","abs","fine","in","one","out","sub","up"]`},
		{`return fs.list("data/sub")`, `["c.txt"]`},
		{`return {fs.exists("data/a.txt"), fs.exists("data/zz"), fs.exists("gone/x")}`, `[true,false,false]`},
		{`local s = fs.stat("data/a.txt"); return {s.type, s.size, s.modified > 1e9}`, `["file",5,true]`},
		{`return fs.stat("data").type`, `"folder"`},
		{`return fs.write("out/x/y.txt", "z")`, `writing "out/x/y.txt": it does not exist`},
		{`return {fs.mkdir("out/x/y"), fs.write("out/x/y/z.txt", "1"), fs.append("out/x/y/z.txt", "2"), fs.remove("out/x/y/z.txt"), fs.remove("out/x/y")}`, `[true,true,true,true,true]`},
		{`return fs.write("new.txt", "1")`, `true`},
		{`return select(2, fs.read("secret.txt"))`, `"reading \"secret.txt\" is not allowed: run with --allow-read=secret.txt or set allow.read in obelus.lua"`},
		{`return select(2, fs.read("data/../secret.txt"))`, `"reading \"data/../secret.txt\" is not allowed: run with --allow-read=data/../secret.txt or set allow.read in obelus.lua"`},
		{`return select(2, fs.read("../outside.txt"))`, `"reading \"../outside.txt\" is not allowed: run with --allow-read=../outside.txt or set allow.read in obelus.lua"`},
		{`return select(2, fs.read("data2/b.txt"))`, `"reading \"data2/b.txt\" is not allowed: run with --allow-read=data2/b.txt or set allow.read in obelus.lua"`},
		{`return select(2, fs.read("/etc/passwd"))`, `"reading \"/etc/passwd\" is not allowed: run with --allow-read=/etc/passwd or set allow.read in obelus.lua"`},
		{`return select(2, fs.read("data/up/secret.txt"))`, `"reading \"data/up/secret.txt\": it leads out of what --allow-read grants, through a symbolic link"`},
		{`return select(2, fs.read("data/out"))`, `"reading \"data/out\": it leads out of what --allow-read grants, through a symbolic link"`},
		{`return select(2, fs.read("data/abs"))`, `"reading \"data/abs\": it leads out of what --allow-read grants, through a symbolic link"`},
		{`return select(2, fs.list("data/up"))`, `"reading \"data/up\": it leads out of what --allow-read grants, through a symbolic link"`},
		{`return select(2, fs.exists("data/up/secret.txt"))`, `"reading \"data/up/secret.txt\": it leads out of what --allow-read grants, through a symbolic link"`},
		{`return select(2, fs.write("out/leak", "x"))`, `"writing \"out/leak\": it leads out of what --allow-write grants, through a symbolic link"`},
		{`return select(2, fs.write("data/a.txt", "x"))`, `"writing \"data/a.txt\" is not allowed: run with --allow-write=data/a.txt or set allow.write in obelus.lua"`},
		{`return select(2, fs.append("out/leak", "x"))`, `"writing \"out/leak\": it leads out of what --allow-write grants, through a symbolic link"`},
		{`return select(2, fs.remove("data/a.txt"))`, `"writing \"data/a.txt\" is not allowed: run with --allow-write=data/a.txt or set allow.write in obelus.lua"`},
		{`return select(2, fs.mkdir("../x"))`, `"writing \"../x\" is not allowed: run with --allow-write=../x or set allow.write in obelus.lua"`},
		{`return select(2, fs.read("data/zz"))`, `"reading \"data/zz\": it does not exist"`},
		{`return select(2, fs.read("data"))`, `"reading \"data\": it is a folder"`},
		{`return select(2, fs.list("data/a.txt"))`, `"reading \"data/a.txt\": it is not a folder, or something above it is not"`},
		{`return select(2, fs.write("out/gone/x", ""))`, `"writing \"out/gone/x\": it does not exist"`},
		{`fs.mkdir("out/full/x"); return select(2, fs.remove("out/full"))`, `"writing \"out/full\": the folder is not empty"`},
		{`return {fs.exists("data/a.txt/x"), fs.exists("data/a.txt/x/y"), fs.exists("one.txt/x")}`, `[false,false,false]`},
		{`return select(2, fs.mkdir("out/dangling"))`, `"writing \"out/dangling\": it leads out of what --allow-write grants, through a symbolic link"`},
		{`return select(2, fs.mkdir("out/hanging"))`, `"writing \"out/hanging\": it exists already"`},
		{`return select(2, fs.remove("out"))`, `"writing \"out\": it is what --allow-write grants: only what lies in it can be removed"`},
		{`return select(2, fs.mkdir("new.txt/x"))`, `"writing \"new.txt/x\": it is not a folder, or something above it is not"`},
		{`return fs.read()`, `activities/a.lua:2: bad argument #1 to fs.read: string expected, got nil`},
	}
	for _, test := range tests {
		if got := run(t, config, test.body); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.body, got, test.want)
		}
	}
}

func TestFS_AllFilesGranted(t *testing.T) {
	config, dir := disk(t)
	config.Grants = &luastd.Grants{Read: luastd.Grant{All: true}}
	for _, path := range []string{"secret.txt", "../outside.txt", "data/up/secret.txt", "data/abs", filepath.Join(dir, "secret.txt")} {
		if got := run(t, config, `return fs.read("`+path+`")`); got != `"secret"` {
			t.Errorf("%s: got %s", path, got)
		}
	}
	for _, list := range [][]string{{"data", "data/sub"}, {"data/sub", "data"}} { // what is granted stays, in whatever order
		config.Grants = &luastd.Grants{Write: luastd.Grant{List: list}}
		if got := run(t, config, `fs.remove("data/sub/c.txt"); return select(2, fs.remove("data/sub"))`); !strings.Contains(got, "it is what --allow-write grants") {
			t.Errorf("%v: got %s", list, got)
		}
	}
	config.Grants = &luastd.Grants{Read: luastd.Grant{List: []string{"/dev"}}, Write: luastd.Grant{List: []string{"/dev"}}}
	if got := run(t, config, `return select(2, fs.write("/dev/zero", "x"))`); got != `"writing \"/dev/zero\": it is not a regular file"` {
		t.Errorf("got %s", got)
	}
	if got := run(t, config, `return select(2, fs.read("/dev/zero"))`); got != `"reading \"/dev/zero\": it is not a regular file"` {
		t.Errorf("got %s", got)
	}
}

// TestFS_SystemFolders holds that what is the system's own is not granted with all
// that there is, but by name.
func TestFS_SystemFolders(t *testing.T) {
	config, dir := disk(t)
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip(err)
	}
	proc, err := filepath.Rel(dir, "/proc")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(proc, filepath.Join(dir, "proc")); err != nil {
		t.Fatal(err)
	}
	all, root, self := luastd.Grant{All: true}, luastd.Grant{List: []string{"/"}}, luastd.Grant{List: []string{"/proc/self"}}
	for _, test := range []struct {
		grant      luastd.Grant
		body, want string
	}{
		{all, `fs.read("/proc/self/environ")`, `reading "/proc/self/environ" is not allowed: it lies in /proc, the system's own: run with --allow-read=/proc/self/environ or set allow.read in obelus.lua`},
		{all, `fs.read("/proc/self/mem")`, `reading "/proc/self/mem" is not allowed: it lies in /proc, the system's own: run with --allow-read=/proc/self/mem or set allow.read in obelus.lua`},
		{root, `fs.read("proc/version")`, `reading "proc/version" is not allowed: it lies in /proc, the system's own: run with --allow-read=/proc/version or set allow.read in obelus.lua`},
		{all, `fs.write("/sys/gone/x", "")`, `writing "/sys/gone/x" is not allowed: it lies in /sys, the system's own: run with --allow-write=/sys/gone/x or set allow.write in obelus.lua`},
		{all, `fs.list("/dev/shm")`, `reading "/dev/shm" is not allowed: it lies in /dev, the system's own: run with --allow-read=/dev/shm or set allow.read in obelus.lua`},
		{self, `fs.read("/proc/self/environ")`, `fine`},
		{self, `fs.read("proc/version")`, `reading "proc/version" is not allowed: run with --allow-read=proc/version or set allow.read in obelus.lua`},
	} {
		config.Grants = &luastd.Grants{Read: test.grant, Write: test.grant}
		if got := run(t, config, `local _, err = `+test.body+` return err or "fine"`); got != string(store.EncodeJSON(test.want)) {
			t.Errorf("%s\ngot  %s\nwant %s", test.body, got, test.want)
		}
	}
}

func TestGrants_OfSettings(t *testing.T) {
	_, dir := disk(t)
	if err := os.WriteFile(filepath.Join(dir, "obelus.lua"), []byte(`return { allow = { read = {"data"} } }`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "activities"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "activities", "a.lua"), []byte(`local fs = require "fs"; local text = fs.read("data/a.txt"); Activity.register("a", function() return text end)`), 0o666); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Generation().Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{})
	if err != nil || r.Value != "hello" {
		t.Errorf("got %v %v", r, err)
	}
}
