package luastd_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/luastd"
	"obelus/store"
)

// function makes of the body of a Lua function, which gets its arguments as
// call, one that is called in one host again and again. It gives the result as
// JSON.
func function(f testing.TB, body string) func(arguments map[string]any) (string, error) {
	var script strings.Builder
	for _, module := range luastd.Modules {
		fmt.Fprintf(&script, "local %[1]s = require '%[1]s' ", module.Name)
	}
	fmt.Fprintf(&script, "Activity.register('a', { timeout = 8 }, function(call) %s end)", body)
	h, err := host.Open(host.Config{FS: fstest.MapFS{"activities/a.lua": {Data: []byte(script.String())}}})
	if err != nil {
		f.Fatal(err)
	}
	activity := h.Generation().Registry().Activities["a"].Activity
	return func(arguments map[string]any) (string, error) {
		r, err := activity.Run(context.Background(), plan.Invocation{Call: arguments})
		return string(store.EncodeJSON(r.Value)), err
	}
}

// goText is what no text for people has of Go, unless they wrote it themselves.
var goText = regexp.MustCompile(`runtime error|nil pointer|goroutine \d|interface \{|map\[string\]|0xc0[0-9a-f]{8}|%!|\.go:\d|ParseAddr|strconv|an object of the host|the script broke down`)

