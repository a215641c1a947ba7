package cli

import (
	"math"
	"strconv"
	"strings"

	"obelus/cmd/internal/exit"
	"obelus/engine/plan"
)

// ParseBudget parses the value of --budget: an amount in US dollars, or tokens=N, requests=N,
// cost=USD with commas between them. An empty text, for no flag, has no limits.
func ParseBudget(text string) (limits plan.Budget, err error) {
	if text == "" {
		return limits, nil
	}
	wrong := exit.Usagef("--budget %s: it is an amount in US dollars, such as 0.50, or tokens=N, requests=N, cost=USD with commas between them", text)
	given := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		name, amount, named := strings.Cut(part, "=")
		if !named {
			name, amount = "cost", part
		}
		if given[name] {
			return plan.Budget{}, exit.Usagef("--budget %s: %s is bounded twice: give one bound (an amount without a name is the cost)", text, name)
		}
		given[name] = true
		n := 0
		switch name {
		case "cost":
			limits.Cost, err = strconv.ParseFloat(amount, 64)
			n = 1
			if !(limits.Cost > 0) || math.IsInf(limits.Cost, 0) {
				n = 0
			}
		case "tokens":
			n, err = strconv.Atoi(amount)
			limits.Tokens = int64(n)
		case "requests":
			n, err = strconv.Atoi(amount)
			limits.Requests = n
		default:
			return plan.Budget{}, wrong
		}
		if err != nil || n <= 0 {
			return plan.Budget{}, wrong
		}
	}
	return limits, nil
}
