package host_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"obelus/engine/plan"
	"obelus/host"
)

// A project in memory, and one call of its activity.
func Example() {
	project := fstest.MapFS{
		"activities/billing.lua": {Data: []byte(`
			Tool.register("checkBillingHistory", {
			  properties = { customerId = { type = "string" } },
			  required = { "customerId" },
			})

			Activity.register("checkBillingHistory", { timeout = "5s", retries = 3 }, function(call, context)
			  return { orders = 5, customer = call.customerId, region = context.state.region }
			end)
		`)},
	}
	h, err := host.Open(host.Config{FS: project})
	if err != nil {
		fmt.Println(err)
		return
	}
	billing := h.Generation().Registry().Activities["checkBillingHistory"]
	result, err := billing.Activity.Run(context.Background(), plan.Invocation{
		Call:    map[string]any{"_tool": "checkBillingHistory", "customerId": "c-17"},
		Context: map[string]any{"state": map[string]any{"region": "EU"}},
	})
	fmt.Println(result.Value, err)
	// Output: map[customer:c-17 orders:5 region:EU] <nil>
}
