package view

import (
	"fmt"

	"obelus/cmd/internal/human"
	"obelus/engine/numeral"
	"obelus/engine/plan"
)

// Usage returns the requests, tokens and cost that models used, in words: "3 requests, 4,120 + 310
// tokens, 0.017 USD".
func Usage(u plan.Usage) string {
	text := fmt.Sprintf("%s, %s + %s tokens", human.Count(u.Requests, "request"), numeral.Thousands(u.Input), numeral.Thousands(u.Output))
	if u.Estimated {
		text += " (estimated)"
	}
	if u.Cost != nil {
		text += fmt.Sprintf(", %.4g USD", *u.Cost)
	}
	return text
}
