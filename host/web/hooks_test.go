package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/engine/journal"
)

// hookFiles is a project with hooks: signed and bare start a plan, replayed does for each id, and
// answer gives input to a run that waits.
var hookFiles = func() map[string]string {
	files := maps.Clone(work)
	files["obelus.lua"] = `return { drain = '100ms', serve = { hooks = {
		signed = { plan = "plans/echo.json", verify = "hmac-sha256", secret = "HOOK_SECRET", once = "X-Delivery", headers = { "X-Event" } },
		replayed = { plan = "plans/echo.json", verify = "hmac-sha256", secret = "HOOK_SECRET", header = "X-Signature", once = "X-Delivery", replay = true },
		unset = { plan = "plans/echo.json", verify = "hmac-sha256", secret = "NO_SECRET" },
		bare = { plan = "plans/echo.json", verify = "none", once = "X-Delivery" },
		slack = { plan = "plans/echo.json", verify = "slack", secret = "LINE_SECRET" },
		standard = { plan = "plans/echo.json", verify = "standard", secret = "KEY_SECRET" },
		raw = { plan = "plans/echo.json", verify = "none", raw = true, headers = { "X-Signature" } },
		bad = { plan = "plans/bad.lua", verify = "none" },
		strict = { plan = "plans/strict.lua", verify = "none" },
		answer = { to = "order-{body.order}", verify = "none" },
	} } }`
	files["plans/strict.lua"] = `return { context = { Message.input{ schema = { properties = { body = { type = "object" } } } } }, calls = {}, output = "†input" }`
	files["plans/waits.lua"] = `return { calls = { { _tool = "double", n = "†input.body.n", _outputPath = "†state" } }, output = "†state.double" }`
	return files
}()

const hookSecret = "it's a secret to everybody"

func withSecret(c *Config) {
	c.Token = "a-token"
	c.Secret = func(name string) string {
		return map[string]string{"HOOK_SECRET": hookSecret, "LINE_SECRET": "geheim\r\n", "KEY_SECRET": "whsec_" + base64.StdEncoding.EncodeToString([]byte("geheim")) + "\n"}[name]
	}
}

