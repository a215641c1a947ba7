package main

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	_ "github.com/mattn/go-sqlite3"
	lua "github.com/yuin/gopher-lua"
)

// loop is the loop that one would write by hand: a table of steps, and statements that are prepared
// once.
type loop struct {
	db     *sql.DB
	insert *sql.Stmt
	last   *sql.Stmt
	lua    *lua.LState
}

const script = `
function add(call) return call.n + 1 end
function tell(call) log("step", call.n) return call.n + 1 end
function sum(call)
  local total = 0
  for _, n in ipairs(call.all) do total = total + n end
  return total
end`

func openLoop(s settings, file string) (l *loop, err error) {
	l = &loop{}
	if l.db, err = sql.Open("sqlite3", "file:"+file+"?_journal_mode=WAL&_synchronous="+s.synchronous); err != nil {
		return nil, err
	}
	l.db.SetMaxOpenConns(1)
	if _, err = l.db.Exec(`CREATE TABLE steps (run TEXT, step INTEGER, value TEXT, PRIMARY KEY (run, step))`); err != nil {
		return nil, err
	}
	if l.insert, err = l.db.Prepare(`INSERT INTO steps (run, step, value) VALUES (?, ?, ?)`); err != nil {
		return nil, err
	}
	if l.last, err = l.db.Prepare(`SELECT value FROM steps WHERE run = ? AND step = ?`); err != nil {
		return nil, err
	}
	l.lua = lua.NewState()
	l.lua.SetGlobal("log", l.lua.NewFunction(func(L *lua.LState) int {
		logger.Info(L.CheckString(1), "n", float64(L.CheckNumber(2)))
		return 0
	}))
	return l, l.lua.DoString(script)
}

func (l *loop) close() error {
	l.lua.Close()
	return l.db.Close()
}

// step runs a Lua function, stores its result and returns it.
func (l *loop) step(run string, step int, function, parameter string, value lua.LValue) (float64, error) {
	call := l.lua.NewTable()
	call.RawSetString(parameter, value)
	if err := l.lua.CallByParam(lua.P{Fn: l.lua.GetGlobal(function), NRet: 1, Protect: true}, call); err != nil {
		return 0, err
	}
	result := float64(l.lua.Get(-1).(lua.LNumber))
	l.lua.Pop(1)
	text, err := json.Marshal(result)
	if err != nil {
		return 0, err
	}
	_, err = l.insert.Exec(run, step, string(text))
	return result, err
}

// next runs a function on the result of a step, as the step after it.
func (l *loop) next(run string, step int, function string) error {
	n := 0.0
	if step > 1 {
		var text string
		if err := l.last.QueryRow(run, step-1).Scan(&text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			return err
		}
	}
	_, err := l.step(run, step, function, "n", lua.LNumber(n))
	return err
}

// result returns the value of a step, to check that the work was done.
func (l *loop) result(run string, step int, want string) error {
	var text string
	if err := l.last.QueryRow(run, step).Scan(&text); err != nil {
		return err
	}
	if text != want {
		return fmt.Errorf("the loop gives %s, not %s", text, want)
	}
	return nil
}

// timeLoop times work by the loop, from an open file to the last step of a run, whose result must
// be the expected one.
func timeLoop(s settings, file, run string, last, want int, work func(l *loop, t *times, began time.Time) error) (t times, err error) {
	l, err := openLoop(s, file)
	if err != nil {
		return t, err
	}
	defer func() { err = cmp.Or(err, l.close()) }()
	before, err := usedSoFar()
	if err != nil {
		return t, err
	}
	began := time.Now()
	if err := work(l, &t, began); err != nil {
		return t, err
	}
	t.whole = time.Since(began)
	if t.used, err = usedSince(before); err != nil {
		return t, err
	}
	return t, l.result(run, last, fmt.Sprint(want))
}

func loopChain(s settings, file, function string, steps, part int) (times, error) {
	return timeLoop(s, file, "c", steps, steps, func(l *loop, t *times, began time.Time) error {
		for i := 1; i <= steps; i++ {
			if err := l.next("c", i, function); err != nil {
				return err
			}
			t.pass(i, steps, part, began)
		}
		return nil
	})
}

func loopFanout(s settings, file string, steps int) (times, error) {
	return timeLoop(s, file, "c", steps+1, sumTo(steps), func(l *loop, _ *times, _ time.Time) error {
		for i := 1; i <= steps; i++ {
			if _, err := l.step("c", i, "add", "n", lua.LNumber(i)); err != nil {
				return err
			}
		}
		return l.join("c", steps)
	})
}

// join adds up all steps of a run, as its last one.
func (l *loop) join(run string, steps int) error {
	rows, err := l.db.Query(`SELECT value FROM steps WHERE run = ? ORDER BY step`, run)
	if err != nil {
		return err
	}
	defer rows.Close()
	all := l.lua.CreateTable(steps, 0)
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		var n float64
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			return err
		}
		all.Append(lua.LNumber(n))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err = l.step(run, steps+1, "sum", "all", all)
	return err
}

// sumTo returns the result of the join: each step adds one to its number.
func sumTo(steps int) int { return steps * (steps + 3) / 2 }

func loopContexts(s settings, file string, contexts, steps int) (times, error) {
	return timeLoop(s, file, fmt.Sprint("c", contexts-1), steps, steps, func(l *loop, _ *times, _ time.Time) error {
		for c := range contexts {
			for i := 1; i <= steps; i++ {
				if err := l.next(fmt.Sprint("c", c), i, "add"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
