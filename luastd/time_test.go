package luastd_test

import (
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"obelus/host"
)

// TestDeadline_WithinOneOperation holds that what one function does with much at
// once ends with the call, and that the call does not succeed after its time.
func TestDeadline_WithinOneOperation(t *testing.T) {
	for _, test := range [][2]string{
		{`"[" .. ("[],"):rep(5e6) .. "1]"`, `json.decode(v)`},
		{`many("%d.5", ",")`, `json.decode("[" .. v .. "]")`},
		{`many('"%d":1', ",")`, `json.decode("{" .. v .. "}").x`},
		{`strings("\1")`, `json.encode(v)`},
		{`names()`, `json.encode(v)`},
		{`(","):rep(much)`, `csv.decode(v)`},
		{`'"' .. ('""'):rep(much / 2) .. '"'`, `csv.decode(v)`},
		{`("a,b,c,d,e,f,g\n"):rep(much / 16)`, `csv.decode(v)`},
		{`("a,b,c,d,e,f,g\n"):rep(much / 16)`, `csv.decode(v, { header = true })`},
		{`("\""):rep(much)`, `csv.encode({ { v } })`},
		{`("- - a\n"):rep(160000)`, `yaml.decode(v)`},
		{`"[" .. ("1,"):rep(5e5) .. "1]"`, `yaml.decode(v)`},
		{`("\127"):rep(much / 2)`, `yaml.encode(v)`},
		{`("a\n"):rep(much / 4)`, `yaml.encode({ v })`},
		{`strings('"')`, `template.render("{{v | json}}", { v = v })`},
		{`("x"):rep(much)`, `str.replace(v, "x", "")`},
		{`("\1"):rep(much)`, `url.build({ path = v })`},
		{`("\1"):rep(much)`, `log.info(v)`},
	} {
		debug.FreeOSMemory() // the memory is the whole process's, and so also what was garbage before
		timely(t, test[1]+" of "+test[0], "timed out after 400ms", slower*800*time.Millisecond, func() string {
			return runUnder(t, host.Config{}, `return { limits = { memory = "2GB" } }`, 0.4, `
			local much = 16e6 / `+strconv.Itoa(slower)+` -- the race detector gives no memory back
			local function many(format, separator)
				local t = {}
				for i = 1, 100000 do t[i] = format:format(i) end
				return table.concat(t, separator)
			end
			local function strings(s) local t = {} for i = 1, 30 do t[i] = s:rep(much / 16) end return t end
			local function names() local t = {} for i = 1, 100000 do t["n" .. i] = i end return t end
			local v = `+test[0]+`
			while os.clock() < 0.39 do end
			return #tostring(`+test[1]+`)`)
		})
	}
}
