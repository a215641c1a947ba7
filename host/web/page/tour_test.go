package page_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"obelus/host/web"
	"obelus/scripts"
)

// tourText is the topic of help with the tour.
const tourText = "../../../cmd/internal/topics/texts/page.txt"

// picture is what the README shows.
const picture = "testdata/page.png"

// TestBrowser_Tour takes the tour of the topic page, and sees each text that it quotes.
func TestBrowser_Tour(t *testing.T) {
	files := map[string]string{}
	err := fs.WalkDir(scripts.Init(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(scripts.Init(), path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, files, func(c *web.Config) { c.Title = "hello" })
	b := open(t, s, "/")
	const file = "activities/hello.lua"
	write := func(text string) {
		s.write(file, text)
		if err := s.host.Reload().Err; err != nil {
			t.Fatal(err)
		}
	}
	steps := []func(says func(quotes int)){
		func(says func(int)) { says(1) },
		func(says func(int)) {
			b.press("Plans")
			b.press("plans/hello.lua")
			says(2)
			b.fill("raw", `{"name": "Ada"}`)
			b.press("Start")
			b.await(`location.pathname.startsWith("/runs/")`)
			says(1)
		},
		func(says func(int)) {
			b.press("State")
			says(1)
			b.press(`"Hello, Ada!"`)
			says(3)
		},
		func(says func(int)) {
			write(strings.Replace(files[file], `return "Hello, " .. call.name .. "!"`, `error("no names today")`, 1))
			b.press("Start one like it…")
			b.await(`document.querySelector("[name=raw]")?.value.includes("Ada")`)
			b.press("Start")
			says(1)
		},
		func(says func(int)) {
			says(1)
			b.do(clicked("#node-1 a"))
			says(3)
			b.await(`document.querySelector('#panel a[href^="/source/"]').textContent === "activities/hello.lua"`)
			if *pictures {
				b.shot(picture)
			}
		},
		func(says func(int)) {
			write(files[file])
			says(2)
			b.press("Decide about what failed…")
			b.press("Retry")
			says(1)
		},
		func(says func(int)) {
			b.press("Fork & rerun…")
			says(2)
			b.fill("value:name", "Bo")
			b.press("Fork and run")
			says(1)
		},
		func(says func(int)) {
			b.await(`document.querySelector("#head .status.done")`)
			b.press("compare")
			says(3)
		},
	}
	text, err := os.ReadFile(tourText)
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?m)^ \d\. `).Split(string(text), -1)[1:]
	if len(parts) != len(steps) {
		t.Fatalf("the tour has %d steps, and the test %d", len(parts), len(steps))
	}
	for i, step := range steps {
		quotes := regexp.MustCompile(`“([^”]*)”`).FindAllStringSubmatch(parts[i], -1)
		step(func(n int) {
			for _, quote := range quotes[:n] {
				b.says(quote[1])
			}
			quotes = quotes[n:]
		})
		if len(quotes) > 0 {
			t.Errorf("step %d: the page is not held to say %q", i+1, quotes)
		}
	}
	if info, err := os.Stat(picture); err != nil || info.Size() > 200<<10 {
		t.Errorf("the README's picture: %v, %v", info, err)
	}
}
