package budget

import (
	"errors"
	"obelus/host/internal/limits"

	lua "github.com/yuin/gopher-lua"
)

// Reach records whether a call's script reaches beyond its memory: prints, sleeps, touches a file
// or the network.
type Reach struct {
	Ends bool // the script is to end before it does
	Out  bool // it did, or would have
}

// errReached ends a speculative call before its script reaches beyond its memory.
var errReached = errors.New("it has run ahead as far as it may")

// Outside is called before a script reaches beyond its memory. It raises in the script if that is
// to end first.
func (b *Budget) Outside(L *lua.LState) {
	if b.reaches() {
		L.RaiseError("%s", limits.OutOfTime)
	}
}

// reaches records that the script reaches beyond its memory, and reports whether it is to end
// before it does.
func (b *Budget) reaches() (ends bool) {
	if b.Reach == nil {
		return false
	}
	b.Reach.Out = true
	if b.Reach.Ends {
		b.EndWith(errReached)
	}
	return b.Reach.Ends
}

// longWork is how many units of work at once take so long, perhaps a millisecond, that a call
// should not be speculative meanwhile.
const longWork = 4096

// tooLong reports whether a script is to end before long work.
func (b *Budget) tooLong(units int) bool {
	return units >= longWork && b.Reach != nil && b.Reach.Ends && b.reaches()
}
