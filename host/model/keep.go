package model

import (
	"cmp"
	"context"

	"obelus/engine/plan"
	"obelus/store"
)

// Keep returns an asker that asks by another one, and has the log keep each request that was sent
// and its answer: by the meter, with the record that has the usage. scrub takes the secrets out of
// a text.
func Keep(asker Asker, scrub func(string) string) Asker { return &keeper{asker, scrub} }

type keeper struct {
	asker Asker
	scrub func(string) string
}

// Ask implements [Asker].
func (k *keeper) Ask(ctx context.Context, r *Request, meter *plan.Meter) (*Answer, error) {
	before := meter.Requests()
	answer, err := k.asker.Ask(ctx, r, meter)
	switch {
	case answer != nil:
		usage := answer.Usage
		usage.MS = float64(usage.Took.Microseconds()) / 1000
		meter.Keep(k.exchange(r, cmp.Or(answer.Text, answer.Refusal), "", usage))
	case err != nil && meter.Requests() > before: // else nothing was sent
		meter.Keep(k.exchange(r, "", err.Error(), plan.Usage{Model: r.Model, Requests: meter.Requests() - before, Request: r.Hash()}))
	}
	return answer, err
}

// exchange returns a request with its answer or its failure, without secrets.
func (k *keeper) exchange(r *Request, answer, failure string, usage plan.Usage) store.Exchange {
	return store.NewExchange(r.Hash(), k.scrub(string(r.JSON())), k.scrub(answer), k.scrub(failure), string(store.EncodeJSON(usage)))
}
