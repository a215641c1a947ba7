package plan

import (
	"slices"

	"obelus/store"
)

// ExpandInstances makes one call for each instance of those that are for every one.
func ExpandInstances(calls []Source, instances []string) []Source {
	var all []Source
	for i, src := range calls {
		src.position = i + 1
		call, _ := src.Call.(map[string]any)
		if call == nil || call["_instance"] != store.EveryInstance {
			all = append(all, src)
			continue
		}
		for _, instance := range instances {
			if instance == "" || instance == store.EveryInstance { // an older log may have it
				continue
			}
			one := make(map[string]any, len(call))
			for key, v := range call {
				one[key] = v
			}
			one["_instance"] = instance
			all = append(all, Source{Call: one, Line: src.Line, position: src.position, Accepted: src.Accepted})
		}
	}
	return all
}

func EveryInstance(calls []Source) bool {
	return slices.ContainsFunc(calls, func(src Source) bool {
		call, _ := src.Call.(map[string]any)
		return call["_instance"] == store.EveryInstance
	})
}

// KindPaths sorts the kinds by the instances that hold them.
func KindPaths(held []store.KindOf) map[string][]store.Path {
	kinds := map[string][]store.Path{}
	for _, h := range held {
		kinds[h.Instance] = append(kinds[h.Instance], store.KindPath(h.Kind))
	}
	return kinds
}

// Instances lists the instances that a context holds, "" for none first.
func Instances(held []store.KindOf) []string {
	instances := []string{""}
	for _, h := range held {
		if h.Instance != instances[len(instances)-1] {
			instances = append(instances, h.Instance)
		}
	}
	return instances
}
