package luastd_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"obelus/luastd/internal/oracle"

	"github.com/google/go-cmp/cmp"
)

// pythonCSV reads CSV, of which its strict mode refuses text behind a field in quotes.
const pythonCSV = `
import csv, io, json, sys
csv.field_size_limit(1 << 30)
for line in sys.stdin:
    try:
        text = io.StringIO(json.loads(line), newline="")
        answer = {"rows": [row for row in csv.reader(text, strict=True) if row]}
    except csv.Error as e:
        answer = {"error": str(e)}
    print(json.dumps(answer), flush=True)
`

// FuzzCSV_AsPython holds that CSV is read, or refused, as by Python's reader.
func FuzzCSV_AsPython(f *testing.F) {
	for _, text := range []string{
		"a,b\r1,2\r", "a\r\nb\n\r\nc", "5\" x,\" y\"\n", "\"a\r\nb\",\"\"\"\"", " \"a,b\"\n", "\"a\"b\n", "\"a", ",\n,", "\"\"\n\"\",", "é,\"😀\"\n",
		"a\r\r\nb", "\"\"\"", "\n\n", "a,\r", "\"a\"\r\"b\"", "a\"\"b", "\t, ",
	} {
		f.Add(text)
	}
	if out, err := exec.Command("python3", "--version").CombinedOutput(); err != nil {
		f.Skipf("skipped: python3 is not here: %v: %s", err, out)
	}
	python := oracle.Start(f, "python3", "-c", pythonCSV)
	call := function(f, `
		local rows, err = csv.decode(call.text)
		if err then return { error = err } end
		return { rows = rows }`)
	type answer struct {
		Rows  [][]string
		Error string
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1 && (text[0] == 0 || text[1] == 0) || strings.HasPrefix(text, "\ufeff") {
			return // it looks like UTF-16, or begins with a mark that Python does not pass over
		}
		result, err := call(map[string]any{"text": text})
		if err != nil {
			return // it is not UTF-8, and no JSON
		}
		var got, want answer
		if err := json.Unmarshal([]byte(result), &got); err != nil {
			t.Fatal(err)
		}
		if python(text, &want); (got.Error != "") != (want.Error != "") || want.Error == "" && len(want.Rows) > 0 && !cmp.Equal(got.Rows, want.Rows) {
			t.Fatalf("%q\n got %q %s\nwant %q %s", text, got.Rows, got.Error, want.Rows, want.Error)
		}
	})
}
