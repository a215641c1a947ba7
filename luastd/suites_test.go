package luastd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/store/suites"
)

// decoder makes a function that decodes text by a function of a module, through Lua. It
// returns the value as JSON, or the message for which the text is refused.
func decoder(t *testing.T, decode string) func(text []byte) (value []byte, message string) {
	call := function(t, `
		local v, err = `+decode+`
		if err then return { err = err } end
		return { text = json.encode(v) }`)
	return func(text []byte) ([]byte, string) {
		got, err := call(map[string]any{"text": base64.StdEncoding.EncodeToString(text)})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var result struct{ Text, Err string }
		if err := json.Unmarshal([]byte(got), &result); err != nil {
			t.Fatal(err)
		}
		return []byte(result.Text), result.Err
	}
}

// holdCount holds how many cases of a suite are right.
func holdCount(t *testing.T, what string, got, want int) {
	t.Helper()
	switch {
	case got < want:
		t.Errorf("%s: %d, and it was %d", what, got, want)
	case got > want:
		t.Errorf("%s: %d, more than %d: raise the number in this test", what, got, want)
	}
}

// sameJSON compares texts in JSON by their values.
func sameJSON(t *testing.T, got, want []byte) bool {
	t.Helper()
	var values [2]any
	for i, text := range [][]byte{got, want} {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	return cmp.Equal(values[0], values[1])
}

// yamlLosses names the documents of the suite that the library has wrong.
var yamlLosses = map[string]string{
	"2LFX":     "a directive that YAML does not define is refused",
	"6LVF":     "a directive that YAML does not define is refused",
	"MUS6/05":  "a directive that YAML does not define is refused",
	"MUS6/06":  "a directive that YAML does not define is refused",
	"BEC7":     "%YAML 1.3 is refused",
	"2SXE":     "a colon in the name of an anchor is refused",
	"W5VH":     "punctuation in the name of an anchor is refused",
	"8XYN":     "an emoji in the name of an anchor is refused",
	"9C9N":     "between brackets, lines that are not indented are read",
	"QB6E":     "within quotes, lines that are not indented are read",
	"DK95/01":  "within quotes, a line that is indented by a tab is read",
	"Y79Y/003": "between brackets, a line that is indented by a tab is read",
	"S98Z":     "a blank line with more spaces than the block that follows is read",
}

// TestSuite_YAML reads the YAML test suite: all of its documents that JSON can hold, one in a
// text, are read as they are meant, and all that are wrong are refused, except for yamlLosses.
func TestSuite_YAML(t *testing.T) {
	decode := decoder(t, `yaml.decode(base64.decode(call.text))`)
	read, tagged, refused, several := 0, 0, 0, 0
	dir := suites.Dir(t, "yaml")
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "in.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, message := decode(text)
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		_, isLost := yamlLosses[filepath.ToSlash(name)]
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "error")); err == nil {
			if message != "" {
				refused++
			} else if !isLost {
				t.Errorf("%s is wrong, and read as %s", path, got)
			}
			return nil
		}
		want, err := os.ReadFile(filepath.Join(filepath.Dir(path), "in.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // JSON can't hold it
		} else if err != nil {
			return err
		}
		switch documents := countJSON(t, want); {
		case documents != 1:
			several++ // or none
		case strings.Contains(message, " has no meaning in JSON"): // a tag
			tagged++
		case message == "" && sameJSON(t, got, want):
			read++
		case !isLost:
			t.Errorf("%s\n%s\ngot  %s %s\nwant %s", path, text, got, message, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	holdCount(t, "documents that are read", read, 236)
	holdCount(t, "documents whose tags have no meaning in JSON", tagged, 12)
	holdCount(t, "wrong documents that are refused", refused, 89)
	t.Logf("%d texts with several documents or none are passed over", several)
}

// countJSON counts the values in a text.
func countJSON(t *testing.T, text []byte) (n int) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); ; n++ {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSuite_JSON reads the JSON parsing test suite, with its two largest cases made here.
func TestSuite_JSON(t *testing.T) {
	decode := decoder(t, `json.decode(base64.decode(call.text))`)
	files, err := filepath.Glob(filepath.Join(suites.Dir(t, "json"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{
		"n_structure_100000_opening_arrays.json": bytes.Repeat([]byte("["), 100_000),
		"n_structure_open_array_object.json":     append(bytes.Repeat([]byte(`[{"":`), 50_000), '\n'),
	}
	for _, file := range files {
		if cases[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	right := 0
	for name, text := range cases {
		got, message := decode(text)
		switch kind := name[0]; {
		case kind == 'y' && message == "":
			if json.Valid(got) {
				right++
			} else {
				t.Errorf("%s is read as %q", name, got)
			}
		case kind == 'n' && message != "":
			right++
		case kind != 'i':
			t.Errorf("%s: %q, %s", name, got, message)
		}
	}
	holdCount(t, "texts that are read, or refused, as they should", right, 283)
}

// TestSuite_CSV reads the CSV suite, each of whose tables has a header.
func TestSuite_CSV(t *testing.T) {
	decode := decoder(t, `csv.decode(base64.decode(call.text), { header = true })`)
	dir := suites.Dir(t, "csv")
	files, err := filepath.Glob(filepath.Join(dir, "csvs", "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "json", strings.TrimSuffix(filepath.Base(file), ".csv")+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "location_coordinates.csv" { // its answer has another number, and no list around it
			want = bytes.Replace([]byte("["+string(want)+"]"), []byte("1234567890"), []byte("2095257564"), 1)
		}
		got, message := decode(text)
		if message == "" && sameJSON(t, got, want) {
			right++
		} else {
			t.Errorf("%s\n%s\ngot  %s %s\nwant %s", file, text, got, message, want)
		}
	}
	holdCount(t, "tables that are read", right, 12)
}
