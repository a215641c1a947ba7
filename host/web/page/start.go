package page

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"obelus/engine/history"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// plansView is the list of the project's plans.
type plansView struct {
	Files []planRow
}

// planRow is a plan, with how its last runs ended.
type planRow struct {
	File string
	Last []lastRun
}

// lastRun is one of a plan's newest runs.
type lastRun struct{ Context, Word, Updated string }

// mostLast is the number of a plan's newest runs that are shown.
const mostLast = 5

// starter has the pages that list plans and start runs.
type starter struct{ *Page }

func (p starter) plans(r *http.Request) (*content, error) {
	v := plansView{}
	for _, file := range p.config.Host.Generation().PlanFiles() {
		last, err := p.read.lastRuns(r, file)
		if err != nil {
			return nil, err
		}
		v.Files = append(v.Files, planRow{File: file, Last: last})
	}
	return &content{Title: "Plans", Section: "plans", Template: "plans", Data: v}, nil
}

func (l reader) lastRuns(r *http.Request, file string) (last []lastRun, err error) {
	for info, err := range l.Log.Contexts(r.Context(), store.ContextFilter{Plan: file, Roots: true}) {
		if err != nil {
			return nil, err
		}
		if len(last) == mostLast {
			break
		}
		row := rowOf(history.Summarize(info))
		last = append(last, lastRun{row.Context, row.Word(), row.Updated})
	}
	return last, nil
}

// startView is a plan with the form that starts it.
type startView struct {
	File     string
	Kind     string
	Mode     string
	Problems []plan.Problem
	Fields   []field
	NoSchema bool // the plan declares no input
	Raw      string
	Graph    *graphView
	Last     []lastRun
	Starts   bool   // the author may start it
	Decides  bool   // the author may choose the calls to hold
	Fresh    string // name of the run, unless another one is given
	Context  string
	Approve  string
	Labels   string
	From     string // the run whose input is in the form
	Refused  string
	Command  string
	Curl     string
	Checked  bool // the input was checked, and there are no errors
}

// planAnswer is the part of the API's answer about a plan that the form shows.
type planAnswer struct {
	File     string
	Kind     string
	Mode     string
	Input    json.RawMessage
	Problems []plan.Problem
	Graph    *history.Graph
}

func (p starter) start(r *http.Request) (*content, error) {
	v, err := p.startOf(r)
	if err != nil {
		return nil, err
	}
	return &content{Title: v.File, Section: "plans", Template: "start", Data: v, Still: true}, nil
}

// startOf returns the form of a plan, with the input of another run if the address names one.
func (p starter) startOf(r *http.Request) (*startView, error) {
	file := "plans/" + strings.TrimPrefix(r.PathValue("file"), "plans/")
	var about planAnswer
	if err := p.do(r, act{http.MethodGet, "/v1" + fileLink("", file), nil}, &about); err != nil {
		return nil, err
	}
	author := p.config.Author(r)
	v := &startView{
		File: about.File, Kind: about.Kind, Mode: about.Mode, Problems: about.Problems,
		Starts: author.Role >= host.MayRun, Decides: author.Role >= host.MayDecide, From: r.URL.Query().Get("from"),
	}
	var schema any
	if len(about.Input) > 0 {
		var err error
		if schema, err = store.DecodeJSON(about.Input); err != nil {
			return nil, err
		}
	}
	var given any
	if v.From != "" {
		values, err := p.read.Values(r.Context(), v.From, 0, "")
		if err != nil {
			return nil, err
		}
		given = values["input"]
	}
	v.Fields = fieldsOf(schema, given)
	v.NoSchema = len(v.Fields) == 0
	if object, ok := given.(map[string]any); ok && (v.NoSchema || !covers(v.Fields, object)) {
		v.Raw = encode(given)
	}
	if about.Graph != nil && len(about.Graph.Nodes) > 0 {
		drawn := drawPlan(about.Graph)
		v.Graph = &drawn
	}
	v.Fresh = cmp.Or(r.PostFormValue("fresh"), p.config.NewName())
	v.Command = commandOf("run", v.File, "-i", "@input.json")
	v.Curl = p.callerOf(r).curl(act{http.MethodPost, "/v1/runs", map[string]any{"plan": v.File, "input": map[string]any{}}})
	last, err := p.read.lastRuns(r, v.File)
	v.Last = last
	return v, err
}

