package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// front stands before a server, and can be as if that were not there.
type front struct {
	server *httptest.Server
	isDown atomic.Bool
}

func newFront(t *testing.T, s *site) *front {
	t.Helper()
	to, err := url.Parse(s.http.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Origin")
	}, FlushInterval: -1}
	f := &front{}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.isDown.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

func (f *front) down() {
	f.isDown.Store(true)
	f.server.CloseClientConnections()
}

func (f *front) up() { f.isDown.Store(false) }

func focus(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Focus(chromedp.CSS(selector))
}

func clicked(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

func typed(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.Clear(chromedp.CSS(selector)), chromedp.SendKeys(chromedp.CSS(selector), text))
}

func back() chromedp.Action[chromedp.Void] { return chromedp.NavigateBack() }

// scriptsOff has the browser run no scripts of pages. Those of tests run.
func scriptsOff() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

func (b *browser) viewport(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}
