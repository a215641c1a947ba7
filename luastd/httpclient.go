package luastd

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// network sends requests as far as a policy allows. All scripts under the
// same policy share its connections; those under another do not, since an open
// connection is not asked again where it leads.
type network struct {
	policy  netPolicy
	proxy   func(*http.Request) (*url.URL, error)
	direct  *http.Transport
	proxied *http.Transport
}

// RoundTrip implements [http.RoundTripper]. Each redirect comes through here.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := n.policy.url(r.URL); err != nil {
		return nil, err
	}
	proxy, err := n.proxy(r)
	if err != nil {
		return nil, errors.New("the proxy that the environment names can't be used")
	}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context()))
	if proxy != nil {
		return n.proxied.RoundTrip(r)
	}
	return n.direct.RoundTrip(r)
}

// requestKey finds the context of the request that a connection is made for.
type requestKey struct{}

// untilRequest ends a dial with its request. The transport itself would go on,
// for the sake of requests to come.
func untilRequest(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		request, ok := ctx.Value(requestKey{}).(context.Context)
		if !ok {
			return dial(ctx, network, address)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(request, cancel)()
		conn, err := dial(ctx, network, address)
		if err != nil && request.Err() != nil {
			return nil, request.Err() // not the error of the dial, as that a host can't be looked up
		}
		return conn, err
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

func newNetwork(policy netPolicy, proxy func(*http.Request) (*url.URL, error), resolver *net.Resolver) *network {
	n := &network{policy: policy, proxy: proxy}
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Resolver: resolver}
	n.proxied = newTransport(dialer.DialContext)
	n.proxied.Proxy = proxy
	n.direct = newTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		checked := dialer
		// The address after the name was looked up.
		checked.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return policy.dialled(sameHost(host), at)
		}
		return checked.DialContext(ctx, network, address)
	})
	return n
}

func newTransport(dial dialFunc) *http.Transport {
	return &http.Transport{
		DialContext:            untilRequest(dial),
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// maxNetworks bounds how many policies keep connections: a program that
// embeds us may open project after project.
const maxNetworks = 32

var networks = struct {
	sync.Mutex
	byPolicy map[string]*network
}{byPolicy: map[string]*network{}}

// networkFor is the process's network for a grant.
func networkFor(g Grant) *network {
	policy := newNetPolicy(g)
	networks.Lock()
	defer networks.Unlock()
	key := policy.key()
	n, ok := networks.byPolicy[key]
	if !ok {
		if len(networks.byPolicy) == maxNetworks {
			closeNetworks()
		}
		n = newNetwork(policy, http.ProxyFromEnvironment, nil)
		networks.byPolicy[key] = n
	}
	return n
}

// CloseIdleConnections closes the connections that scripts of this process
// have opened by the module http and that no request uses now. They close by
// themselves after half a minute.
func CloseIdleConnections() {
	networks.Lock()
	defer networks.Unlock()
	closeNetworks()
}

func closeNetworks() {
	for _, n := range networks.byPolicy {
		n.direct.CloseIdleConnections()
		n.proxied.CloseIdleConnections()
	}
	clear(networks.byPolicy)
}

// errTooManyRedirects ends a chain of redirects.
var errTooManyRedirects = errors.New("too many redirects")

// errSwitched is an answer that begins something else than an answer.
var errSwitched = errors.New("the answer is not HTTP: the server has switched to another protocol")

// send makes a request over the network.
func (r *httpCall) send(ctx context.Context, n *network) (HTTPResponse, error) {
	var body io.Reader
	if r.Body != "" {
		body = strings.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, escapeURL(r.URL), body)
	if err != nil {
		return HTTPResponse{}, err
	}
	for name, values := range r.Headers {
		request.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if _, said := r.Headers["user-agent"]; !said {
		request.Header.Set("User-Agent", "obelus")
	}
	client := http.Client{Transport: n, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		next.Header.Del("Referer") // the query of where it came from may be secret
		if to, err := parseURL(next.Response.Header.Get("Location")); err == nil {
			// net/http has resolved it without the escapes that are kept here.
			next.URL = via[len(via)-1].URL.ResolveReference(to)
		}
		if first := via[0].URL; endpointOf(next.URL) != endpointOf(first) || next.URL.Scheme != first.Scheme {
			// Net/http gives them to subdomains and other ports.
			for _, secret := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
				next.Header.Del(secret)
			}
		}
		switch {
		case r.redirects == 0:
			return http.ErrUseLastResponse
		case len(via) > r.redirects:
			return errTooManyRedirects
		case !isWeb(next.URL):
			return fmt.Errorf("the redirect to %s is not followed: only those to http or https and a host are", urlPlace(next.URL))
		}
		return nil
	}}
	answer, err := client.Do(request)
	if err != nil {
		return HTTPResponse{}, err
	}
	defer answer.Body.Close()
	// The bare connection follows, which no context ends.
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return HTTPResponse{}, errSwitched
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(r.maxBytes)+1))
	if err != nil && answer.Uncompressed {
		err = unpackError(err)
	}
	if err != nil {
		return HTTPResponse{}, err
	}
	return HTTPResponse{Status: answer.StatusCode, Headers: answer.Header, Body: string(text)}, nil
}

// unpackError returns the error of a body that net/http unpacks, in plain words, or nil if err is
// about something else.
func unpackError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return errors.New("the answer says that its body is gzip, and the body is no valid gzip")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the answer's body is gzip, and ends too early")
	}
	return err
}

// isWeb reports whether a URL has a scheme for requests.
func isWeb(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// urlPlace returns a URL for messages, without its secrets: query, user, and the data of "data:".
func urlPlace(u *url.URL) string {
	if u.Opaque != "" {
		return u.Scheme + ":…"
	}
	return fmt.Sprintf("%s://%s%s", u.Scheme, u.Host, u.EscapedPath())
}

// netError says in plain words why a request failed.
func netError(err error) string {
	var (
		refused   refusal
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		timeout   net.Error
		inner     *url.Error
	)
	switch {
	case errors.As(err, &refused):
		return refused.text
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("there is no host %s", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %s can't be looked up", dns.Name)
	case errors.As(err, &authority):
		return "the certificate is signed by an unknown authority"
	case errors.As(err, &name):
		return fmt.Sprintf("the certificate is not for %s", name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended before the answer did"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host can't be reached"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	if errors.As(err, &inner) {
		err = inner.Err
	}
	text := err.Error()
	for _, prefix := range []string{"net/http: ", "http: ", "tls: failed to verify certificate: ", "tls: ", "x509: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