// inWords holds that an error says what is wrong, in words and not in Go's.
func inWords(t *testing.T, message string, given ...string) {
	t.Helper()
	texts := strings.Join(given, "\n")
	if m := goText.FindString(message); m != "" && !strings.ContainsAny(texts, `%\`) && !strings.Contains(texts, m) || message == "" || strings.Contains(message, "timed out") {
		t.Fatalf("what it says is not clear: %q", message)
	}
}

// FuzzRe holds that patterns find what Go's own find, and are refused if Go's are.
func FuzzRe(f *testing.F) {
	for _, seed := range [][2]string{
		{"due 2024-05-01", `(\d{4})-(\d\d)`}, {"a, b;c", `[,;] *`}, {"aaa", `^a`}, {"aaa", `a*?`}, {"abc abc", `\b`}, {"a\nb\n", `(?m)^|$`}, {"ab", `(?:)|(b)`},
		{"\xff\xfeé", `.`}, {"éé", `\B`}, {"aXbx", `(?i)x`}, {"a\nb", `(?s)a.b\z`}, {"x", `(`}, {"x", `\Qa.b\E|(?P<n>x)`}, {"aab", `(a|ab)(c|bcd)?(?U:b*)`}, {"", `$`},
		{strings.Repeat("ab", 20), `(?:[ab]?){90}`}, {strings.Repeat(" ", 40) + "x", `(?:\s*){20}y`}, {"aé", `\x{e9}\b`}, {"x", `x{1001}`}, {"a", `(?i)\pL`},
	} {
		f.Add(seed[0], seed[1])
	}
	call := function(f, `
		local parts = re.split(call.s, call.p)
		for i, part in ipairs(parts) do parts[i] = base64.encode(part) end
		local text, count = re.gsub(call.s, call.p, "<%0>")
		local from, to = re.find(call.s, call.p)
		return { text = base64.encode(text), count = count, from = from, to = to, parts = parts }`)
	f.Fuzz(func(t *testing.T, s, p string) {
		re, wrong := regexp.Compile(p)
		if tree, err := syntax.Parse(p, syntax.Perl); err == nil {
			if prog, err := syntax.Compile(tree.Simplify()); err != nil || len(prog.Inst)*len(s)*len(s) > 10_000_000 {
				return // Go's would take too long for all matches
			}
		}
		got, err := call(map[string]any{"s": s, "p": p})
		switch {
		case err != nil:
			if inWords(t, err.Error(), s, p); wrong == nil && !strings.Contains(err.Error(), "the pattern is too large") {
				t.Fatalf("%q is refused: %v", p, err)
			}
			return
		case wrong != nil:
			t.Fatalf("%q is not refused: %v", p, wrong)
		}
		want := map[string]any{}
		var text strings.Builder
		parts, at, from := []any{}, 0, 0
		matches := re.FindAllStringIndex(s, -1)
		for i, m := range matches {
			if i == 0 {
				want["from"], want["to"] = m[0]+1, m[1]
			}
			text.WriteString(s[at:m[0]] + "<" + s[m[0]:m[1]] + ">")
			at = m[1]
			if m[1] > 0 && (m[0] < m[1] || m[0] < len(s)) {
				parts = append(parts, base64.StdEncoding.EncodeToString([]byte(s[from:m[0]])))
				from = m[1]
			}
		}
		want["text"] = base64.StdEncoding.EncodeToString([]byte(text.String() + s[at:]))
		want["count"] = len(matches)
		want["parts"] = append(parts, base64.StdEncoding.EncodeToString([]byte(s[from:])))
		if want := string(store.EncodeJSON(want)); got != want {
			t.Fatalf("%q in %q:\n got %s\nwant %s", p, s, got, want)
		}
	})
}

// FuzzTemplate holds that a template gives text, or an error with a line that it
// has; that text without tags is itself; and that what is put in stands there
// as it is.
func FuzzTemplate(f *testing.F) {
	for _, seed := range [][2]string{
		{"Dear {{customer.name}},\n{{#each orders}}\n  {{@index}}. {{title}}{{#if paid}} (paid){{else}} - {{price}}{{/if}}\n{{else}}\n none\n{{/each}}\n", `{"customer":{"name":"Ada"},"orders":[{"title":"Book","price":12},{"title":"<x>","paid":true}]}`},
		{`{{a | html}} {{b | json | html}} {{"{{"}} {{! {{ }}`, `{"a":"<&>","b":{"c":[null]}}`}, {"{{#each t}}{{@key}}={{this}}{{/each}}", `{"t":{"x":1,"y":"two"}}`},
		{"{{list.1}}{{list.2.a}}", `{"list":[true,{"a":null}]}`}, {"{{#if no}}x{{/each}}", `{}`}, {"\n{{nope}}", `{}`}, {"{{", `{}`}, {"{{}}", `{}`}, {"{{ | json}}", `{}`}, {"{{a.b", `{}`},
		{"{{#each a}}\r\n{{#each this}}{{this}}{{/each}}\r\n{{/each}}", `{"a":[[1],[2,3]]}`}, {strings.Repeat("{{#if a}}", 60), `{}`}, {"{{#with a}}{{/with}}", `{}`}, {"{{a}}", `{"a":[]}`}, {`{{"\x41\u00e9"}}`, `{}`}, {`{{"\xee"}}`, `{}`},
	} {
		f.Add(seed[0], seed[1])
	}
	call := function(f, `
		local data = json.decode(call.data)
		if type(data) ~= "table" then data = {} end
		local text, err = template.render(call.template, data)
		local put, no = template.render("[{{x}}]{{#each l}}{{this}};{{/each}}", { x = call.template, l = { call.template } })
		if put ~= "[" .. call.template .. "]" .. call.template .. ";" then error("it is put in as " .. tostring(put) .. tostring(no)) end
		return { text = text, err = err }`)
	line := regexp.MustCompile(`^line (\d+): .`)
	f.Fuzz(func(t *testing.T, text, data string) {
		if !utf8.ValidString(text) {
			return // no text
		}
		got, err := call(map[string]any{"template": text, "data": data})
		if err != nil && strings.Contains(text, `\`) && strings.Contains(err.Error(), "not valid UTF-8") {
			return // it is what an escape says
		} else if err != nil {
			t.Fatal(err)
		}
		v, err := store.DecodeJSON([]byte(got))
		if err != nil {
			t.Fatal(err)
		}
		result := v.(map[string]any)
		switch message, refused := result["err"].(string); {
		case refused:
			inWords(t, message, text, data)
			m := line.FindStringSubmatch(message)
			if m == nil {
				t.Fatalf("%q is refused without a line: %s", text, message)
			}
			if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n > strings.Count(text, "\n")+1 {
				t.Fatalf("%q is wrong on a line that it has not: %s", text, message)
			}
		case !strings.Contains(text, "{{") && result["text"] != text:
			t.Fatalf("%q gives %q", text, result["text"])
		}
	})
}

// FuzzYAML holds that YAML is refused in words or read, that JSON means the same
// in it, and that what is written of what was read means the same again.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"name: x\nports:\n  - 80\n  - 443\n", "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2", "- |\n  a\n  b\n- >-\n  c\n  d\n- 'it''s'\n- \"\\u00e9\\n\"", "---\n? a\n: b", "a: !!str 1\nb: !!float 2\nc: !!int 3",
		"yes: no\n010: 0o10\n1_000: 2001-01-01", "a: .inf", "- - - 1\n  - 2\n-", "{a: [1, {b: }], 'c': \"d\"}", "a: 1\n---\nb: 2", "a: 1\na: 2", "\t", "*x", "&a [*a]", "# only", "a: b: c", "%YAML 1.2\n---\nx", "- 1e400", "~", "''",
		`{"a":[1,2.50,-0,1e3,null,true,""],"b":{"":" x ","\n":"\t"},"é":"\ud83d\ude00"}`, `{"y":"y","no":"no","null":"~","1":"1.0","-":"- a","a: b":"# c","'":"\"","x":"a\n\nb\n","z":" \n"}`, `"\u0085\u2028"`, `[12345678901234567890,[],{}]`,
		"a: >\n\n\n  x\n   y\n\n", "a: \"x\n  y\"", "? |\n  k\n: v", "[a,\n b,]", "{a, b: c}", "- !!binary aGk=\n- !x y", "a: 'b", "\ufeffa: 1", "a:\r\n  b\r\n", "\"a\":1", "- a\n b", "x: |2\n    y\n", "x: |+\n  y\n\n",
	} {
		f.Add(text)
	}
	call := function(f, `
		local function same(a, b)
			if type(a) ~= "table" or type(b) ~= "table" then return a == b end
			if next(a) == nil then return json.encode(a) == json.encode(b) end
			for k, e in pairs(a) do if not same(e, b[k]) then return false end end
			for k in pairs(b) do if a[k] == nil then return false end end
			return true
		end
		local v, err = yaml.decode(call.text)
		if err then return { err = err } end
		local text = yaml.encode(v)
		local again, no = yaml.decode(text)
		if no then error("what is written can't be read: " .. no .. ": " .. text) end
		local one, two = json.encode(v), json.encode(again)
		-- a whole number beyond 2^53 is text to who reads it again
		local long = '"(%-?' .. ("%d"):rep(16) .. '%d*)"'
		if one:gsub(long, "%1") ~= two:gsub(long, "%1") and not same(v, again) then error("read " .. one .. ", written as " .. text .. ", which is " .. two) end
		local plain = json.decode(call.text)
		if plain and not same(plain, v) then error("the JSON " .. json.encode(plain) .. " is read as " .. one) end
		return {}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := call(map[string]any{"text": text})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if v, err := store.DecodeJSON([]byte(got)); err != nil {
			t.Fatal(err)
		} else if message, refused := v.(map[string]any)["err"].(string); refused {
			inWords(t, message, text)
		}
	})
}

// FuzzCSV holds that what is written of rows that were read is read as the same
// rows.
func FuzzCSV(f *testing.F) {
	for _, seed := range [][2]string{
		{"a,b\n1,\"x,y\"\n", ","}, {"a;b\r\n\"1\r\n2\";", ";"}, {"\"\"\n", ","}, {"\"\",\n", ","}, {"a\n\n\nb", ","}, {"a,\"b\n", ","}, {"a\"b", ","}, {"\ufeffa", ","}, {"\xff,\x00", "\x00"}, {"a\tb", "\t"},
		{" a , b ", " "}, {"\\.\n", ","}, {"\r", ","}, {"é†x", "†"}, {"a,b", "ab"}, {"a,b\n1,2\n3", ","}, {"\"a\r\r\nb\"", ","}, {"\"\ufeffa\"", ","},
	} {
		f.Add(seed[0], seed[1])
	}
	call := function(f, `
		local function same(one, two)
			if #one ~= #two then return false end
			for i, row in ipairs(one) do
				if #row ~= #two[i] then return false end
				for j, field in ipairs(row) do if field ~= two[i][j] then return false end end
			end
			return true
		end
		local rows, err = csv.decode(call.text, { comma = call.comma })
		if err then return err end
		for _, row in ipairs(rows) do
			for _, field in ipairs(row) do if not pcall(json.encode, field) then return "no text" end end
		end
		local text = csv.encode(rows, { comma = call.comma })
		local again, no = csv.decode(text, { comma = call.comma })
		if no or not same(rows, again) then error("LOST " .. json.encode({ rows = rows, text = text, again = again, no = no })) end
		return "the same"`)
	f.Fuzz(func(t *testing.T, text, comma string) {
		got, err := call(map[string]any{"text": text, "comma": comma})
		switch {
		case err == nil:
			inWords(t, got, text, comma)
		case strings.Contains(err.Error(), "LOST"), !strings.Contains(err.Error(), "comma must be one character"):
			t.Fatalf("%q, %q: %v", text, comma, err)
		}
	})
}

// FuzzURL holds that a URL which is taken apart and put together is the same in
// its parts, and that what is escaped is itself again.
func FuzzURL(f *testing.F) {
	for _, seed := range [][2]string{
		{"HTTPS://me:s%20x@EXAMPLE.com:8443/a%2Fb/c?q=1&q=2&e=&%C3%A9=%20+#frag%20ment", "../x"}, {"mailto:ada@example.com?subject=x", "?y"}, {"http://[::1]:80", "//h"}, {"//host/p", "a:b"}, {"file:///etc/x", "."},
		{"/a:b/%zz", ""}, {"a b", "#"}, {"http://[fe80::1%25en0]/", "/"}, {"x:", "y"}, {"http://x?%", "%41"}, {"http://ü.example/ü?ü#ü", ""}, {"//", "//"}, {"http://u@h", ""}, {"http://:80", ""}, {"*", ""}, {"http://h//p", ""}, {"?", ""}, {"x:/p", ""},
		{"http://u:@h/", ""}, {"http://@h/", ""}, {"http://h:/", ""}, {"a:%2F", ""}, {"./a:b", ""}, {"http://h/;x=y", ""}, {"p://]", ""}, {"redis://:secret@h", ""}, {"//://", ""}, {".//", "(&"},
	} {
		f.Add(seed[0], seed[1])
	}
	call := function(f, `
		if url.unescape(url.escape(call.text)) ~= call.text then error("it is not itself again") end
		local joined, err = url.join(call.text, call.ref)
		if joined and not joined:find("[", 1, true) and not url.parse(joined) and url.parse(call.text) and url.parse(call.ref) then error("joined, it is no URL: " .. joined) end
		local parts, no = url.parse(call.text)
		if no then return no end
		local ok, text = pcall(url.build, parts)
		if not ok then return text end -- a host that only one who reads it takes for one
		parts.path = url.unescape(parts.path)
		local one = json.encode(parts)
		local again, wrong = url.parse(text)
		if wrong then error("put together, it is " .. text .. ": " .. wrong) end
		again.path = url.unescape(again.path)
		local two = json.encode(again)
		if one ~= two then error("taken apart " .. one .. ", put together " .. text .. ", which is " .. two) end
		return err or "the same"`)
	f.Fuzz(func(t *testing.T, text, ref string) {
		got, err := call(map[string]any{"text": text, "ref": ref})
		if err != nil && !strings.Contains(err.Error(), "UTF-8") {
			t.Fatalf("%q, %q: %v", text, ref, err)
		}
		if err == nil {
			inWords(t, got, text, ref)
		}
	})
}

// FuzzTime holds that a layout is refused in words or writes a time, and that
// what is read by a layout is written the same by it.
func FuzzTime(f *testing.F) {
	for _, layout := range []string{
		"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S %a %A %b %B %j %p %I %y %e %% %u %w %V %s", "%S.%L %f", "%Q", "%", "2006", "%s", "%d.%m.%Y %H:%M", "%c", "%D %T %z", "%x %X %Z", "_%e", "%e%j", "%G-W%V-%u", "%y%m%d", "%I:%M %p", "T%H", "é%Y",
		"%n%t%C", "%R:%S", "%h %d", "%j %Y", ".%S", ",%f", "%B%b", "-%H", "Z%z",
	} {
		f.Add(layout, 1_700_000_000.25)
	}
	f.Add("%Y", -62167219200.0)
	f.Add("%y %s", 253402300799.9999)
	f.Add("%F", -62167219199.5)
	call := function(f, `
		local text = time.format(call.t, call.layout)
		local t, err = time.parse(text, call.layout)
		if not t then return { err = err } end
		local again = time.format(t, call.layout)
		if again ~= text then error("LOST " .. text .. " is read as " .. time.format(t) .. ", which is written " .. again) end
		return {}`)
	unclear := regexp.MustCompile(`%[aA]|%e%|%z%|%I`) // a day says not which, an hour not of which half, and a digit after %e or %z may be one more of theirs
	f.Fuzz(func(t *testing.T, layout string, seconds float64) {
		if _, err := luastd.Time(seconds); err != nil || unclear.MatchString(layout) {
			return
		}
		_, err := call(map[string]any{"t": json.Number(strconv.FormatFloat(seconds, 'g', -1, 64)), "layout": layout})
		if err != nil {
			if inWords(t, err.Error(), layout); strings.Contains(err.Error(), "LOST") || !strings.Contains(err.Error(), "in the layout") && !strings.Contains(err.Error(), "the layout ") {
				t.Fatalf("%q of %v: %v", layout, seconds, err)
			}
		}
	})
}
