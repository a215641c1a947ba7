package journal

import (
	"context"

	"obelus/store"
)

// eachRecord calls take with the records that an entry adds to the calls of its context: one for
// each call of a new plan, or one for a call that has changed.
func (c Context) eachRecord(ctx context.Context, entry store.Entry, take func(Record) error) error {
	if entry.Call != "" {
		r, err := ReadRecord(entry)
		if err != nil {
			return err
		}
		r.Context = c.Name
		return take(r)
	}
	if entry.Event != EventPlan {
		return nil
	}
	plan, err := ReadPlanEvent(entry)
	if err != nil || plan.Seq == 0 {
		return err
	}
	calls, err := c.PlanMessage(ctx, plan.Seq)
	if err != nil {
		return err
	}
	for i, call := range calls {
		object, _ := call.(map[string]any)
		tool, _ := object["_tool"].(string)
		instance, _ := object["_instance"].(string)
		r := Record{Context: c.Name, Call: CallID(plan.Tick, i+1), Tick: plan.Tick, Position: i + 1, Tool: tool, Instance: instance, Status: Blocked}
		if err := take(r); err != nil {
			return err
		}
	}
	return nil
}

// fold has the newest record of each call, in the order of the plans.
type fold struct {
	first int // calls of earlier ticks are left out, unless a later plan has them
	all   []Record
	place map[string]int
}

func newFold(first int) *fold { return &fold{first: first, place: map[string]int{}} }

// put takes the record of an entry.
func (f *fold) put(entry store.Entry, r Record) error {
	at, ok := f.place[r.Call]
	switch {
	case !ok && entry.Event == EventPlan:
		f.place[r.Call] = len(f.all)
		f.all = append(f.all, r)
		return nil
	case !ok && r.Tick < f.first: // a fire-and-forget call may outlast its tick
		return nil
	case !ok:
		return UnknownCall(entry)
	case r.Status == Ready && f.all[at].Status != Held:
		return nil // a second decision: the first counts
	}
	f.all[at] = r
	return nil
}
