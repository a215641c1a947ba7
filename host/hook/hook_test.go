package hook

import (
	"strings"
	"testing"
)

// TestIsSigned holds signatures to the example that GitHub publishes.
func TestIsSigned(t *testing.T) {
	const secret, body, sum = "It's a Secret to Everybody", "Hello, World!", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	for signature, want := range map[string]bool{
		"sha256=" + sum: true, sum: true, strings.ToUpper(sum): true, " " + sum + " ": true,
		"": false, "sha256=": false, sum[2:]: false, sum + "00": false, "sha1=" + sum: false, "sha256=sha256=" + sum: false,
	} {
		if IsSigned([]byte(body), secret, signature) != want {
			t.Errorf("%q: not %v", signature, want)
		}
	}
	if IsSigned([]byte(body+"\n"), secret, sum) || IsSigned([]byte(body), secret+" ", sum) {
		t.Error("another body, or secret, has the same signature")
	}
	// The HMAC of an empty secret, which anyone can compute.
	if IsSigned(nil, "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad") {
		t.Error("an empty secret signs")
	}
}

func TestTarget(t *testing.T) {
	input := map[string]any{
		"body":  map[string]any{"order": "17", "deep": map[string]any{"n": 3.0}, "text": "a b", "yes": true},
		"query": map[string]any{"x": "y"},
	}
	for text, want := range map[string]string{
		"order-{body.order}":                  "order-17",
		"{body.order}":                        "17",
		"a.{body.deep.n}-{query.x}_{query.x}": "a.3-y_y",
		"fixed":                               "fixed",
		"{body.text}":                         "!",
		"{body.yes}":                          "!",
		"{body.deep}":                         "!",
		"{headers.x}":                         "!",
		"{body.order.x}":                      "!",
	} {
		target, err := ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := target.Context(input)
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%s: %s, and not %s (%v)", text, got, want, err)
		}
	}
	for _, text := range []string{"{order}", "{body}", "a b{body.x}", "{body.x", "ä"} {
		if _, err := ParseTarget(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
