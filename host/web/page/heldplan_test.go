package page_test

import (
	"net/http"
	"strings"
	"testing"

	"obelus/engine/journal"
)

// lazyShop has a plan of calls that wait for a person before any of them runs, and one of a function.
var lazyShop = map[string]string{
	"obelus.lua": `return { drain = "100ms", approve = "pay", allow = { net = { "pay.example.com" } } }`,
	"activities/shop.lua": `
		Activity.register("lookup", {}, function(call) return { name = "Ada" } end)
		Activity.register("pay", { allow = { net = { "pay.example.com" } } }, function(call) return { amount = call.amount, to = call.to } end)
		Activity.register("note", function(call) return call.text end)
		Tool.register("pay", { properties = { amount = { type = "number", maximum = 100 }, to = { type = "string" } } })`,
	"plans/refund.lua": `return { mode = "lazy", calls = {
		{ _tool = "lookup", id = "†input.order", _outputPath = "†state.order" },
		{ _tool = "pay", _reasoningForCall = "the order is known now", amount = 50, to = "†state.order.name", _outputPath = "†state.paid" },
		{ _tool = "note", text = "a", _outputPath = "†state.b" },
		{ _tool = "note", text = "†state.b", _outputPath = "†state.c" } }, output = "†state.paid" }`,
	"plans/again.lua": `return function(context)
		if context.state then return { output = "†state" } end
		return { calls = { { _tool = "note", text = context.error and "second" or "first", _outputPath = "†state" } } }
	end`,
}

// TestHeldPlan_Decide shows a plan that waits on the inbox and on its run's page, corrects an argument,
// drops a call once what that means is confirmed, and rejects the plan of another run.
func TestHeldPlan_Decide(t *testing.T) {
	s := serve(t, lazyShop, nil)
	s.run("a", "plans/refund.lua", `{"order":7}`)
	for _, path := range []string{"/inbox", "/runs/a"} {
		doc := s.page(path).doc
		said := textOf(find(doc, "article", "id", "plan-a"))
		for _, want := range []string{"pay", "will be held", "the order is known now", "now 7", "by 1.1", "may use net pay.example.com", "†state.paid", "approve --plan="} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q: %s", path, want, said)
			}
		}
	}
	hash := attr(find(s.page("/inbox").doc, "input", "name", "hash"), "value")
	shown := []string{"back", "inbox", "hash", hash, "value:1.1.id", "†input.order", "value:1.2.to", "†state.order.name", "value:1.3.text", "a", "value:1.4.text", "†state.b", "by", "Grace"}
	form := func(more ...string) []string { return append(append([]string{}, shown...), more...) }
	s.refused(s.post("/runs/a/approve-plan", form("value:1.2.amount", "500")...), "100")
	s.refused(s.post("/runs/a/approve-plan", form("value:1.2.amount", "many")...), "1.2.amount")
	s.refused(s.post("/runs/a/approve-plan", "hash", "000000000000", "by", "Grace"), "waits in context a is "+hash)

	// What a call that is dropped leaves waiting is confirmed.
	asked := s.post("/runs/a/approve-plan", form("value:1.2.amount", "40", "without", "1.3")...)
	said := textOf(find(asked.doc, "article", "id", "plan-a"))
	if asked.status != http.StatusOK || !strings.Contains(said, "call 1.4 would wait for †state.b") {
		t.Fatalf("it is not asked about: %d %s", asked.status, said)
	}
	if amount := attr(find(asked.doc, "input", "name", "value:1.2.amount"), "value"); amount != "40" {
		t.Errorf("the correction is not kept: %q", amount)
	}
	confirmed := attr(find(asked.doc, "input", "name", "confirmed"), "value")
	// Another drop has to be confirmed by itself.
	if again := s.post("/runs/a/approve-plan", form("value:1.2.amount", "40", "without", "1.3", "without", "1.1", "confirmed", confirmed)...); again.status != http.StatusOK {
		t.Errorf("dropping another call is not asked about: %d", again.status)
	}
	if path, _ := s.followed(s.post("/runs/a/approve-plan", form("value:1.2.amount", "40", "without", "1.3", "confirmed", confirmed)...)); path != "/inbox" {
		t.Errorf("it leads to %s", path)
	}
	s.awaitCall("a", "1.2", journal.Held)
	s.followed(s.post("/runs/a/approve", "call", "1.2", "value:amount", "40", "value:to", "Ada"))
	s.awaitCall("a", "1.4", journal.Waiting)
	s.awaitCall("a", "1.2", journal.Done)
	if got := encode(s.value("a", "state.paid")); got != `{"amount":40,"to":"Ada"}` {
		t.Errorf("it ran with %s", got)
	}
	if why := textOf(find(s.page("/runs/a?tab=state&why=state.paid").doc, "aside")); !strings.Contains(why, "40, corrected by Grace (local); was 50") {
		t.Errorf("who corrected it is not said: %s", why)
	}

	s.api(http.MethodPost, "/v1/runs", `{"context":"b","plan":"plans/again.lua","mode":"lazy","wait":true}`)
	hash = attr(find(s.page("/runs/b").doc, "input", "name", "hash"), "value")
	s.refused(s.post("/runs/b/reject-plan", "hash", hash), "reason")
	s.followed(s.post("/runs/b/reject-plan", "hash", hash, "reason", "too dear", "by", "Grace"))
	s.until("its planner has given another plan", func() bool {
		last, err := journal.In(s.log, "b").LastRun(t.Context())
		return err == nil && last.Tick == 2 && last.Held
	})
	if said := textOf(find(s.page("/runs/b").doc, "article", "id", "plan-b")); !strings.Contains(said, "tick 2") {
		t.Errorf("the second plan is not shown: %s", said)
	}
}

// TestHeldPlan_Lines holds that a text of several lines runs as it was shown, however its lines end and
// a browser gives them back, and that a text too long for an input has none.
func TestHeldPlan_Lines(t *testing.T) {
	s := serve(t, map[string]string{
		"activities/a.lua": `Activity.register("note", function(call) return call.text end)`,
		"plans/p.lua": `return { calls = {
			{ _tool = "note", text = "Dear Ada,\r\nthank you.\n\nBob", _outputPath = "†state.a" },
			{ _tool = "note", text = string.rep("x", 5000), _outputPath = "†state.b" },
		}, output = "†state.a" }`,
	}, nil)
	s.api(http.MethodPost, "/v1/runs", `{"context":"a","plan":"plans/p.lua","mode":"lazy","wait":true}`)
	doc := s.page("/runs/a").doc
	text := find(doc, "textarea", "name", "value:1.1.text")
	if text == nil || find(doc, "input", "name", "value:1.2.text") != nil || find(doc, "textarea", "name", "value:1.2.text") != nil {
		t.Fatal("the text of several lines has no textarea, or the long one an input")
	}
	hash := attr(find(doc, "input", "name", "hash"), "value")
	s.followed(s.post("/runs/a/approve-plan", "hash", hash, "value:1.1.text", "Dear Ada,\r\nthank you.\r\n\r\nBob"))
	s.await("a", journal.RunDone)
	if got := s.value("a", "state.a"); got != "Dear Ada,\r\nthank you.\n\nBob" {
		t.Errorf("it ran with %q", got)
	}
	if why := textOf(find(s.page("/runs/a?tab=state&why=state.a").doc, "aside")); strings.Contains(why, "corrected") {
		t.Errorf("it is said to be corrected: %s", why)
	}
}
