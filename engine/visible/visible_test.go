package visible_test

import (
	"testing"

	"obelus/engine/visible"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain,\ttwo\r\nlines":                "plain,\ttwo\r\nlines",
		"a\u202eb\u2066c":                     `a\u202eb\u2066c`,
		"zero\u200bwidth, \ufeff":             `zero\u200bwidth, \ufeff`,
		"\x00\x1b[2J\x7f\u0085":               `\u0000\u001b[2J\u007f\u0085`,
		"tag \U000e0041":                      `tag \udb40\udc41`,
		"line\u2028and\u2029paragraph":        `line\u2028and\u2029paragraph`,
		"👩\u200d👧 ❤\ufe0f می\u200cخواهم":      "👩\u200d👧 ❤\ufe0f می\u200cخواهم",
		"admin\u200d and 👩\u200d\u200d\ufe0f": `admin\u200d and 👩` + "\u200d" + `\u200d\ufe0f`,
		"$\u200d5 \u20ac\ufe0f":               `$\u200d5 ` + "\u20ac" + `\ufe0f`,
		"caf\u00e9\u200d":                     "caf\u00e9" + `\u200d`,
		"\u0600\u0661":                        "\u0600\u0661",
		"\u8fbb\U000e0100":                    "\u8fbb\U000e0100",
		"cut \xff":                            "cut \xff",
	} {
		if got := visible.Text(text); got != want {
			t.Errorf("%+q is shown as %+q, not %+q", text, got, want)
		}
	}
}
