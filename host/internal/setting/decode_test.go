package setting

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type garden struct {
	Size   int64         `json:"size" kind:"size" jsonschema:"of its ground"`
	Rest   time.Duration `json:"rest" kind:"duration" zero:"-1"`
	Closed bool          `json:"open" kind:"not"`
	Beds   []bed         `json:"beds" jsonschema:"its beds"`
	Weeks  weeks         `json:"weeks"`
	Tools  []string      `json:"tools"`
	Depth  *float64      `json:"depth" kind:"metres"`
	soil
}

type soil struct {
	Clay bool `json:"clay"`
}

type bed struct {
	Name string `kind:"bed"`
	Crop string `json:"crop" required:"a crop: crop = \"beans\"" short:"true"`
	Rows int    `json:"rows"`
}

func (b *bed) check() error {
	if b.Crop == "beans" && b.Rows > 9 {
		return At(errors.New("beans need room"), "rows")
	}
	return nil
}

type weeks map[string]int

func (weeks) Names() []string { return []string{"spring", "summer"} }

var gardens = Form{Noun: "field", Check: func(_, of any) error {
	if b, ok := of.(*bed); ok {
		return b.check()
	}
	return nil
}, Kinds: map[string]Kind{
	"bed": Of("", "string", func(name string) (any, error) {
		if name == "lawn" {
			return nil, errors.New("a lawn is no bed")
		}
		return name, nil
	}),
	"metres": Range(0, 2),
}}

func TestDecode(t *testing.T) {
	half := 0.5
	var got garden
	errs := gardens.Decode(map[string]any{
		"size": "4KB", "rest": json.Number("0"), "open": false, "clay": true, "depth": json.Number("0.5"),
		"beds":  map[string]any{"b": "peas", "a": map[string]any{"crop": "beans", "rows": json.Number("3")}},
		"weeks": map[string]any{"summer": json.Number("6")}, "tools": map[string]any{},
	}, &got)
	want := garden{
		Size: 4 << 10, Rest: -1, Closed: true, Depth: &half, soil: soil{true}, Tools: []string{},
		Beds: []bed{{"a", "beans", 3}, {"b", "peas", 0}}, Weeks: weeks{"summer": 6},
	}
	if errs != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %s", errs, cmp.Diff(want, got, cmp.AllowUnexported(garden{}, soil{})))
	}
}

// TestDecode_Errors holds that everything that is wrong is told, each with the keys that lead to it.
func TestDecode_Errors(t *testing.T) {
	var got garden
	errs := gardens.Decode(map[string]any{
		"size": json.Number("0"), "colour": "red", "depth": json.Number("3"), "tools": []any{"rake", true},
		"beds": map[string]any{
			"a": map[string]any{"crop": "beans", "rows": json.Number("12")}, "b": map[string]any{"row": json.Number("1"), "rows": "x"},
			"c": map[string]any{}, "d": json.Number("4"), "lawn": "grass",
		},
		"weeks": map[string]any{"sumer": json.Number("1")},
	}, &got, "my")
	var lines, keys []string
	for _, e := range errs {
		lines, keys = append(lines, e.Error()), append(keys, strings.Join(e.Keys, " "))
	}
	wantLines := []string{
		`my.beds.a.rows: beans need room`,
		`unknown field my.beds.b.row (did you mean "rows"?)`,
		`my.beds.b.rows must be a whole number above 0, not "x"`,
		`my.beds.c needs a crop: crop = "beans"`,
		`my.beds.d must be a string or a table, not a number`,
		`my.beds.lawn: a lawn is no bed`,
		`unknown field my.colour (one of size, rest, open, beds, weeks, tools, depth, clay)`,
		`my.depth must be a number from 0 to 2, not 3`,
		`my.size must be a size: a number of bytes or text like "64MB", not 0`,
		`my.tools must be a list of strings, not a table`,
		`unknown field my.weeks.sumer (did you mean "summer"?)`,
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Error(diff)
	}
	if keys[0] != "my beds a rows" || keys[9] != "my tools" {
		t.Error(keys)
	}
}

// TestDecode_JSON holds that objects of JSON have the words of JSON, and that null is not given.
func TestDecode_JSON(t *testing.T) {
	form := Form{Noun: "field", Root: "the body", JSON: true}
	type body struct {
		Name   string            `json:"name"`
		At     *int64            `json:"at" kind:"integer"`
		Raw    json.RawMessage   `json:"raw"`
		Skip   []string          `json:"skip"`
		Labels map[string]string `json:"labels"`
	}
	var got body
	errs := form.Decode(map[string]any{"name": "", "at": nil, "raw": nil, "labels": map[string]any{"a": "b"}}, &got)
	if want := (body{Raw: json.RawMessage("null"), Labels: map[string]string{"a": "b"}}); errs != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", errs, got)
	}
	for _, test := range []struct {
		given any
		want  string
	}{
		{[]any{}, "the body must be an object, not an array"},
		{map[string]any{"nam": "x"}, `the body: unknown field "nam" (did you mean "name"?)`},
		{map[string]any{"labels": []any{}}, "labels must be an object, not an array"},
		{map[string]any{"labels": map[string]any{"a": nil}}, "labels.a must be a string, not null"},
		{map[string]any{"skip": []any{"a", true}}, "skip[1] must be a string, not a boolean"},
		{map[string]any{"skip": "a"}, "skip must be an array of strings, not a string"},
		{map[string]any{"at": json.Number("1e3")}, "at must be a whole number, written in at most 18 digits and nothing else"},
	} {
		if errs := form.Decode(test.given, &got); errs == nil || errs.Error() != test.want {
			t.Errorf("got %v, want %s", errs, test.want)
		}
	}
}

func TestForm_Class(t *testing.T) {
	const want = `---Where plants grow.
---@class Garden
---@field size? integer|string of its ground
---@field rest? number|string
---@field open? boolean
---@field beds? table<string, string|Garden.beds> its beds
---@field weeks? { spring?: integer, summer?: integer }
---@field tools? string[]
---@field depth? number
---@field clay? boolean

---@class Garden.beds
---@field crop string
---@field rows? integer
`
	if diff := cmp.Diff(want, gardens.Class("Garden", "Where plants grow.", reflect.TypeFor[garden]())); diff != "" {
		t.Error(diff)
	}
}

func TestHelp(t *testing.T) {
	const want = "  a     short\n  long  has so many words that they do not fit into one line of a terminal, which\n        has room for 82 characters\n"
	got := Help([]Field{{Name: "a", About: "short"}, {Name: "long", About: "has so many words that they do not fit into one line of a terminal, which has room for 82 characters"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
