package luastd

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestNet_Policy(t *testing.T) {
	tests := []struct {
		list, url string
		want      bool
	}{
		{"example.com", "https://example.com/x", true},
		{"example.com", "http://example.com:8080/", true},
		{"example.com", "https://EXAMPLE.com./", true},
		{"Example.COM.", "https://example.com/", true},
		{"example.com", "https://api.example.com/", false},
		{"example.com", "https://example.com.evil.org/", false},
		{"example.com", "https://example.com@evil.org/", false},
		{"example.com:443", "https://example.com/", true},
		{"example.com:443", "http://example.com/", false},
		{"example.com:443", "http://example.com:443/", true},
		{"example.com:8080 example.com:80", "http://example.com/", true},
		{"127.0.0.1", "http://127.0.0.1:99/", true},
		{"127.0.0.1", "http://localhost/", false},
		{"localhost", "http://127.0.0.1/", false},
		{"::1", "http://[::1]:80/", true},
		{"[::1]:80", "http://[0:0:0:0:0:0:0:1]/", true},
		{"[::1]", "http://[::1]:81/", true},
		{"10.0.0.1", "http://[::ffff:10.0.0.1]/", true},
		{"", "http://example.com/", false},
		{"*", "http://example.com/", false},
	}
	for _, test := range tests {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		if err := newNetPolicy(Grant{List: strings.Fields(test.list)}).url(u); (err == nil) != test.want {
			t.Errorf("%q on %s: %v", test.list, test.url, err)
		}
	}
}

// TestNet_DialledAddresses holds which addresses a granted name may turn out to have.
func TestNet_DialledAddresses(t *testing.T) {
	tests := []struct {
		list, at string
		want     bool
	}{
		{"a.example", "93.184.216.34:443", true},
		{"a.example", "[2606:2800::1]:443", true},
		{"a.example", "127.0.0.1:443", false},
		{"a.example", "169.254.169.254:80", false},
		{"a.example", "10.1.2.3:80", false},
		{"a.example", "172.16.0.1:80", false},
		{"a.example", "192.168.1.1:80", false},
		{"a.example", "100.100.100.200:80", false},
		{"a.example", "0.0.0.0:80", false},
		{"a.example", "255.255.255.255:80", false},
		{"a.example", "224.0.0.1:80", false},
		{"a.example", "[::1]:80", false},
		{"a.example", "[::]:80", false},
		{"a.example", "[fe80::1%25eth0]:80", false},
		{"a.example", "[fd00:ec2::254]:80", false},
		{"a.example", "[::ffff:127.0.0.1]:80", false},
		{"a.example", "[::127.0.0.1]:80", false},
		{"a.example", "[64:ff9b::7f00:1]:80", false},
		{"a.example", "[64:ff9b::5db8:d822]:80", true},
		{"a.example", "[2002:a9fe:a9fe::1]:80", false},
		{"a.example 10.1.2.3", "10.1.2.3:80", true},
		{"a.example 10.1.2.3:80", "10.1.2.3:81", false},
		{"localhost", "127.0.0.1:80", true},
		{"localhost", "[::1]:80", true},
		{"localhost:80", "127.0.0.1:81", false},
		{"localhost", "10.0.0.1:80", false},
	}
	for _, test := range tests {
		at, err := netip.ParseAddrPort(strings.ReplaceAll(test.at, "%25", "%"))
		if err != nil {
			t.Fatal(err)
		}
		if err := newNetPolicy(Grant{List: strings.Fields(test.list)}).dialled("a.example", at); (err == nil) != test.want {
			t.Errorf("%q at %s: %v", test.list, test.at, err)
		}
	}
	if err := newNetPolicy(Grant{All: true}).dialled("a.example", netip.MustParseAddrPort("127.0.0.1:80")); err != nil {
		t.Error(err)
	}
}

func TestNet_CheckEntry(t *testing.T) {
	for _, entry := range []string{"example.com", "example.com:443", "127.0.0.1", "::1", "[::1]:80", "[::1]", "bücher.de"} {
		if err := checkNet(entry); err != nil {
			t.Error(err)
		}
	}
	for _, entry := range []string{"", "https://example.com", "example.com/x", "*.example.com", "example.com:", "example.com:http", "example.com:70000", "a b", "a:b:c", ":80"} {
		if checkNet(entry) == nil {
			t.Errorf("%q is taken", entry)
		}
	}
}

// names answers every question for a name's address with 127.0.0.1.
func names() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { // ends when the resolver closes its end
			defer theirs.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(theirs, size[:]); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(theirs, question); err != nil {
					return
				}
				if _, err := theirs.Write(nameAnswer(question)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}}
}

// nameAnswer is a message of the domain name system, with its length before it.
func nameAnswer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5
	answer := append([]byte{}, question[:end]...)
	answer[2], answer[3] = 0x81, 0x80
	clear(answer[6:12])
	if question[end-3] == 1 { // its IPv4 address
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
}

// TestNet_NamesThatLeadInside holds that a granted name which turns out to have an
// address of the machine itself leads nowhere, unless that is granted too.
func TestNet_NamesThatLeadInside(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "inside") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	target := "http://rebound.example:" + port + "/"
	none := func(*http.Request) (*url.URL, error) { return nil, nil }
	for list, want := range map[string]string{
		"rebound.example":           "connecting to rebound.example is not allowed: it has the private address 127.0.0.1: run with --allow-net=rebound.example,127.0.0.1:" + port + " or set allow.net in obelus.lua",
		"rebound.example 127.0.0.1": "inside",
		"rebound.example localhost": "inside",
		"127.0.0.1":                 "connecting to rebound.example:" + port + " is not allowed: run with --allow-net=rebound.example:" + port + " or set allow.net in obelus.lua",
		"*":                         "inside",
	} {
		n := newNetwork(newNetPolicy(Grant{List: strings.Fields(list), All: list == "*"}), none, names())
		r := &httpCall{HTTPRequest: HTTPRequest{Method: "GET", URL: target}, maxBytes: 100}
		answer, err := r.send(t.Context(), n)
		got := answer.Body
		if err != nil {
			got = netError(err)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", list, got, want)
		}
		n.direct.CloseIdleConnections()
	}
}

// TestNet_Proxy holds that a proxy is used, which need not be granted, and that the
// host behind it must be.
func TestNet_Proxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "proxied "+r.URL.String()) }))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	n := newNetwork(newNetPolicy(Grant{List: []string{"a.example"}}), http.ProxyURL(at), nil)
	defer n.proxied.CloseIdleConnections()
	for target, want := range map[string]string{
		"http://a.example/x": "proxied http://a.example/x",
		"http://b.example/x": "connecting to b.example:80 is not allowed: run with --allow-net=b.example:80 or set allow.net in obelus.lua",
	} {
		answer, err := (&httpCall{HTTPRequest: HTTPRequest{Method: "GET", URL: target}, maxBytes: 100}).send(t.Context(), n)
		got := answer.Body
		if err != nil {
			got = netError(err)
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestNet_DialsEnd holds that a connection that is being made ends with the request
// that wants it.
func TestNet_DialsEnd(t *testing.T) {
	none := func(*http.Request) (*url.URL, error) { return nil, nil }
	ended := make(chan struct{}, 1)
	silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		select {
		case ended <- struct{}{}:
		default: // both kinds of address are looked up
		}
		return nil, ctx.Err()
	}}
	n := newNetwork(newNetPolicy(Grant{All: true}), none, silent)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := (&httpCall{HTTPRequest: HTTPRequest{Method: "GET", URL: "http://silent.example/"}}).send(ctx, n); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
		t.Error("the dial goes on")
	}
}
