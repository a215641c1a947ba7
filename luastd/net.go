package luastd

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The permission net names hosts, "host" or "host:port": a name or an address,
// for every port or one.
//
// It is held three times. A request's URL must name a host that is granted;
// so must each that it is redirected to; and the address that a name turns out
// to have, at the moment of connecting, must be one of the public internet,
// unless everything is granted, or that address itself, or, for a loopback
// address, "localhost". So neither a redirect nor a name whose owner lets it
// point into the local network leads to what no one granted, like a cloud's
// metadata service. Through a proxy, which the environment names, it is the
// proxy that looks names up: the third does not apply then.

// checkNet returns an error for a wrong entry of the permission net.
func checkNet(entry string) error {
	if _, ok := parseEndpoint(entry); !ok {
		return fmt.Errorf("%q is not a host or host:port", entry)
	}
	return nil
}

// endpoint is a host, in one spelling, and a port; port 0 is every port.
type endpoint struct {
	host string
	port int
}

func (e endpoint) String() string {
	if e.port == 0 {
		return e.host
	}
	return net.JoinHostPort(e.host, strconv.Itoa(e.port))
}

// covers reports whether an entry grants an endpoint.
func (e endpoint) covers(to endpoint) bool {
	return e.host == to.host && (e.port == 0 || e.port == to.port)
}

func parseEndpoint(entry string) (endpoint, bool) {
	host, port := entry, 0
	if _, err := netip.ParseAddr(entry); err != nil { // an IPv6 address without a port has colons too
		if name, text, err := net.SplitHostPort(entry); err == nil {
			if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
				return endpoint{}, false
			}
			host = name
		} else {
			host = strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]")
		}
	}
	if host = sameHost(host); host == "" || strings.ContainsAny(host, "/?#@[] \t\r\n*") {
		return endpoint{}, false
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return endpoint{}, false
		}
	}
	return endpoint{host, port}, true
}

// sameHost is one spelling for all that mean the same host.
func sameHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// endpointOf is where a URL leads.
func endpointOf(u *url.URL) endpoint {
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return endpoint{sameHost(u.Hostname()), port}
}

// netPolicy is the permission net, read.
type netPolicy struct {
	all     bool
	entries []endpoint
}

func newNetPolicy(g Grant) netPolicy {
	p := netPolicy{all: g.All}
	for _, entry := range g.List {
		if e, ok := parseEndpoint(entry); ok {
			p.entries = append(p.entries, e)
		}
	}
	return p
}

// key is the same for policies that allow the same.
func (p netPolicy) key() string {
	if p.all {
		return "*"
	}
	var list []string
	for _, e := range p.entries {
		list = append(list, e.String())
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

func (p netPolicy) grants(to endpoint) bool {
	return p.all || slices.ContainsFunc(p.entries, func(e endpoint) bool { return e.covers(to) })
}

// url refuses a URL whose host is not granted.
func (p netPolicy) url(u *url.URL) error {
	to := endpointOf(u)
	if p.grants(to) {
		return nil
	}
	return newRefusal(fmt.Sprintf("connecting to %s", to), func(g Grants) *missing {
		if newNetPolicy(g.Net).grants(to) {
			return nil
		}
		return &missing{kind: "net", entries: []string{to.String()}}
	})
}

// dialled refuses the address that a host turned out to have.
func (p netPolicy) dialled(host string, at netip.AddrPort) error {
	ip := at.Addr().Unmap().WithZone("")
	to := endpoint{ip.String(), int(at.Port())}
	if p.reaches(ip, to) {
		return nil
	}
	return newRefusal("connecting to "+host, func(g Grants) *missing {
		if newNetPolicy(g.Net).reaches(ip, to) {
			return nil
		}
		return &missing{"net", []string{host, to.String()}, fmt.Sprintf("it has the private address %s", ip)}
	})
}

// reaches reports whether an address, at a port, may be connected to as that of a granted host.
func (p netPolicy) reaches(ip netip.Addr, to endpoint) bool {
	return p.grants(to) || isPublic(ip) || ip.IsLoopback() && p.grants(endpoint{"localhost", to.port})
}

// refusal is the error of a missing permission, in words for the script's author.
type refusal struct {
	text  string // for grants that are only the project's
	what  string
	lacks func(Grants) *missing // see [Grants.refusal]
}

func newRefusal(what string, lacks func(Grants) *missing) refusal {
	return refusal{Grants{}.refusal(what, lacks), what, lacks}
}

func (r refusal) Error() string { return r.text }

// explain returns the error's text under the grants of a call.
func (r refusal) explain(g Grants) string {
	if g.Bounds == nil {
		return r.text
	}
	return g.refusal(r.what, r.lacks)
}

// reserved are addresses that no host of the public internet has, beyond those
// that package netip knows.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), // this network: Linux takes it for the machine itself
	// Shared by a provider's customers; some clouds' metadata.
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),    // for protocols
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),     // of the future
	netip.MustParsePrefix("::/96"),           // an IPv4 address in an old dress
	netip.MustParsePrefix("64:ff9b:1::/48"),  // translation within a network
	netip.MustParsePrefix("fec0::/10"),       // site-local, of old
	netip.MustParsePrefix("2001::/32"),       // Teredo
	netip.MustParsePrefix("::ffff:0:0:0/96"), // translated
}

func isPublic(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	if slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return false
	}
	if !ip.Is6() {
		return true
	}
	b := ip.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip): // NAT64: an IPv4 address at the end
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	case netip.MustParsePrefix("2002::/16").Contains(ip): // 6to4: one near the beginning
		return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return true
}
