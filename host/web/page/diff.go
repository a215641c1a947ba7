package page

import (
	"errors"
	"net/http"
	"strconv"

	"obelus/engine/history"
	"obelus/store"
)

// diffView is the difference of two moments, of one context or of two.
type diffView struct {
	A, B       string
	AtA, AtB   int64
	Rows       []changeRow
	More       int
	Calls      []history.CallChange
	Scripts    []history.ScriptChange
	Command    string
	Incomplete bool // there is nothing to compare yet
	Missing    string
}

// mostChanges is the number of differences that are shown.
const mostChanges = 500

func (p *Page) diff(r *http.Request) (*content, error) {
	q := r.URL.Query()
	v := diffView{A: q.Get("a"), B: q.Get("b")}
	v.AtA, _ = strconv.ParseInt(q.Get("a_at"), 10, 64)
	v.AtB, _ = strconv.ParseInt(q.Get("b_at"), 10, 64)
	if v.B == "" {
		v.B = v.A
	}
	c := &content{Title: "Compare", Section: "runs", Template: "diff", Still: true}
	if v.Incomplete = v.A == ""; v.Incomplete {
		c.Data = v
		return c, nil
	}
	for _, side := range []struct {
		name string
		at   *int64
	}{{v.A, &v.AtA}, {v.B, &v.AtB}} {
		head, err := p.config.Log.Head(r.Context(), side.name)
		if errors.Is(err, store.ErrNoContext) {
			v.Missing, v.Incomplete = "there is no context "+side.name, true
			c.Data, c.Status = v, http.StatusNotFound
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		*side.at = max(0, min(*side.at, head))
	}
	compared, err := history.Compare(r.Context(), p.config.Log, history.Moment{Context: v.A, At: v.AtA}, history.Moment{Context: v.B, At: v.AtB})
	if err != nil {
		return nil, err
	}
	v.More = max(0, len(compared.Values)-mostChanges)
	v.Rows = rowsOfChanges(compared.Values[:len(compared.Values)-v.More])
	v.Calls, v.Scripts = compared.Calls, compared.Scripts
	v.Command = commandWith([]string{"diff"}, momentWord(v.A, v.AtA), momentWord(v.B, v.AtB))
	c.Data = v
	return c, nil
}

// momentWord is a moment as the command diff takes it.
func momentWord(name string, at int64) string {
	if at == 0 {
		return name
	}
	return name + "@" + number(at)
}
