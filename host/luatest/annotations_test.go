package luatest

import (
	"maps"
	"slices"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/annotations"
	"obelus/host/internal/luatext"
	"obelus/host/internal/sandbox"
)

func TestAnnotations_Vocabulary(t *testing.T) {
	all := annotations.Signatures(t, "*.go")
	r := &testFile{s: openTestProject(t, nil).gen.NewState()}
	annotations.Read(t, "test.lua").CheckTable(t, "test", sandbox.Bind(r.s.L, r, testModule), all)
	a := annotations.Read(t, "testing.lua")
	var names []string
	for _, f := range testGlobals {
		names = append(names, f.Name)
	}
	for _, f := range spyGlobals {
		names = append(names, "spy."+f.Name)
	}
	for _, name := range names {
		if params, ok := a.Functions[name]; !ok || !slices.Equal(params, all[name]) {
			t.Errorf("%s is annotated with %v, its comment has %v", name, params, all[name])
		}
	}
	if len(a.Functions) != len(names) {
		t.Errorf("%v are annotated", slices.Sorted(maps.Keys(a.Functions)))
	}
	words := a.Fields["obelus.assert"]
	for _, word := range words {
		if assertWord(r, word, nil) == lua.LNil {
			t.Errorf("assert.%s is annotated and does not exist", word)
		}
	}
	needed := slices.Concat(fillers, slices.Collect(maps.Keys(checks)), slices.Collect(maps.Keys(checkAliases)))
	for _, word := range needed {
		if slices.Contains(luatext.Keywords, word) { // no name in Lua: assert.is_nil
			word = "is_" + word
		}
		if !slices.Contains(words, word) {
			t.Errorf("assert.%s is not annotated", word)
		}
	}
}
