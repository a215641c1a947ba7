//go:build race

package luastd_test

// slower is how much longer what is timed may take.
const slower = 8
