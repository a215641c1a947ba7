package luastd

import (
	"context"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// TestYAML_EndsWithTheCall holds that a script does not wait for the parser once
// its time is over.
func TestYAML_EndsWithTheCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := &Env{Context: func() (context.Context, context.CancelFunc) { return ctx, func() {} }}
	L := lua.NewState()
	defer L.Close()
	L.SetGlobal("decode", L.NewFunction(func(L *lua.LState) int { return yamlDecode(env, L) }))
	L.SetGlobal("text", lua.LString("["+strings.Repeat("1,", 1<<19-2)+"1]"))
	if err := L.DoString("return decode(text)"); err == nil || !strings.Contains(err.Error(), "the script was interrupted") {
		t.Errorf("got %v", err)
	}
}