func signature(body, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// contextOfHook names the context of a delivery as the documentation says.
func contextOfHook(name, id string) string {
	return "hook-" + name + "-" + digest(id)
}

func bodyID(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// deliver makes a request to a hook, and holds how it is answered.
func (s *site) deliver(name, body string, status int, context string, headers ...string) {
	s.t.Helper()
	got, text := s.ask("POST", "/v1/hooks/"+name, body, headers...)
	if want := `{"context":"` + context + `"}`; got != status || text != want {
		s.t.Errorf("%s %s %v:\n got %d %s\nwant %d %s", name, body, headers, got, text, status, want)
	}
}

// outputOf waits until the run of a context is done, and returns its output.
func (s *site) outputOf(name string) string {
	s.t.Helper()
	outcome, err := s.server.supervisor.Wait(s.t.Context(), name)
	if err != nil || outcome.Status != journal.RunDone {
		s.t.Fatalf("%s: %v, %v", name, outcome, err)
	}
	_, text := s.ask("GET", "/v1/contexts/"+name+"/get?ref=%E2%80%A0input", "", "Authorization", "Bearer a-token")
	return text
}

// TestHooks_Signed holds that a request that is signed starts a plan, without a token and whatever
// its Host is, with the headers that are asked for as input.
func TestHooks_Signed(t *testing.T) {
	s := serve(t, hookFiles, nil, withSecret)
	body := ` {"n": 1.50, "text": "ä"}`
	name := contextOfHook("signed", bodyID(body))
	signed := []string{"X-Hub-Signature-256", "sha256=" + signature(body, hookSecret), "Host", "example.org", "Origin", "https://example.org", "X-Event", "push", "X-Other", "no", "X-Delivery", "1"}
	s.deliver("signed?a=1&a=2&b=", body, 202, name, signed...)
	if got, want := s.outputOf(name), `{"body":{"n":1.50,"text":"ä"},"headers":{"X-Event":"push"},"query":{"a":["1","2"],"b":""}}`; got != want {
		t.Errorf("the input is %s, and not %s", got, want)
	}
	// The same again, though it is under another id, which nothing signs.
	s.deliver("signed", body, 200, name, signed...)
	s.deliver("signed", body, 200, name, append(signed, "X-Delivery", "2")...)
	upper := strings.ToUpper(signature(body, hookSecret))
	s.deliver("signed", body, 200, name, "X-Hub-Signature-256", upper)

	other := `{"n": 2}`
	for _, wrong := range []string{"", "sha256=", signature(body, hookSecret), "sha256=" + signature(other, "another"), "sha256=" + signature(other, ""), signature(other, hookSecret)[:62], "sha1=" + signature(other, hookSecret), "zz"} {
		s.refused("POST", "/v1/hooks/signed", other, 403, "signature", "X-Hub-Signature-256", wrong)
	}
	s.refused("POST", "/v1/hooks/signed", "\ufeff"+other, 403, "signature", "X-Hub-Signature-256", signature(other, hookSecret)) // the raw body counts
	s.refused("POST", "/v1/hooks/unset", other, 503, "hook", "X-Hub-Signature-256", signature(other, ""))
	s.refused("POST", "/v1/hooks/sined", other, 404, "not-found", "Authorization", "Bearer a-token")
	s.refused("POST", "/v1/hooks/sined", other, 401, "token")
	s.refused("GET", "/v1/hooks/signed", "", 405, "method")
	if _, text := s.ask("GET", "/v1/contexts?prefix=hook-", "", "Authorization", "Bearer a-token"); strings.Count(text, `"context"`) != 1 {
		t.Error(text)
	}
}

// TestHooks_Replay holds that with replay the id that a header has counts, and the signature's
// header is the one that the hook names.
func TestHooks_Replay(t *testing.T) {
	s := serve(t, hookFiles, nil, withSecret)
	body := `{}`
	sign := []string{"X-Signature", signature(body, hookSecret), "X-Delivery"}
	s.deliver("replayed", body, 202, contextOfHook("replayed", "1"), append(sign, "1")...)
	s.deliver("replayed", body, 202, contextOfHook("replayed", "2"), append(sign, "2")...)
	s.deliver("replayed", body, 200, contextOfHook("replayed", "2"), append(sign, "2")...)
	s.refused("POST", "/v1/hooks/replayed", body, 400, "request", sign[:2]...)
	s.refused("POST", "/v1/hooks/replayed", body, 403, "signature", "X-Hub-Signature-256", signature(body, hookSecret), "X-Delivery", "3")
}

// TestHooks_Times holds that a signature covers the time, that of a sender's second try the body is
// still the id, and that an id counts where the signature covers it. The secrets have a line end.
func TestHooks_Times(t *testing.T) {
	s := serve(t, hookFiles, nil, withSecret)
	slack := func(body string, age time.Duration) []string {
		at := strconv.FormatInt(time.Now().Add(-age).Unix(), 10)
		return []string{"X-Slack-Request-Timestamp", at, "X-Slack-Signature", "v0=" + signature("v0:"+at+":"+body, "geheim"), "Host", "example.org"}
	}
	body := `{"n":1}`
	s.deliver("slack", body, 202, contextOfHook("slack", bodyID(body)), slack(body, 0)...)
	s.deliver("slack", body, 200, contextOfHook("slack", bodyID(body)), slack(body, 10*time.Second)...)
	if text := s.refused("POST", "/v1/hooks/slack", body, 403, "signature", slack(body, time.Hour)...); !strings.Contains(text, "too long ago") {
		t.Error(text)
	}
	s.refused("POST", "/v1/hooks/slack", body+" ", 403, "signature", slack(body, 0)...)
	for _, id := range []string{"1", "2"} {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		sum, err := hex.DecodeString(signature(id+"."+at+"."+body, "geheim"))
		if err != nil {
			t.Fatal(err)
		}
		headers := []string{"webhook-id", id, "webhook-timestamp", at, "webhook-signature", "v1," + base64.StdEncoding.EncodeToString(sum)}
		s.deliver("standard", body, 202, contextOfHook("standard", id), headers...)
		s.refused("POST", "/v1/hooks/standard", body, 403, "signature", append(headers, "webhook-id", "3")...)
	}
}

// TestHooks_Raw holds that a hook can hand on the body as it came, for a plan that verifies it by
// itself, and that forms are read as forms.
func TestHooks_Raw(t *testing.T) {
	s := serve(t, hookFiles, nil, withSecret)
	for _, c := range []struct{ body, kind, want string }{
		{` {"a": 1.50}`, "application/json", `{"body":{"a":1.50},"headers":{"X-Signature":"x"},"query":{},"raw":" {\"a\": 1.50}"}`},
		{`payload=%7B%7D&a=1&a=2`, "application/x-www-form-urlencoded; charset=utf-8", `{"body":{"a":["1","2"],"payload":"{}"},"headers":{"X-Signature":"x"},"query":{},"raw":"payload=%7B%7D&a=1&a=2"}`},
	} {
		name := contextOfHook("raw", bodyID(c.body))
		s.deliver("raw", c.body, 202, name, "X-Signature", "x", "Content-Type", c.kind)
		if got := s.outputOf(name); got != c.want {
			t.Errorf("the input is %s, and not %s", got, c.want)
		}
	}
	s.refused("POST", "/v1/hooks/raw", "a=%zz", 400, "request", "Content-Type", "application/x-www-form-urlencoded")
	s.refused("POST", "/v1/hooks/raw?a=%zz", "{}", 400, "request")
}

// TestHooks_NamesTaken holds that a delivery whose name was taken beforehand is refused and not
// answered as one that has come before, and that so is a key.
func TestHooks_NamesTaken(t *testing.T) {
	s := serve(t, hookFiles, nil, nil)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"finished","wait":true}`, 200, `{"context":"finished","error":null,"output":2,"status":"done"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/waits.lua","context":"waits","wait":true}`, 200, `{"context":"waits","error":null,"output":null,"status":"waiting"}`)
	for way, take := range map[string]func(name string) (method, path, body string){
		"messages": func(name string) (string, string, string) {
			return "POST", "/v1/contexts/" + name + "/messages", `{"type":"state","x":1}`
		},
		"a fork": func(name string) (string, string, string) {
			return "POST", "/v1/contexts/finished/fork", `{"context":"` + name + `"}`
		},
		"a fork of a run that waits": func(name string) (string, string, string) {
			return "POST", "/v1/contexts/waits/fork", `{"context":"` + name + `"}`
		},
		"a run": func(name string) (string, string, string) {
			return "POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"` + name + `","wait":true}`
		},
	} {
		names := map[string]string{"hook": contextOfHook("bare", way), "key": "key-" + digest("a key "+way)}
		for of, name := range names {
			method, path, body := take(name)
			if status, text := s.ask(method, path, body); status >= 300 {
				t.Fatal(way, of, status, text)
			}
		}
		if text := s.refused("POST", "/v1/hooks/bare", `{}`, 409, "exists", "X-Delivery", way); !strings.Contains(text, "was begun with") {
			t.Error(way, text)
		}
		s.refused("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":3}}`, 409, "exists", "Idempotency-Key", "a key "+way)
		s.deliver("bare", `{}`, 202, contextOfHook("bare", way+" not taken"), "X-Delivery", way+" not taken")
	}
}

// TestHooks_NotVerified holds that a hook that verifies nothing needs no token, but is refused to
// pages of other sites.
func TestHooks_NotVerified(t *testing.T) {
	s := serve(t, hookFiles, nil, withSecret)
	for i, test := range []struct{ body, want string }{
		{`{"a":[1]}`, `{"a":[1]}`},
		{`a=1&b=2`, `"a=1&b=2"`},
		{``, `null`},
		{`"x"`, `"x"`},
	} {
		id := fmt.Sprint(i)
		s.deliver("bare", test.body, 202, contextOfHook("bare", id), "X-Delivery", id)
		if got, want := s.outputOf(contextOfHook("bare", id)), `{"body":`+test.want+`,"headers":{},"query":{}}`; got != want {
			t.Errorf("%s gives %s, and not %s", test.body, got, want)
		}
	}
	s.refused("POST", "/v1/hooks/bare", "{}", 400, "request") // without an id
	s.refused("POST", "/v1/hooks/bare", "{", 400, "request", "X-Delivery", "j", "Content-Type", "application/json; charset=utf-8")
	s.refused("POST", "/v1/hooks/bare", "\xff", 400, "request", "X-Delivery", "u")
	s.refused("POST", "/v1/hooks/bare", "{}", 403, "host", "X-Delivery", "h", "Host", "example.org")
	s.refused("POST", "/v1/hooks/bare", "{}", 403, "origin", "X-Delivery", "o", "Origin", "https://example.org")
	// A plan that is wrong is not the sender's affair, and its input is.
	if text := s.refused("POST", "/v1/hooks/bad", "{}", 500, "internal"); strings.Contains(text, "duble") {
		t.Error(text)
	}
	s.refused("POST", "/v1/hooks/strict", "7", 422, "message")
	s.deliver("strict", "{}", 202, contextOfHook("strict", bodyID("{}")))
}

func TestHooks_TooLarge(t *testing.T) {
	s := serve(t, hookFiles, nil, func(c *Config) { c.Body = 1000 })
	s.refused("POST", "/v1/hooks/strict", strings.Repeat("x", 1001), 413, "too-large")
}

// TestHooks_AtOnce holds that deliveries that come at once, to two servers of one log, start one
// run.
func TestHooks_AtOnce(t *testing.T) {
	s := serve(t, hookFiles, nil, nil)
	first := *s
	s.open(nil)
	second := *s
	name := contextOfHook("bare", "x")
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			at := &first
			if i%2 == 0 {
				at = &second
			}
			status, text := at.ask("POST", "/v1/hooks/bare", `{"n":1}`, "X-Delivery", "x")
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			if text != `{"context":"`+name+`"}` {
				t.Error(status, text)
			}
		})
	}
	all.Wait()
	if statuses[http.StatusAccepted] != 1 || statuses[http.StatusOK] != 19 {
		t.Errorf("statuses: %v", statuses)
	}
	last, err := journal.In(s.log, name).LastRun(t.Context())
	if err != nil || last.Tick != 1 {
		t.Errorf("%d runs, %v", last.Tick, err)
	}
}

// TestHooks_To holds that a request becomes input of the run that waits for it, once however often
// it comes, at two servers too.
func TestHooks_To(t *testing.T) {
	s := serve(t, hookFiles, nil, nil)
	first := *s
	s.open(nil)
	s.refused("POST", "/v1/hooks/answer", `{"order":17,"n":21}`, 404, "no-context")
	s.expect("POST", "/v1/runs", `{"plan":"plans/waits.lua","context":"order-17","wait":true}`, 200, `{"context":"order-17","error":null,"output":null,"status":"waiting"}`)
	for _, wrong := range []string{`{}`, `{"order":null}`, `{"order":{}}`, `{"order":"a/b"}`, `{"order":"` + strings.Repeat("x", 100) + `"}`, `7`} {
		s.refused("POST", "/v1/hooks/answer", wrong, 400, "request")
	}
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			at := &first
			if i%2 == 0 {
				at = s
			}
			status, text := at.ask("POST", "/v1/hooks/answer", `{"order":17,"n":21}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			if text != `{"context":"order-17"}` {
				t.Error(status, text)
			}
		})
	}
	all.Wait()
	if statuses[http.StatusAccepted] != 1 || statuses[http.StatusOK] != 9 {
		t.Errorf("statuses: %v", statuses)
	}
	if got, want := s.outputOf("order-17"), `{"body":{"n":21,"order":17},"headers":{},"query":{}}`; got != want {
		t.Errorf("the input is %s", got)
	}
	s.deliver("answer", `{"order":17,"n":21}`, 200, "order-17")                     // also once the run is done
	s.refused("POST", "/v1/hooks/answer", `{"order":17,"n":22}`, 404, "no-context") // for which nothing waits
	if _, text := s.ask("GET", "/v1/contexts/order-17/log?kind=input", ""); strings.Count(text, `"seq"`) != 1 {
		t.Errorf("the inputs are %s", text)
	}
}

