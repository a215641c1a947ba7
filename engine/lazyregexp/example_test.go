package lazyregexp_test

import (
	"fmt"

	"obelus/engine/lazyregexp"
)

var word = lazyregexp.New(`[a-z]+`)

func ExampleNew() {
	fmt.Println(word().FindString("12 apples"))
	// Output: apples
}
