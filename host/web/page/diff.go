package page

import (
	"errors"
	"net/http"
	"slices"
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
	Calls      []callChange
	Scripts    []scriptChange
	Command    string
	Incomplete bool // there is nothing to compare yet
	Missing    string
}

// callChange is a call that stands otherwise in the two.
type callChange struct {
	Call, Tool string
	A, B       string // its outcome; empty where it is not
}

// scriptChange is a script that calls ran with in two versions.
type scriptChange struct {
	Path, A, B string // the versions' digests
	GenA, GenB string
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
	changes, err := history.Diff(r.Context(), p.config.Log, history.Moment{Context: v.A, At: v.AtA}, history.Moment{Context: v.B, At: v.AtB})
	if err != nil {
		return nil, err
	}
	v.More = max(0, len(changes)-mostChanges)
	v.Rows = rowsOfChanges(changes[:len(changes)-v.More])
	v.Command = commandWith([]string{"diff"}, momentWord(v.A, v.AtA), momentWord(v.B, v.AtB))
	if err := p.addCallChanges(r, &v); err != nil {
		return nil, err
	}
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

// addCallChanges adds the calls that stand otherwise, and the scripts that they ran with.
func (p *Page) addCallChanges(r *http.Request, v *diffView) error {
	before, err := p.read.Lines(r.Context(), v.A, v.AtA)
	if err != nil {
		return err
	}
	after, err := p.read.Lines(r.Context(), v.B, v.AtB)
	if err != nil {
		return err
	}
	if len(before)+len(after) > mostCompared {
		return nil
	}
	earlier, later := byCall(before), byCall(after)
	for _, b := range after {
		a, known := earlier[b.Call]
		if !known {
			v.Calls = append(v.Calls, callChange{Call: b.Call, Tool: b.Tool, B: b.Word})
			continue
		}
		if a.Word != b.Word {
			v.Calls = append(v.Calls, callChange{Call: b.Call, Tool: b.Tool, A: a.Word, B: b.Word})
		}
		listed := slices.ContainsFunc(v.Scripts, func(s scriptChange) bool { return s.Path == a.Script && s.A == a.ScriptSHA256 && s.B == b.ScriptSHA256 })
		if a.Script == b.Script && a.ScriptSHA256 != "" && b.ScriptSHA256 != "" && a.ScriptSHA256 != b.ScriptSHA256 && !listed {
			v.Scripts = append(v.Scripts, scriptChange{Path: a.Script, A: a.ScriptSHA256, B: b.ScriptSHA256, GenA: a.Generation, GenB: b.Generation})
		}
	}
	for _, a := range before {
		if _, known := later[a.Call]; !known {
			v.Calls = append(v.Calls, callChange{Call: a.Call, Tool: a.Tool, A: a.Word})
		}
	}
	return nil
}

// byCall returns calls by their numbers.
func byCall(lines []*history.Line) map[string]*history.Line {
	by := make(map[string]*history.Line, len(lines))
	for _, line := range lines {
		by[line.Call] = line
	}
	return by
}

// mostCompared is the number of calls that a comparison looks through.
const mostCompared = 4000