// postStart starts a run, and shows it, or the form with an error.
func (p starter) postStart(w http.ResponseWriter, r *http.Request) error {
	if err := CheckForm(r); err != nil {
		return p.Fail(w, r, err)
	}
	v, err := p.startOf(r)
	if err != nil {
		return p.Fail(w, r, err)
	}
	v.Problems = nil // they are those of the plan without this input
	form := r.PostForm
	body := map[string]any{"plan": v.File}
	for _, name := range []string{"context", "approve"} {
		if text := strings.TrimSpace(form.Get(name)); text != "" {
			body[name] = text
		}
	}
	if fresh := form.Get("fresh"); body["context"] == nil && fresh != "" { // sent twice, it starts one run
		body["context"], body["once"] = fresh, true
	}
	input, err := valueFrom(v.Fields, form)
	if err == nil && !(v.NoSchema && string(input) == "{}") {
		body["input"], err = store.DecodeJSON(input)
	}
	if err == nil {
		err = addLabels(body, form.Get("labels"))
	}
	var made struct{ Context string }
	switch {
	case err != nil:
	case form.Has("check"):
		v.Problems, err = p.checkStart(r, body)
		v.Checked = err == nil
	default:
		err = p.do(r, act{http.MethodPost, "/v1/runs", body}, &made)
	}
	if err != nil || v.Checked {
		status, message := 0, ""
		if err != nil {
			status, message = p.explain(r, err)
		}
		v.Refused, v.Raw, v.Context, v.Approve, v.Labels = message, form.Get("raw"), form.Get("context"), form.Get("approve"), form.Get("labels")
		refill(v.Fields, form, message)
		return p.send(w, r, &content{Title: v.File, Section: "plans", Template: "start", Data: v, Still: true, Status: status})
	}
	http.Redirect(w, r, mount.Prefix(r)+"/runs/"+url.PathEscape(made.Context), http.StatusSeeOther)
	return nil
}

// checkStart has the API check the plan and the input of a start. It returns the warnings, and an
// error with all errors.
func (p starter) checkStart(r *http.Request, body map[string]any) ([]plan.Problem, error) {
	check := map[string]any{"plan": body["plan"]}
	if name, ok := body["context"].(string); ok && body["once"] == nil {
		if err := store.CheckContext(name); err != nil {
			return nil, &fieldError{"context", err.Error()}
		}
		if _, err := p.config.Log.Head(r.Context(), name); err == nil {
			check["context"] = name
		}
	}
	if policy, ok := body["approve"]; ok {
		check["approve"] = policy
	}
	if input, ok := body["input"]; ok {
		check["input"] = input
	}
	var problems, warnings []plan.Problem
	if err := p.do(r, act{http.MethodPost, "/v1/check", check}, &problems); err != nil {
		return nil, err
	}
	refused := &plan.PlanError{}
	for _, problem := range problems {
		if problem.Severity == plan.SeverityWarning {
			warnings = append(warnings, problem)
			continue
		}
		if problem.File == body["plan"] && problem.Line == 0 { // as for the input: it is in no place there
			problem.File = ""
		}
		refused.Problems = append(refused.Problems, problem)
	}
	if len(refused.Problems) > 0 {
		return warnings, &refusedError{http.StatusUnprocessableEntity, refused.Error()}
	}
	return warnings, nil
}

// addLabels adds labels that are typed as "customer=7 region=north".
func addLabels(body map[string]any, text string) error {
	labels := map[string]any{}
	for _, word := range strings.Fields(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return &fieldError{"labels", "each is a name and a value, as in customer=7"}
		}
		labels[name] = value
	}
	if len(labels) > 0 {
		body["labels"] = labels
	}
	return nil
}
