package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asProgram in the environment makes the test binary the program.
const asProgram = "EMBED_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestMain_Command holds that the program with arguments is the whole command, in which plans
// reach its activity in Go and its object.
func TestMain_Command(t *testing.T) {
	db := filepath.Join(t.TempDir(), "log.db")
	for _, test := range []struct {
		args   []string
		status int
		want   string // within what it prints
	}{
		{[]string{"run", "plans/order.lua", "-c", "order-1", "-i", "item=tea", "-i", "count:=2", "-i", "price:=4"}, 0, `"payment":{"charged":8,"key":"order-1/1.2"}`},
		{[]string{"call", "charge", "amount:=101"}, 1, ""},
		{[]string{"call", "charge", "amount=many"}, 2, ""},
		{[]string{"get", "-c", "order-1", "state.order.count"}, 0, "2"},
		{[]string{"check"}, 0, ""},
	} {
		c := exec.Command(os.Args[0], append([]string{"-C", "project", "--db", db}, test.args...)...)
		c.Env = append(os.Environ(), asProgram+"=1")
		out, err := c.Output()
		status := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			status = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if status != test.status || !strings.Contains(string(out), test.want) {
			t.Errorf("%v ends with %d and prints %q", test.args, status, out)
		}
	}
}

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
