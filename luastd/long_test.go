package luastd_test

import (
	"testing"
	"time"

	"obelus/host"
	"obelus/luastd"
)

// TestDeadline_LongArguments holds what reads a name, a number, a time, a path or lines to
// the time of the call, however long the text is that it gets.
func TestDeadline_LongArguments(t *testing.T) {
	config := host.Config{Dir: t.TempDir(), Grants: &luastd.Grants{Read: luastd.Grant{List: []string{"x"}}}}
	for _, body := range []string{
		`env.get(text)`, `fs.read(text)`, `fs.exists(text)`,
		`time.format(0, text)`, `time.parse(text)`, `time.parse(text, "%Y")`, `time.parse(spaces, spaces)`, `os.date(text)`,
		`tonumber(digits)`, `tonumber(digits, 16)`, `tonumber(spaces)`, `return digits + 1`, `("x"):sub(digits)`,
		`csv.decode(("a\n"):rep(8e6))`, `require(text)`, `text:format()`, `error(text)`, `return (nil)[text]`, `hash.hmac(text, text, text)`, `json.encode(1, {[text] = 1})`,
	} {
		timely(t, body, "timed out after 100ms", slower*time.Second, func() string {
			return runFor(t, config, 0.1, `local text, digits, spaces = ("x"):rep(16e6), ("1"):rep(16e6), (" "):rep(16e6)
				while true do pcall(function() `+body+` end) end`)
		})
	}
}

// TestTrim_ManyCharacters holds that the characters are not searched for each
// of the text.
func TestTrim_ManyCharacters(t *testing.T) {
	timely(t, "str.trim", `"a"`, slower*2*time.Second, func() string {
		return run(t, host.Config{}, `return str.trim(("é"):rep(2e5) .. "xay", ("y"):rep(1e6) .. "éx")`)
	})
}
