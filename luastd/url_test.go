package luastd_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"obelus/host"
	"obelus/luastd"
	"obelus/luastd/internal/oracle"
)

// TestHTTP_EscapesReachTheServer holds that a path and a query are sent with the escapes that
// they have, also after a redirect.
func TestHTTP_EscapesReachTheServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RequestURI, "/from/") {
			w.Header()["Location"] = []string{"../to%2F1/é|x?a%26b=\"é"}
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, r.RequestURI)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(luastd.CloseIdleConnections)
	config := host.Config{Grants: &luastd.Grants{Net: luastd.Grant{List: []string{strings.TrimPrefix(server.URL, "http://")}}}}
	for target, want := range map[string]string{
		"/a%2Fb/é?q=é%26x%20y z#f": "/a%2Fb/%C3%A9?q=%C3%A9%26x%20y%20z",
		"/a%2fb/%7Cx|":             "/a%2fb/%7Cx%7C",
		"/%25%3F%23":               "/%25%3F%23",
		"/from/a%2Fb":              "/to%2F1/%C3%A9%7Cx?a%26b=%22%C3%A9",
	} {
		if got := run(t, config, fmt.Sprintf("return assert(http.get(%q)).body", server.URL+target)); got != fmt.Sprintf("%q", want) {
			t.Errorf("%s is asked for as %s, want %q", target, got, want)
		}
	}
}

// nodeURL resolves references as browsers do.
const nodeURL = `
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
	const question = JSON.parse(line);
	let answer = {};
	try {
		const u = new URL(question.ref, question.base);
		answer = { href: u.href, path: u.pathname, fragment: u.hash.slice(1) };
	} catch (e) {}
	console.log(JSON.stringify(answer));
});`

// randomReference makes a URL, or a reference to one, of what RFC 3986 and the URL Standard of
// browsers agree about: they differ over \, |, ^, ', escaped dots, and a base that ends with dots.
// Empty parts of a path are left out, since net/url takes one away behind dots.
func randomReference(random *rand.Rand, base bool) string {
	text := func(n int, pieces ...string) string {
		var b strings.Builder
		for range random.Intn(n) {
			b.WriteString(pieces[random.Intn(len(pieces))])
		}
		return b.String()
	}
	part := []string{"a", "b", "x y", "é", "😀", "%2F", "%2f", "%3F", "%23", "%25", "%26", "%C3%A9", "%00", "%7C", "%5C", "<", ">", "\"", "`", "{", "}",
		"@", ";", "=", "&", ",", "!", "(", ")", "*", "+", "$", "~", "-", "_", "."}
	ref := ""
	if base {
		ref = "http://" + []string{"", "u@", "u:p@", "u%2Fv:p%40@"}[random.Intn(4)] + "h" + []string{"", ":81"}[random.Intn(2)] + "/"
	} else if random.Intn(3) == 0 {
		ref = "/"
	}
	for i := range random.Intn(4) {
		if i > 0 {
			ref += "/"
		}
		switch segment := text(4, part...); { // without a colon, or it is a scheme
		case !base && random.Intn(5) == 0:
			ref += []string{".", ".."}[random.Intn(2)]
		case strings.Trim(segment, ".") == "":
			ref += "s"
		default:
			ref += segment
		}
	}
	if random.Intn(2) == 0 {
		ref += "?" + text(4, append(part, "?", "/", "%27")...) + "q"
	}
	if random.Intn(2) == 0 {
		fragment := strings.NewReplacer("{", "", "}", "").Replace(text(4, append(part, "?", "/", "#")...))
		ref += "#" + strings.ReplaceAll(fragment, "#", "") + "f"
	}
	return ref
}

// FuzzURL_AsNode compares what url.join, url.parse and url.build make of references with what
// node makes of them.
func FuzzURL_AsNode(f *testing.F) {
	for i := range int64(1000) {
		f.Add(i)
	}
	if out, err := exec.Command("node", "--version").CombinedOutput(); err != nil {
		f.Skipf("skipped: node is not here: %v: %s", err, out)
	}
	node := oracle.Start(f, "node", "-e", nodeURL)
	call := function(f, `
		local href, err = url.join(call.base, call.ref)
		if err then return { href = err } end
		local parts = assert(url.parse(href))
		local again = url.build { scheme = parts.scheme, host = parts.host, port = parts.port, path = parts.path, fragment = parts.fragment }
		return { href = href, path = parts.path, fragment = parts.fragment or "", again = again }`)
	type answer struct{ Href, Path, Fragment, Again string }
	f.Fuzz(func(t *testing.T, seed int64) {
		random := rand.New(rand.NewSource(seed))
		base, ref := randomReference(random, true), randomReference(random, false)
		text, err := call(map[string]any{"base": base, "ref": ref})
		if err != nil {
			t.Fatalf("%q, %q: %v", base, ref, err)
		}
		var got, want answer
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		node(map[string]string{"base": base, "ref": ref}, &want)
		want.Again = got.Again
		if got != want {
			t.Fatalf("%q, %q\n got %+v\nwant %+v", base, ref, got, want)
		}
		var parts answer
		if node(map[string]string{"base": got.Again, "ref": ""}, &parts); parts.Path != want.Path || got.Fragment != "" && !strings.HasSuffix(got.Again, "#"+want.Fragment) {
			t.Fatalf("%+v, put together, is %q", want, got.Again)
		}
	})
}
