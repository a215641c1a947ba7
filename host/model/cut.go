package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"sync"

	"obelus/engine/plan"
	"obelus/store"
)

// limits bound how much of a value is shown.
type limits struct {
	text    int // bytes of a text
	members int // of a list or an object
	depth   int // of lists and objects within each other
}

// narrowing lists limits, each of which shows less than the one before: of long texts at first,
// then of long lists, and of everything in the end.
var narrowing = sync.OnceValue(func() (all []limits) {
	const every = math.MaxInt32
	for text := 1 << 20; text > 512; text /= 2 {
		all = append(all, limits{text, every, every})
	}
	for members := 1 << 13; members > 16; members /= 2 {
		all = append(all, limits{512, members, every})
	}
	return append(all, limits{256, 16, 12}, limits{128, 8, 8}, limits{64, 4, 6})
})

// shower shows values in a prompt: whole, or in part where the prompt would be too large.
type shower struct {
	planning bool                // texts that begin with † have a second one, and references are a way to the whole
	limits   *limits             // nil for none
	cut      map[store.Path]bool // the values that are shown in part
}

// show returns a value as it is shown.
func (s *shower) show(v any, path store.Path) any { return s.within(v, path, 0) }

func (s *shower) within(v any, path store.Path, depth int) any {
	isDeep := s.limits != nil && depth >= s.limits.depth
	switch v := v.(type) {
	case string:
		shown := v
		if s.planning {
			shown, _ = plan.Literal(v).(string)
		}
		if s.limits == nil || len(shown) <= s.limits.text {
			return shown
		}
		return validPrefix(shown, s.limits.text) + s.rest(byteSize(len(v)), path)
	case []any:
		if isDeep && len(v) > 0 {
			return s.rest("more within", path)
		}
		count := s.count(len(v))
		shown := make([]any, 0, count+1)
		for i, e := range v[:count] {
			shown = append(shown, s.within(e, path.Child(strconv.Itoa(i)), depth+1))
		}
		if more := len(v) - count; more > 0 {
			shown = append(shown, s.rest(fmt.Sprintf("%d more", more), path))
		}
		return shown
	case map[string]any:
		if isDeep && len(v) > 0 {
			return s.rest("more within", path)
		}
		names := slices.Sorted(maps.Keys(v))
		names = names[:s.count(len(names))]
		shown := make(map[string]any, len(names)+1)
		for _, name := range names {
			shown[name] = s.within(v[name], path.Child(name), depth+1)
		}
		if more := len(v) - len(names); more > 0 {
			shown["…"] = s.rest(fmt.Sprintf("%d more", more), path)
		}
		return shown
	}
	return v
}

// count returns how many of some members are shown.
func (s *shower) count(members int) int {
	if s.limits == nil {
		return members
	}
	return min(members, s.limits.members)
}

// rest notes that the rest of a value is cut, and says so in its place.
func (s *shower) rest(what string, path store.Path) string {
	s.cut[path] = true
	if s.planning {
		return fmt.Sprintf("… (%s: refer to it as %s)", what, path)
	}
	return fmt.Sprintf("… (%s: cut here)", what)
}

// mostListed bounds how many cut values a request lists.
const mostListed = 32

// listed returns references to what is cut; where that is much, to the kinds that it is of.
func (s *shower) listed() []string {
	texts := map[string]bool{}
	for path := range s.cut {
		if len(s.cut) > mostListed {
			path = store.KindPath(path.Kind())
		}
		texts[path.String()] = true
	}
	return slices.Sorted(maps.Keys(texts))
}

// bound returns how many tokens a prompt may have: the window of the model, less the room for its
// answer; 0 for any number.
func (m *Model) bound() int {
	return m.config.Window - min(m.config.MaxTokens, m.config.Window/2)
}

// fitted returns a request that shows all values whole, or, where its prompt would be too large, as
// much as an eighth of its bound leaves room for: what is wrong with an answer is added to it.
// Where it is too large in any case, all is shown, for an error to name it.
func (m *Model) fitted(build func(*shower) *Request, planning bool) *Request {
	whole := build(&shower{planning: planning})
	if m.bound() <= 0 || whole.Tokens() <= m.bound() {
		return whole
	}
	made := make([]*Request, len(narrowing()))
	n := sort.Search(len(made), func(i int) bool {
		s := &shower{planning: planning, limits: &narrowing()[i], cut: map[store.Path]bool{}}
		made[i] = build(s)
		made[i].Cut = s.listed()
		return made[i].Tokens() <= m.bound()-m.bound()/8
	})
	if n == len(made) {
		return whole
	}
	return made[n]
}

// canRefer reports whether a tool takes a value that a planner refers to.
func canRefer(tool plan.Offer) bool {
	parameters, _ := plan.ToolParts(tool.Schema)
	properties, _ := parameters["properties"].(map[string]any)
	return len(properties) > 0 || parameters["additionalProperties"] != false
}
