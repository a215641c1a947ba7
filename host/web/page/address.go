package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// The tabs of a run.
const (
	tabGraph    = "graph"
	tabTimeline = "timeline"
	tabCalls    = "calls"
	tabLog      = "log"
	tabState    = "state"
	tabOutput   = "output"
)

// address is where a person is on a run's page, as its address says.
type address struct {
	Context string
	At      int64  // the moment that is shown, as a seq; 0 for now
	Tab     string // one of the tabs
	Call    string // that is shown at the side; empty for none
	Ref     string // the reference whose origin is shown; empty for none
	Query   string // text that the log or the list of calls is searched for
	Status  string // of calls
	Tool    string // the same, and of the messages that they wrote
	From    string // a moment since which the calls began, or the messages were appended
	Kind    string // of messages
	Path    string // that messages touch
	Since   int64  // a seq that the state is compared with; 0 for none
	Cursor  string // of the list
	Tick    int    // whose graph is shown; 0 for the newest
	Inside  string // the instance that values are seen from
	Follow  string // a direction from the call at the side, or none; empty for both
	Group   string // by which the timeline is grouped: tool or instance; empty for none
}

func readAddress(r *http.Request) address {
	q := r.URL.Query()
	number := func(name string) int64 {
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	a := address{
		Context: r.PathValue("context"), At: number("at"), Tab: q.Get("tab"), Call: q.Get("sel"), Ref: strings.TrimPrefix(q.Get("why"), store.Dagger),
		Query: q.Get("q"), Status: q.Get("status"), Tool: strings.TrimSpace(q.Get("tool")), From: strings.TrimSpace(q.Get("from")), Kind: strings.TrimSpace(q.Get("kind")),
		Path: strings.TrimSpace(q.Get("path")), Since: number("since"), Cursor: q.Get("cursor"), Tick: int(number("tick")),
		Inside: q.Get("instance"), Group: q.Get("group"), Follow: q.Get("follow"),
	}
	if !slices.Contains([]string{tabGraph, tabTimeline, tabCalls, tabLog, tabState, tabOutput}, a.Tab) {
		a.Tab = tabGraph
	}
	return a
}

// With returns the query of an address on the same run's page that differs in some parts, which are
// given as names and values. A change of the tab drops filters.
func (a address) With(pairs ...any) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"tab": a.Tab, "sel": a.Call, "why": a.Ref, "q": a.Query, "status": a.Status, "tool": a.Tool, "from": a.From, "kind": a.Kind, "path": a.Path, "instance": a.Inside, "group": a.Group, "follow": a.Follow,
		"at": number(a.At), "since": number(a.Since), "tick": number(int64(a.Tick)),
	} {
		q.Set(name, value)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, value := fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1])
		if name == "tab" && value != a.Tab {
			for _, gone := range []string{"q", "status", "tool", "from", "kind", "path", "group", "follow"} {
				q.Del(gone)
			}
		}
		q.Set(name, value)
	}
	for name, values := range q {
		if values[0] == "" || values[0] == "0" || name == "tab" && values[0] == tabGraph {
			q.Del(name)
		}
	}
	return "?" + q.Encode()
}

// Directions in which the graph is followed from a call.
const (
	followUp   = "up" // to the calls that it depends on
	followDown = "down"
	followNone = "none"
)

// Follows reports whether the graph follows a direction.
func (a address) Follows(direction string) bool { return a.Follow == "" || a.Follow == direction }

// FollowWith returns the directions that are left once one of them is switched on or off.
func (a address) FollowWith(direction string) string {
	other := cond(direction == followUp, followDown, followUp)
	switch {
	case a.Follows(direction) && a.Follows(other):
		return other
	case a.Follows(direction):
		return followNone
	case a.Follows(other):
		return ""
	}
	return direction
}

// Toggle returns a status to filter calls by, or none if it is the filter.
func (a address) Toggle(status string) string { return cond(a.Status == status, "", status) }

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
