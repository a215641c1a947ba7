package luastd_test

import (
	"slices"
	"testing"

	"obelus/luastd"
)

// TestGrants_Narrow holds that narrowed grants allow what the project's and all bounds allow.
func TestGrants_Narrow(t *testing.T) {
	list := func(entries ...string) luastd.Grant { return luastd.Grant{List: entries} }
	all := luastd.Grant{All: true}
	project := luastd.Grants{
		Root: "/p", Guarded: []string{"/p/lib"}, Net: list("a.example", "b.example:443"), Read: list("data", "more/deep"),
		Write: list(".", "lib/made"), Env: all,
	}
	for _, test := range []struct {
		of          func(luastd.Grants) luastd.Grant
		asked, less luastd.Grants
		want        []string
	}{
		{func(g luastd.Grants) luastd.Grant { return g.Net }, luastd.Grants{Net: list("A.example.:80", "b.example", "c.example")}, luastd.Grants{Net: all}, []string{"A.example.:80", "b.example:443"}},
		{func(g luastd.Grants) luastd.Grant { return g.Net }, luastd.Grants{Net: list("a.example")}, luastd.Grants{Net: list("b.example")}, nil},
		{func(g luastd.Grants) luastd.Grant { return g.Read }, luastd.Grants{Read: list("data/in", "more", "/p/../q")}, luastd.Grants{Read: list(".")}, []string{"data/in", "more/deep"}},
		{func(g luastd.Grants) luastd.Grant { return g.Write }, luastd.Grants{Write: all}, luastd.Grants{Write: all}, []string{"."}},
		{func(g luastd.Grants) luastd.Grant { return g.Write }, luastd.Grants{Write: list("lib")}, luastd.Grants{Write: list("lib/made/x")}, []string{"lib/made/x"}},
		{func(g luastd.Grants) luastd.Grant { return g.Write }, luastd.Grants{Write: list("lib")}, luastd.Grants{Write: all}, nil},
		{func(g luastd.Grants) luastd.Grant { return g.Env }, luastd.Grants{Env: list("A", "B")}, luastd.Grants{Env: list("B")}, []string{"B"}},
		{func(g luastd.Grants) luastd.Grant { return g.Model }, luastd.Grants{Model: all}, luastd.Grants{Model: all}, nil},
	} {
		got := test.of(project.Narrow(luastd.Bound{Grants: test.asked}, luastd.Bound{Grants: test.less}))
		again := test.of(project.Narrow(luastd.Bound{Grants: test.asked}).Narrow(luastd.Bound{Grants: test.less}))
		for _, got := range []luastd.Grant{got, again} {
			if slices.Sort(got.List); got.All || !slices.Equal(got.List, test.want) {
				t.Errorf("%+v and %+v: got %+v, want %v", test.asked, test.less, got, test.want)
			}
		}
	}
}

// TestGrants_Environ holds that a worker gets what it needs and what is granted, and no secret,
// whatever is granted and however its name is written.
func TestGrants_Environ(t *testing.T) {
	environ := []string{"HOME=h", "TZ=UTC", "KEY=k", "ssl_cert_file=s", "SSL_CERT_FILE=s", "OBELUS_TOKEN=t", "HTTP_PROXY=p", "PATH=x"}
	for _, test := range []struct {
		grants luastd.Grants
		want   []string
	}{
		{luastd.Grants{}, []string{"TZ=UTC", "SSL_CERT_FILE=s"}},
		{luastd.Grants{Env: luastd.Grant{List: []string{"HOME", "KEY"}}, Secrets: []string{"KEY", "Ssl_Cert_File"}}, []string{"HOME=h", "TZ=UTC"}},
		{luastd.Grants{Env: luastd.Grant{All: true}, Secrets: []string{"key"}}, []string{"HOME=h", "TZ=UTC", "ssl_cert_file=s", "SSL_CERT_FILE=s", "HTTP_PROXY=p", "PATH=x"}},
		{luastd.Grants{Net: luastd.Grant{List: []string{"a.example"}}}, []string{"TZ=UTC", "SSL_CERT_FILE=s", "HTTP_PROXY=p"}},
	} {
		if got := test.grants.Environ(environ); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v, want %v", test.grants, got, test.want)
		}
	}
}
