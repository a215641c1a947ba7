package cmd

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"obelus/cmd/internal/exit"

	_ "github.com/mattn/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"
)

// The exit statuses of the program.
const (
	exitDone        = int(exit.Done)
	exitFailed      = int(exit.Failed)
	exitUsage       = int(exit.Refused)
	exitWaiting     = int(exit.Waiting)
	exitBusy        = int(exit.Busy)
	exitInterrupted = int(exit.Interrupted)
	exitTerminated  = int(exit.Terminated)
)

// obelusOutput runs the program within the test and gives what it prints to
// stdout.
func obelusOutput(t testing.TB, status int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(Config{}, args, strings.NewReader(""), &stdout, &stderr); got != status {
		t.Fatalf("obelus %s: exit status %d, not %d\n%s", strings.Join(args, " "), got, status, stderr.String())
	}
	return stdout.String()
}

// status is the script command "status N program args…": the program must end
// with exit status N. What it printed is there for stdout and stderr.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program [args…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, not %d", got, want)
	}
}

// query is the script command "query FILE SQL": it runs SQL on a database, by no
// function of ours, and prints each row with | between its columns. It fails
// where SQLite does.
func query(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: query FILE SQL")
	}
	db, err := sql.Open("sqlite3", "file:"+ts.MkAbs(args[0])+"?mode=rw")
	ts.Check(err)
	defer db.Close()
	text, err := rowsOf(db, args[1])
	if neg != (err != nil) {
		ts.Fatalf("query: %v", err)
	}
	if err != nil {
		text = err.Error() + "\n"
	}
	fmt.Fprint(ts.Stdout(), text)
}

func rowsOf(db *sql.DB, text string) (string, error) {
	rows, err := db.Query(text)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for rows.Next() {
		values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return "", err
		}
		for i, v := range values {
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(v.String)
		}
		b.WriteByte('\n')
	}
	return b.String(), rows.Err()
}

// lock is the script command "lock FILE": until the script ends, another
// connection keeps the database for itself.
func lock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lock FILE")
	}
	db, err := sql.Open("sqlite3", ts.MkAbs(args[0]))
	ts.Check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("BEGIN IMMEDIATE")
	ts.Check(err)
	ts.Defer(func() { db.Close() })
}
