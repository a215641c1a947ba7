package host

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// places are the folders that a random _allow may name, and the file of each that is read.
var places = map[string]string{"data": "data/x", "more": "more/y"}

// randomAllow returns an _allow of some folders, in one of the forms of a tool's definition, and
// which folders it leaves; nil leaves all.
func randomAllow(r *rand.Rand) (definition map[string]any, leaves []string) {
	definition = map[string]any{"_activity": "read"}
	given := [][]string{nil, {}, {"data"}, {"more"}, {"data", "more"}, {"."}}[r.IntN(6)]
	if given == nil {
		return definition, nil
	}
	allow := any(map[string]any{"const": map[string]any{"read": given}})
	if r.IntN(2) == 0 {
		definition["properties"] = map[string]any{"_allow": allow}
	} else {
		definition["_allow"] = allow
	}
	if len(given) == 1 && given[0] == "." {
		return definition, []string{"data", "more"}
	}
	return definition, given
}

// TestAllow_OfTheLogOnlyNarrows holds that the _allow of a registered tool stays, whatever messages
// and plans define under its name, and that their own narrow it.
func TestAllow_OfTheLogOnlyNarrows(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		registered, bound := randomAllow(r)
		text, _ := json.Marshal(registered)
		g := granted(t, map[string]string{
			"obelus.lua": `return { allow = { read = { "." } } }`,
			"activities/a.lua": fmt.Sprintf(`Activity.register("read", function(call) return require("fs").read(call.file) or "refused" end)
				Tool.register("look", json.decode(%q))`, text),
		})
		log := memory.New()
		request := &plan.Request{Name: "p"}
		bounds := [][]string{bound}
		for n := r.IntN(3); n > 0; n-- { // the latest of the messages counts
			definition, leaves := randomAllow(r)
			message := store.Message{Type: store.TypeTool, Data: store.Some(map[string]any{"look": definition})}
			if _, err := engine.Append(t.Context(), log, "c", []store.Message{message}); err != nil {
				t.Fatal(err)
			}
			bounds = append(bounds[:1], leaves)
		}
		if r.IntN(2) == 0 {
			definition, leaves := randomAllow(r)
			request.Tools = map[string]any{"look": definition}
			bounds = append(bounds, leaves)
		}
		for place, file := range places {
			request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": "look", "file": file, "_outputPath": "†read." + place}})
		}
		outcome, err := g.Settings().Runner(log, g.Registry()).Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil {
			t.Fatal(err)
		}
		for place := range places {
			want := true
			for _, leaves := range bounds {
				want = want && (leaves == nil || slices.Contains(leaves, place))
			}
			path, _ := store.ParsePath("†read." + place)
			found, err := store.Resolver{Log: log, Context: "c"}.Resolve(t.Context(), path, "")
			if got := found.Value != "refused"; err != nil || !found.Exists || got != want {
				t.Errorf("seed %d: %s is read: %v, under %q: %v %+v", seed, place, got, bounds, err, outcome.Calls)
			}
		}
	}
}
