package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestConformance_QuotesTheProtocol holds that each text in quotation marks in the comment of a
// case is in PROTOCOL.md, in the same words; marks of Markdown, line breaks, capitals and a full
// stop at the end don't count, and … stands for words that are left out. The name of a case begins
// with the number of a section.
func TestConformance_QuotesTheProtocol(t *testing.T) {
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	protocol := foldQuote(string(text))
	files, err := filepath.Glob(conformance)
	if err != nil || len(files) == 0 {
		t.Fatal("no cases: ", err)
	}
	for _, file := range files {
		section, _, _ := strings.Cut(filepath.Base(file), "-")
		if !strings.Contains(string(text), "\n## "+section+". ") {
			t.Errorf("%s: there is no section %s", file, section)
		}
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		comment := string(archive.Comment)
		if strings.Count(comment, `"`)%2 != 0 {
			t.Errorf("%s: a quotation mark stands alone", file)
		}
		for _, quoted := range regexp.MustCompile(`"[^"]*"`).FindAllString(comment, -1) {
			if !quotes(protocol, quoted) {
				t.Errorf("%s: %s is not in PROTOCOL.md", file, quoted)
			}
		}
	}
}

// quotes reports whether the parts of a quotation, between …, are in a text in their order.
func quotes(text, quoted string) bool {
	quoted = strings.TrimSuffix(foldQuote(strings.Trim(quoted, `"`)), ".")
	for part := range strings.SplitSeq(quoted, "…") {
		_, after, found := strings.Cut(text, strings.TrimSpace(part))
		if !found {
			return false
		}
		text = after
	}
	return true
}

// foldQuote removes the differences between a text and a quotation of it that don't count.
func foldQuote(text string) string {
	text = strings.NewReplacer("*", "", "`", "").Replace(text)
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}
