package expr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/store"
)

// hostileValues are what the longest request may hold: many numbers, and long texts that
// are equal but for the last character.
var hostileValues = sync.OnceValue(func() map[string]any {
	long := strings.Repeat("x", 3_500_000)
	numbers, texts, object := make([]any, 1_000_000), make([]any, 2000), map[string]any{}
	for i := range numbers {
		numbers[i] = json.Number("0")
	}
	for i := range texts {
		texts[i] = long[:3500]
		object[fmt.Sprintf("%s%d", long[:3500], i)] = json.Number("1")
	}
	a, b := long+"a", long+"b"
	return map[string]any{"†n": numbers, "†l": []any{a, b}, "†l[0]": a, "†l[1]": b, "†l.0": a, "†l.1": b, "†m": texts, "†o": object}
})

func hostileLookup(path store.Path) (any, bool, bool, error) {
	v, ok := hostileValues()[path.String()]
	return v, ok, false, nil
}

// TestEval_CostOfTexts holds that what an expression does with long texts counts by their
// length, whatever operator or function it is.
func TestEval_CostOfTexts(t *testing.T) {
	within := maxEvaluation
	t.Cleanup(func() { maxEvaluation = within })
	maxEvaluation = 10 * time.Minute // the race detector is slow
	was := maxProduced
	t.Cleanup(func() { maxProduced = was })
	maxProduced = 1 << 19 // or it takes long
	for _, body := range []string{
		`†l[0] < †l[1]`, `†l[0] <= †l[1]`, `†l[0] > †l[1]`, `†l[0] >= †l[1]`, `†l[0] == †l[1]`, `†l[0] != †l[1]`,
		`†l[0] contains "b"`, `†l[0] endsWith †l[1]`, `†l[0] startsWith †l[1]`, `†l[0] matches "b"`, `†l[0] matches "xb"`,
		`†l[0] in †l`, `†l[0] in †o`, `†o[†l[0]] ?? 1`, `†o?.[†l[0]]`,
		`len(†l[0])`, `lower(†l[0])`, `upper(†l[0])`, `trim(†l[0])`, `trim(†l[0], "x")`, `split(†l[0], "b")`, `split(†l[0], "b", 2)`,
		`indexOf(†l[0], "b")`, `lastIndexOf(†l[0], "b")`, `replace(†l[0], "b", "c")`, `†l[0][-1:]`, `†l[0][3000000:]`, `†l[0][:3000000]`,
		`hasPrefix(†l[0], †l[1])`, `hasSuffix(†l[0], †l[1])`, `trimPrefix(†l[0], †l[1])`, `trimSuffix(†l[0], †l[1])`,
		`†l[0] + †l[1]`, `string(†l[0])`, `join(†l)`, `sort(†l)[0]`, `keys(†o)[0]`, `values(†o)[0]`, `sort(†m)[0]`, `type(†l[0] + "")`,
		`float(†l[0])`, `int(†l[0])`,
	} {
		element := strings.NewReplacer("†l[0]", "(†l)[0]", "†l[1]", "(†l)[1]").Replace(body)
		for _, text := range []string{
			`†(map(†n, ` + body + `))`, `†(count(†n, [` + body + `] == []))`, `†(map(†n, ` + element + `))`, `†(count(†n, [` + element + `] == []))`,
		} {
			expr, err := Parse(text)
			if err != nil {
				t.Logf("%s: %v", text, err) // refused as it is read, which is as good
				continue
			}
			_, missing, err := expr.Eval(t.Context(), hostileLookup)
			if err == nil && missing == nil || err != nil && len(err.Error()) > 5000 {
				t.Errorf("%s: %.100v", text, err)
			}
		}
	}
	expr, err := Parse(`†(groupBy(†n, †l[0]))`)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := expr.Eval(t.Context(), hostileLookup); err == nil {
		t.Error("groupBy by a long text is free")
	}
}

// TestEval_Stops holds that an evaluation ends when its context does, and when its time is
// over.
func TestEval_Stops(t *testing.T) {
	for _, text := range []string{`†(map(†n, # + 1))`, `†(†n == †n)`, `†(max(†n) > 1)`, `†([†n])`} {
		testStops(t, text)
	}
}

func testStops(t *testing.T, text string) {
	expr, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := expr.Eval(ctx, hostileLookup); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(*evaluationPlaces.Load()) != 0 {
		t.Error("a place is still taken")
	}
	was := maxEvaluation
	defer func() { maxEvaluation = was }()
	maxEvaluation = time.Nanosecond
	if _, _, err := expr.Eval(t.Context(), hostileLookup); err == nil || !strings.Contains(err.Error(), "takes longer than") {
		t.Errorf("got %v", err)
	}
}

// TestEvaluateAtOnce_Waits holds that an expression that takes long waits while as many as may
// be are evaluated, and one that does not is evaluated at once.
func TestEvaluateAtOnce_Waits(t *testing.T) {
	was := *evaluationPlaces.Load()
	longest := maxEvaluation
	t.Cleanup(func() {
		evaluationPlaces.Store(&was)
		maxEvaluation = longest
	})
	maxEvaluation = time.Minute // the machine may be busy, and the race detector slow
	EvaluateAtOnce(1)
	var other evaluationPlace
	if err := other.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	long, err := Parse(`†(count(†n, # == 0) > 0)`)
	if err != nil {
		t.Fatal(err)
	}
	short, err := Parse(`†(len(†l) + 1)`)
	if err != nil {
		t.Fatal(err)
	}
	if v, _, err := short.Eval(t.Context(), hostileLookup); err != nil || v != json.Number("3") {
		t.Errorf("%v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := long.Eval(ctx, hostileLookup)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	other.leave()
	if _, _, err := long.Eval(t.Context(), hostileLookup); err != nil {
		t.Error(err)
	}
}
