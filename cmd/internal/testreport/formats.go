package testreport

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Formats lists the formats of [Report].Format.
var Formats = []string{"junit", "tap"}

// write writes the tests in the report's format.
func (r *Report) write() error {
	if r.Format == "tap" {
		return r.writeTAP()
	}
	return r.writeJUnit()
}

// writeTAP writes the tests as the Test Anything Protocol has them.
func (r *Report) writeTAP() error {
	var b strings.Builder
	fmt.Fprintf(&b, "TAP version 13\n1..%d", len(r.lines))
	for i, line := range r.lines {
		ok, directive := "ok", ""
		switch line.Status {
		case "failed":
			ok = "not ok"
		case "pending":
			directive = " # SKIP pending"
		}
		// A # in a name would begin a directive.
		fmt.Fprintf(&b, "\n%s %d - %s%s", ok, i+1, strings.NewReplacer("#", `\#`, "\n", " ").Replace(line.title()), directive)
		if line.Error != "" {
			fmt.Fprintf(&b, "\n  ---\n  message: |\n    %s\n  ...", strings.ReplaceAll(line.Error+"\n"+line.Diff, "\n", "\n    "))
		}
	}
	return r.Terminal.Line(b.String())
}

// title names a test with its file.
func (l *testLine) title() string { return strings.TrimSuffix(l.File+": "+l.Name, ": ") }

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr,omitempty"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *struct{}     `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes the tests as JUnit has them in XML, a suite for each file.
func (r *Report) writeJUnit() error {
	var suites []*junitSuite
	var took []float64
	for _, line := range r.lines {
		if len(suites) == 0 || suites[len(suites)-1].Name != line.File {
			suites, took = append(suites, &junitSuite{Name: line.File}), append(took, 0)
		}
		s := suites[len(suites)-1]
		took[len(took)-1] += line.Duration / 1000
		s.Tests, s.Time = s.Tests+1, fmt.Sprintf("%.6f", took[len(took)-1])
		c := junitCase{
			Name: line.Name, Class: strings.TrimSuffix(strings.ReplaceAll(line.File, "/", "."), ".lua"), File: line.File, Line: line.Line,
			Time: fmt.Sprintf("%.6f", line.Duration/1000),
		}
		switch line.Status {
		case "failed":
			s.Failures++
			c.Failure = &junitFailure{Message: line.Error, Text: line.Diff}
		case "pending":
			s.Skipped++
			c.Skipped = &struct{}{}
		}
		s.Cases = append(s.Cases, c)
	}
	text, err := xml.MarshalIndent(struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []*junitSuite
	}{Suites: suites}, "", "  ")
	if err != nil {
		return err
	}
	return r.Terminal.Line(xml.Header + string(text))
}
