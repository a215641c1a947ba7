package model_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/host/model"
	"obelus/host/model/fit"
)

// pieces splits a text about as the tokenizers of models do: a word with the space or the sign before
// it, up to three digits, signs.
var pieces = regexp.MustCompile(`[^\r\n\p{L}\p{N}]?(?:\p{Lu}*\p{Ll}+|\p{Lu}+)|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+`)

// tokensOf estimates how many tokens a text has: those of a long word are several.
func tokensOf(text string) (n int) {
	for _, piece := range pieces.FindAllString(text, -1) {
		n += 1 + len(piece)/12
	}
	return n
}

// sixParameters are tools of six parameters each, as a shop may have them, some with descriptions.
func sixParameters(t testing.TB, n int) (offers []plan.Offer, wire, strict string) {
	verbs, things := []string{"find", "open", "close", "send", "refund", "list", "update", "cancel", "rate", "archive"}, []string{"order", "invoice", "ticket", "parcel", "customer", "product", "review", "voucher", "return", "address", "letter", "payment", "account", "offer", "basket", "shift", "driver", "depot", "stock", "report"}
	var plain, closed []string
	for i := range n {
		verb, thing := verbs[i%len(verbs)], things[i/len(verbs)%len(things)]
		properties := fmt.Sprintf(`{"%[2]s_id":{"type":"string","description":"Number of the %[2]s, as on its confirmation."},"amount":{"type":"number","minimum":0,"description":"In euros, with taxes."},"reason":{"type":"string","description":"Why it is done, for the %[2]s's history."},"urgent":{"type":"boolean","description":"Whether it goes before all others."},"channel":{"type":"string","enum":["mail","phone","chat","letter"],"description":"How the customer is told."},"tags":{"type":"array","items":{"type":"string"},"description":"Words to find it by."}}`, verb, thing)
		description := fmt.Sprintf("%s a %s, and notes in its history who has done so and when.", strings.ToUpper(verb[:1])+verb[1:], thing)
		name := verb + "_" + thing
		offers = append(offers, offer(t, name, fmt.Sprintf(`{"description":%q,"properties":%s,"required":["%s_id","reason"]}`, description, properties, thing), false))
		plain = append(plain, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":{"type":"object","properties":%s,"required":["%s_id","reason"]}}}`, name, description, properties, thing))
		nullable := properties
		for _, typ := range []string{"number", "boolean", "array"} {
			nullable = strings.Replace(nullable, `"type":"`+typ+`"`, `"type":["`+typ+`","null"]`, 1)
		}
		nullable = strings.Replace(nullable, `"type":"string","enum":["mail"`, `"type":["string","null"],"enum":[null,"mail"`, 1)
		closed = append(closed, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"strict":true,"parameters":{"type":"object","properties":%s,"required":["%s_id","amount","reason","urgent","channel","tags"],"additionalProperties":false}}}`, name, description, nullable, thing))
	}
	return offers, "[" + strings.Join(plain, ",") + "]", "[" + strings.Join(closed, ",") + "]"
}

// sent returns all that a request sends to a model of a dialect.
func sent(t testing.TB, r *model.Request, dialect string) string {
	t.Helper()
	d, _ := fit.DialectOf(dialect)
	fitted, err := fit.Schema(r.Schema, d)
	if err != nil {
		t.Fatal(err)
	}
	return r.System + strings.Join(r.Blocks, "\n\n") + text(t, fitted.Schema)
}

// TestPlanRequest_Size compares a question for a plan with the tools as other programs send them.
func TestPlanRequest_Size(t *testing.T) {
	for _, n := range []int{10, 50, 200} {
		offers, wire, strict := sixParameters(t, n)
		c := model.Config{Name: "m", Dialect: "openai"}
		r := model.New(c, nil).PlanRequest(plan.Proposal{Tick: 1, Key: "c/1", Mode: plan.ModeEager, Tools: offers})
		for _, form := range []struct {
			name  string
			r     *model.Request
			other string
			most  float64
		}{{"exact", r, strict, 1.5}, {"loose", r.Loose, wire, 1.2}} {
			ours := sent(t, form.r, "openai")
			ratio := float64(tokensOf(ours)) / float64(tokensOf(form.other))
			t.Logf("%d tools, %s: about %d tokens, %d bytes; as tools %d tokens, %d bytes: %.2f", n, form.name, tokensOf(ours), len(ours), tokensOf(form.other), len(form.other), ratio)
			if ratio > form.most {
				t.Errorf("%d tools, %s: %.2f times the tools, and at most %.1f are wanted", n, form.name, ratio, form.most)
			}
		}
	}
}
