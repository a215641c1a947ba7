package luatest_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	"obelus/host"
	"obelus/host/luatest"
)

// A project's Lua tests, run by a program.
func ExampleTests() {
	tests, err := luatest.Open(host.Config{FS: fstest.MapFS{
		"activities/add.lua": {Data: []byte(`Activity.register("add", function(call) return call.a + call.b end)`)},
		"tests/add_test.lua": {Data: []byte(`
			local test = require "test"
			describe("add", function()
				it("adds", function() assert.equal(3, test.activity("add", { a = 1, b = 2 })) end)
				it("multiplies", function() assert.equal(6, test.activity("add", { a = 2, b = 3 })) end)
				pending("subtracts")
			end)`)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	files, _ := tests.Files()
	for _, file := range files {
		found, err := tests.List(context.Background(), file)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, test := range found {
			var failure *luatest.Failure
			switch err := tests.Run(context.Background(), test); {
			case test.Pending:
				fmt.Println(test.Name, "is pending")
			case errors.As(err, &failure):
				fmt.Println(test.Name, "failed:", failure)
			default:
				fmt.Println(test.Name, "passed")
			}
		}
	}
	// Output:
	// add adds passed
	// add multiplies failed: tests/add_test.lua:5: expected the same as 6, got 5
	// add subtracts is pending
}
