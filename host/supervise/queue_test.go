package supervise

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// step is one step of a test of a queue, by the name of who takes it: "+a" enters, "!a" enters and
// is not to be refused, "-a" leaves, and "=a" has come to its turn and releases its place.
type step string

// queueTest has the turns of a queue by the names of their holders.
type queueTest struct {
	*queue
	turns map[string]turn
}

func (q *queueTest) do(t *testing.T, s step) (refused bool) {
	t.Helper()
	deed, name := s[0], string(s[1:])
	switch deed {
	case '+', '!':
		turn, err := q.enter(deed == '!')
		if q.turns[name] = turn; err != nil && !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		return err != nil
	case '-':
		q.leave(q.turns[name])
	case '=':
		if !q.hasPlace(name) {
			t.Errorf("it is not the turn of %s", name)
		}
		q.release()
	}
	return false
}

func (q *queueTest) hasPlace(name string) bool {
	return q.turns[name] == nil || isClosed(q.turns[name])
}

// TestQueue_Steps holds who has a place, who waits and who is refused, with two places for a line
// of two.
func TestQueue_Steps(t *testing.T) {
	for name, test := range map[string]struct {
		steps          []step
		refused        string // the last step's
		taken, waiting int
	}{
		"free places":           {[]step{"+a", "+b"}, "", 2, 0},
		"a line":                {[]step{"+a", "+b", "+c", "+d"}, "", 2, 2},
		"full":                  {[]step{"+a", "+b", "+c", "+d", "+e"}, "e", 2, 2},
		"full, but not refused": {[]step{"+a", "+b", "+c", "+d", "!e"}, "", 2, 3},
		"first come":            {[]step{"+a", "+b", "+c", "+d", "=b", "=c", "=d", "=a"}, "", 0, 0},
		"room again":            {[]step{"+a", "+b", "+c", "+d", "=a", "+e"}, "", 2, 2},
		"left the line":         {[]step{"+a", "+b", "+c", "+d", "-c", "=a", "=d", "=b"}, "", 0, 0},
		"left with a place":     {[]step{"+a", "+b", "+c", "=a", "-c"}, "", 1, 0},
		"left for the next":     {[]step{"+a", "+b", "+c", "+d", "=a", "-c", "=d", "=b"}, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queueTest{&queue{places: 2, limit: 2}, map[string]turn{}}
			refused := ""
			for _, s := range test.steps {
				if refused = ""; q.do(t, s) {
					refused = string(s[1:])
				}
			}
			if taken, waiting := q.load(); refused != test.refused || taken != test.taken || waiting != test.waiting {
				t.Errorf("%d places are taken and %d wait, not %d and %d; refused is %q", taken, waiting, test.taken, test.waiting, refused)
			}
		})
	}
}

// TestQueue_Wait holds that a turn is waited for until it comes or until either context ends, which
// leaves the queue.
func TestQueue_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{places: 1, limit: 10}
		if turn, err := q.enter(false); q.wait(t.Context(), t.Context(), turn) != nil || err != nil {
			t.Fatal("it has no place", err)
		}
		client, leave := context.WithCancel(t.Context())
		run, cancel := context.WithCancel(t.Context())
		var turns []turn
		waited := make([]chan error, 3)
		for i, contexts := range [][2]context.Context{{client, t.Context()}, {t.Context(), run}, {t.Context(), t.Context()}} {
			turn, err := q.enter(false)
			if err != nil {
				t.Fatal(err)
			}
			turns, waited[i] = append(turns, turn), make(chan error, 1)
			go func() { waited[i] <- q.wait(contexts[0], contexts[1], turn) }()
		}
		leave()
		cancel()
		for _, gone := range waited[:2] {
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		synctest.Wait()
		if _, waiting := q.load(); waiting != 1 || isClosed(turns[2]) {
			t.Errorf("%d wait", waiting)
		}
		q.release()
		if err := <-waited[2]; err != nil {
			t.Error(err)
		}
	})
}
