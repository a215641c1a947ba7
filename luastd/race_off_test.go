//go:build !race

package luastd_test

const slower = 1
