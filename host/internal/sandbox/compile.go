package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
	"obelus/host/internal/luac"
	"obelus/host/internal/luaerr"
)

// NewScript compiles a file of at most so many bytes.
func NewScript(file string, source []byte, most int) (*Script, error) {
	sc := NewLazyScript(file, source, most)
	if _, err := sc.Compile(); err != nil {
		return nil, err
	}
	return sc, nil
}

// NewLazyScript is NewScript for a file that may never be needed: it is compiled on first use.
func NewLazyScript(file string, source []byte, most int) *Script {
	sum := sha256.Sum256(source)
	return &Script{
		File: file, Source: source, SHA256: hex.EncodeToString(sum[:]),
		Compile: sync.OnceValues(func() (*lua.FunctionProto, error) { return compileScript(file, source, most) }),
	}
}

func compileScript(file string, source []byte, most int) (*lua.FunctionProto, error) {
	if len(source) > most {
		return nil, &luaerr.ScriptError{File: file, Line: 1, Message: limits.Over(fmt.Sprintf("the script has %d bytes", len(source)), "source", most)}
	}
	proto, err := luac.Compile(file, source, Functions)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(file, "lib/") {
		if err := luac.AccidentalGlobal(file, source, proto, KnownGlobals()); err != nil {
			return nil, err
		}
	}
	return proto, nil
}
