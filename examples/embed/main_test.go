package main

import (
	"context"
	"fmt"
)

// What the program prints.
func Example() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// done {"order":{"count":3,"item":"tea"},"payment":{"charged":12,"key":"order-1/1.2"}}
	// 1.1 reserve done [†state.order]
	// 1.2 charge done [†state.payment]
}
