package storetest

import (
	"errors"
	"testing"

	"obelus/store"
)

// testCode: the scripts of calls are kept once, however often they are appended, and not with an
// append that is refused.
func testCode(t *testing.T, l store.Log) {
	code := &store.Code{Digest: "d1", Scripts: []store.Script{
		{Path: "activities/a.lua", SHA256: "a1", Source: []byte("return 'ß'")},
		{Path: "lib/b.lua", SHA256: "b1", Source: []byte("")},
	}}
	next := &store.Code{Digest: "d2", Scripts: []store.Script{code.Scripts[0], {Path: "lib/b.lua", SHA256: "b2", Source: []byte("return 2")}}}
	keep := func(expect int64, sets ...*store.Code) error {
		_, err := l.Append(t.Context(), store.Batch{
			Context: "c", ExpectSeq: expect, Create: &store.Origin{}, Code: sets, Journal: []store.Entry{{Event: "start"}},
		})
		return err
	}
	absent := func(digest string) {
		if _, err := l.Code(t.Context(), digest); !errors.Is(err, store.ErrNoCode) {
			t.Errorf("code %s: %v", digest, err)
		}
	}
	absent("d1")
	if err := keep(7, code); err == nil {
		t.Fatal("an append at another seq went through")
	}
	absent("d1")
	for _, sets := range [][]*store.Code{{code}, {code}, {next, code}} {
		equal(t, "append", keep(0, sets...), nil)
	}
	for _, want := range []*store.Code{code, next} {
		got, err := l.Code(t.Context(), want.Digest)
		equal(t, "error", err, nil)
		equal(t, "code", got, want)
	}
	absent("d")
}