// TestHooks_SecretIsNotTold holds that neither the log of the server nor the log of contexts has
// the secret or the signature.
func TestHooks_SecretIsNotTold(t *testing.T) {
	var told logText
	s := serve(t, hookFiles, nil, func(c *Config) {
		withSecret(c)
		c.Logger = slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	body := `{"n":1}`
	sum := signature(body, hookSecret)
	s.deliver("signed", body, 202, contextOfHook("signed", bodyID(body)), "X-Hub-Signature-256", sum)
	s.refused("POST", "/v1/hooks/signed", body, 403, "signature", "X-Hub-Signature-256", sum[1:])
	s.refused("POST", "/v1/hooks/unset", body, 503, "hook")
	_, text := s.ask("GET", "/v1/contexts/"+contextOfHook("signed", bodyID(body))+"/log", "", "Authorization", "Bearer a-token")
	s.http.Close() // so that nothing is logged any more
	for _, secret := range []string{hookSecret, sum[1:]} {
		if strings.Contains(told.String()+text, secret) {
			t.Errorf("%q is told:\n%s\n%s", secret, told.String(), text)
		}
	}
	if !strings.Contains(told.String(), "NO_SECRET") {
		t.Errorf("the variable that is not set is not named:\n%s", told.String())
	}
}
