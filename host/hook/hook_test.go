package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func schemeOf(t *testing.T, verification string) Scheme {
	t.Helper()
	s, ok := SchemeOf(verification)
	if !ok {
		t.Fatal(verification)
	}
	s.Tolerance = DefaultTolerance
	return s
}

func headersOf(pairs ...string) func(name string) string {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h.Get
}

// TestScheme_Published holds signatures to the examples that senders publish.
func TestScheme_Published(t *testing.T) {
	const github = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	for signature, want := range map[string]bool{
		"sha256=" + github: true, github: true, strings.ToUpper(github): true, " " + github + " ": true,
		"": false, "sha256=": false, github[2:]: false, github + "00": false, "sha1=" + github: false, "sha256=sha256=" + github: false,
	} {
		s := schemeOf(t, HMACSHA256)
		if err := s.Verify([]byte("Hello, World!"), "It's a Secret to Everybody", headersOf(s.Header, signature), time.Now()); (err == nil) != want {
			t.Errorf("%q: not %v", signature, want)
		}
	}
	s := schemeOf(t, HMACSHA256)
	if s.Verify([]byte("Hello, World!\n"), "It's a Secret to Everybody", headersOf(s.Header, github), time.Now()) == nil ||
		s.Verify([]byte("Hello, World!"), "It's a Secret to Everybody ", headersOf(s.Header, github), time.Now()) == nil {
		t.Error("another body, or secret, has the same signature")
	}
	// The HMAC of an empty secret, which anyone can compute.
	if s.Verify(nil, "", headersOf(s.Header, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"), time.Now()) == nil {
		t.Error("an empty secret signs")
	}

	slack := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	s = schemeOf(t, "slack")
	headers := headersOf("X-Slack-Request-Timestamp", "1531420618", "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")
	if err := s.Verify([]byte(slack), "8f742231b10e8888abcd99yyyzzz85a5", headers, time.Unix(1531420618, 0)); err != nil {
		t.Error("slack", err)
	}
	s = schemeOf(t, "standard")
	headers = headersOf("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330", "webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	if err := s.Verify([]byte(`{"test": 2432232314}`), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", headers, time.Unix(1614265330, 0)); err != nil {
		t.Error("standard", err)
	}
}

// TestScheme_Senders holds each sender's way: a request as it sends it is taken, as are several
// signatures while a secret is changed, and what was changed on the way, is signed by another
// secret, or was signed at another time is refused.
func TestScheme_Senders(t *testing.T) {
	const body, secret = `{"n":1}`, "c2VjcmV0" // which is base64 too
	now := time.Unix(1_800_000_000, 0)
	sum := func(key, signed string) []byte {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(signed))
		return mac.Sum(nil)
	}
	inHex := func(key, signed string) string { return hex.EncodeToString(sum(key, signed)) }
	in64 := func(key, signed string) string { return base64.StdEncoding.EncodeToString(sum(key, signed)) }
	other := strings.Repeat("0", 64)
	const at, ms = "1800000000", "1800000000000"
	for _, c := range []struct {
		name, verify string
		with         Scheme // in place of what the scheme says
		want         error
		headers      []string
	}{
		{"github", HMACSHA256, Scheme{}, nil, []string{"X-Hub-Signature-256", "sha256=" + inHex(secret, body)}},
		{"gitea", HMACSHA256, Scheme{Header: "X-Gitea-Signature"}, nil, []string{"X-Gitea-Signature", inHex(secret, body)}},
		{"sha1", "hmac-sha1", Scheme{}, nil, []string{"X-Hub-Signature", "sha1=ea826c6031d56acfaa31df04d2edfda4612602ee"}},
		{"slack", "slack", Scheme{}, nil, []string{"X-Slack-Request-Timestamp", at, "X-Slack-Signature", "v0=" + inHex(secret, "v0:"+at+":"+body)}},
		{"slack, too late", "slack", Scheme{}, ErrTime, []string{"X-Slack-Request-Timestamp", "1799999699", "X-Slack-Signature", "v0=" + inHex(secret, "v0:1799999699:"+body)}},
		{"slack, too early", "slack", Scheme{}, ErrTime, []string{"X-Slack-Request-Timestamp", "1800000301", "X-Slack-Signature", "v0=" + inHex(secret, "v0:1800000301:"+body)}},
		{"slack, within", "slack", Scheme{}, nil, []string{"X-Slack-Request-Timestamp", "1799999700", "X-Slack-Signature", "v0=" + inHex(secret, "v0:1799999700:"+body)}},
		{"slack, another time", "slack", Scheme{}, ErrSignature, []string{"X-Slack-Request-Timestamp", "1800000001", "X-Slack-Signature", "v0=" + inHex(secret, "v0:"+at+":"+body)}},
		{"slack, no time", "slack", Scheme{}, ErrTime, []string{"X-Slack-Signature", "v0=" + inHex(secret, "v0::"+body)}},
		{"zoom, milliseconds", "zoom", Scheme{}, nil, []string{"x-zm-request-timestamp", ms, "x-zm-signature", "v0=" + inHex(secret, "v0:"+ms+":"+body)}},
		{"stripe", "stripe", Scheme{}, nil, []string{"Stripe-Signature", "t=" + at + ",v1=" + inHex(secret, at+"."+body) + ",v0=" + other}},
		{"stripe, two secrets", "stripe", Scheme{}, nil, []string{"Stripe-Signature", "t=" + at + ", v1=" + other + ", v1=" + inHex(secret, at+"."+body)}},
		{"stripe, an older scheme", "stripe", Scheme{}, ErrSignature, []string{"Stripe-Signature", "t=" + at + ",v0=" + inHex(secret, at+"."+body)}},
		{"stripe, no time", "stripe", Scheme{}, ErrTime, []string{"Stripe-Signature", "v1=" + inHex(secret, "."+body)}},
		{"stripe, a time of words", "stripe", Scheme{}, ErrTime, []string{"Stripe-Signature", "t=now,v1=" + inHex(secret, "now."+body)}},
		{"stripe, the time twice", "stripe", Scheme{}, ErrTime, []string{"Stripe-Signature", "t=1,t=" + at + ",v1=" + inHex(secret, "1."+body)}},
		{"standard", "standard", Scheme{}, nil, []string{"webhook-id", "m1", "webhook-timestamp", at, "webhook-signature", "v1," + in64("secret", "m1."+at+"."+body) + " v1a,x"}},
		{"standard, two secrets", "standard", Scheme{}, nil, []string{"webhook-id", "m1", "webhook-timestamp", at, "webhook-signature", "v1,AAAA v1," + in64("secret", "m1."+at+"."+body)}},
		{"standard, another id", "standard", Scheme{}, ErrSignature, []string{"webhook-id", "m2", "webhook-timestamp", at, "webhook-signature", "v1," + in64("secret", "m1."+at+"."+body)}},
		{"shopify", "shopify", Scheme{}, nil, []string{"X-Shopify-Hmac-Sha256", in64(secret, body)}},
		{"shopify, in hex", "shopify", Scheme{}, ErrSignature, []string{"X-Shopify-Hmac-Sha256", inHex(secret, body)}},
		{"pagerduty", "pagerduty", Scheme{}, nil, []string{"X-PagerDuty-Signature", "v1=" + other + ",v1=" + inHex(secret, body)}},
		{"pagerduty, others", "pagerduty", Scheme{}, ErrSignature, []string{"X-PagerDuty-Signature", "v1=" + other + ",v1=" + inHex("x", body)}},
		{"gitlab", "gitlab", Scheme{}, nil, []string{"X-Gitlab-Token", secret}},
		{"gitlab, another", "gitlab", Scheme{}, ErrSignature, []string{"X-Gitlab-Token", secret + "x"}},
		{"gitlab, none", "gitlab", Scheme{}, ErrSignature, nil},
		{"telegram", "telegram", Scheme{}, nil, []string{"X-Telegram-Bot-Api-Secret-Token", secret}},
		{"another header", "token", Scheme{Header: "X-Key"}, nil, []string{"X-Key", secret}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := schemeOf(t, c.verify)
			if c.with.Header != "" {
				s.Header = c.with.Header
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if err := s.Verify([]byte(body), secret, headersOf(c.headers...), now); err != c.want {
				t.Errorf("%v, and not %v", err, c.want)
			}
			for _, wrong := range []struct{ body, secret string }{{body + " ", secret}, {body, "c2VjcmV1"}, {body, ""}} {
				signs := s.Hash != nil || wrong.body == body
				if s.Verify([]byte(wrong.body), wrong.secret, headersOf(c.headers...), now) == nil && signs {
					t.Errorf("%q is taken with %q", wrong.body, wrong.secret)
				}
			}
		})
	}
}

func TestDecodeBody(t *testing.T) {
	for _, c := range []struct {
		body, mediaType string
		want            any
	}{
		{"payload=%7B%22a%22%3A1%7D", "application/x-www-form-urlencoded", map[string]any{"payload": `{"a":1}`}},
		{"a=1&a=2&b=", "application/x-www-form-urlencoded", map[string]any{"a": []any{"1", "2"}, "b": ""}},
		{"a=1&b=2", "text/plain", "a=1&b=2"},
		{"a=%zz", "application/x-www-form-urlencoded", nil},
		{"{", "application/problem+json", nil},
	} {
		got, err := DecodeBody([]byte(c.body), c.mediaType)
		if d := cmp.Diff(c.want, got); d != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v %s", c.body, err, d)
		}
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
