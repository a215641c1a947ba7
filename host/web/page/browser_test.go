package page_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var pictures = flag.Bool("pictures", false, "write the README's picture anew, and one of each view to the folder that ARTIFACTS names")

// browser is Chromium with one tab, without a window.
type browser struct {
	t   testing.TB
	ctx context.Context
	own string // the server's address: everything else is foreign

	mu       sync.Mutex
	problems []string // console messages, exceptions, foreign requests
	accepts  []string // parts of problems that a test causes itself
}

// chromium returns the path of Chromium, and skips a test where there is none.
func chromium(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("OBELUS_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("skipped: there is no Chromium here, and OBELUS_CHROMIUM names none")
	return ""
}

// open starts a browser on a page of a site.
func open(t testing.TB, s *site, path string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 800), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("force-color-profile", "srgb"))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx, own: s.http.URL}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil { // which starts the browser
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.watch); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.check)
	b.navigate(s.http.URL + path)
	return b
}

// watch notes what must not happen on any page.
func (b *browser) watch(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("console.%s", e.Type)
		for _, a := range e.Args {
			problem += " " + string(a.Value)
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded: // violations of the policy too
		problem = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, b.own+"/") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "about:") && !strings.HasPrefix(u, "chrome") {
			problem = "a request to " + u
		}
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

// accept has problems with a text in them be none.
func (b *browser) accept(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepts = append(b.accepts, part)
}

func (b *browser) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
problems:
	for _, p := range b.problems {
		for _, part := range b.accepts {
			if strings.Contains(p, part) {
				continue problems
			}
		}
		b.t.Errorf("the browser says: %s", p)
	}
}

// do carries out actions, each within a time. An action whose element the page has replaced before it
// was done begins anew.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, a := range actions {
		ctx, cancel := context.WithTimeout(b.ctx, longest)
		err := chromedp.Do(ctx, a)
		for err != nil && strings.Contains(err.Error(), "Could not find node with given id") && ctx.Err() == nil {
			err = chromedp.Do(ctx, a)
		}
		cancel()
		if err != nil {
			b.fail(err)
		}
	}
}

// longest is how long a test waits for the browser.
const longest = time.Minute

// fail ends a test, with a picture of what is seen.
func (b *browser) fail(why error) {
	b.t.Helper()
	file := filepath.Join(os.TempDir(), "obelus-page-failed.png")
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, png, 0o666)
	}
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.t.Fatalf("%v: the page, of which %s is a picture (%v):\n%s", why, file, err, text)
}

func (b *browser) navigate(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// script evaluates JavaScript.
func script[T any](b *browser, text string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](text))
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", text, err))
	}
	return v
}

// await waits until an expression of JavaScript is true, on whichever page that is.
func (b *browser) await(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	for {
		// A poll of a page without scripts that goes to another one meanwhile may never end.
		one, cancel := context.WithTimeout(ctx, longest/10)
		_, err := chromedp.Run(one, chromedp.Poll[bool](`Boolean(document.readyState === "complete" && (`+expression+`))`, chromedp.WithPollingTimeout(longest)))
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() != nil { // else the page has gone to another one
			b.fail(fmt.Errorf("it does not come to %s: %w", expression, err))
		}
	}
}

// says waits until the page shows a text.
func (b *browser) says(text string) {
	b.t.Helper()
	b.await(`document.title.includes(` + encode(text) + `) || ` + visibleText + `.includes(` + encode(strings.Join(strings.Fields(text), " ")) + `)`)
}

// visibleText is the text of a page, of fields too, with single spaces.
const visibleText = `(document.body.innerText + " " + [...document.querySelectorAll("svg text")].map((e) => e.textContent).join(" ")).replace(/\s+/g, " ")`

// press clicks the first link, button or heading of details with a text.
func (b *browser) press(text string) {
	b.t.Helper()
	b.await(`(() => {
		const e = [...document.querySelectorAll("a, button, summary")].find((e) => (e.textContent.replace(/\s+/g, " ").trim() === ` + encode(text) + ` || e.getAttribute("aria-label") === ` + encode(text) + `) && e.checkVisibility());
		if (e) e.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, view: window }));
		return e;
	})()`)
}

// fill types a text into the field with a name.
func (b *browser) fill(name, text string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(`[name="`+name+`"]`), text))
}

// keys presses keys.
func (b *browser) keys(keys string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(string(k)))
	}
}

// shot writes a picture of what is seen.
func (b *browser) shot(file string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, png, 0o666)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// theme sets what the system prefers.
func (b *browser) theme(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}))
}

// path is the address of the page within the server.
func (b *browser) path() string {
	b.t.Helper()
	u, err := url.Parse(script[string](b, "location.href"))
	if err != nil {
		b.t.Fatal(err)
	}
	return u.RequestURI()
}
