package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"obelus/engine/numeral"
	"obelus/engine/plan"
	"obelus/store"
)

// promptView is a question to a model, with the answers that the log keeps.
type promptView struct {
	promptAnswer
	Context, About string                      // the call, or the tick whose plan was asked for
	Asked          struct{ Call, Tick string } // one of them
	Size           string                      // of the blocks
	Shown          []promptReply
	Command, Curl  string
}

// promptReply is an answer as it is shown.
type promptReply struct {
	Added       []string // blocks that asked again about the answer before
	Text, Error string
	Lacks       string // why there is no text
	Usage       string
}

// promptAnswer is the part of the API's answer about a prompt that the page shows.
type promptAnswer struct {
	Tick           int
	Calls          []string
	State          string
	Hash, Recorded string
	Request        struct {
		Purpose, Model, System string
		Blocks                 []string
		Schema, Params         json.RawMessage
	}
	Answers []struct {
		Added       []string
		Text, Error string
		Size        int64
		Usage       *plan.Usage
	}
}

func (p *Page) prompt(r *http.Request) (*content, error) {
	v, query := &promptView{Context: r.PathValue("context")}, url.Values{}
	for _, name := range []string{"call", "tick"} {
		if about := r.URL.Query().Get(name); about != "" {
			query.Set(name, about)
		}
	}
	ask := func() act { return act{http.MethodGet, contextPath(v.Context, "prompt") + "?" + query.Encode(), nil} }
	if err := p.do(r, ask(), &v.promptAnswer); err != nil {
		return nil, err
	}
	switch call := query.Get("call"); {
	case call != "":
		v.Asked.Call = call
	case len(v.Calls) > 0:
		v.Asked.Call = v.Calls[0]
		query.Set("call", v.Asked.Call)
	default:
		v.Asked.Tick = strconv.Itoa(v.Tick)
		query.Set("tick", v.Asked.Tick)
	}
	v.About = cmp.Or(v.Asked.Call, v.Asked.Tick)
	a := ask()
	v.Command, v.Curl = commandOf("prompt", v.About, "-c", v.Context), p.callerOf(r).curl(a)
	size := len(v.Request.System)
	for _, block := range v.Request.Blocks {
		size += len(block)
	}
	v.Size = numeral.Size(int64(size))
	v.Request.System, v.Request.Blocks = cutText(v.Request.System, mostShown), cutTexts(v.Request.Blocks)
	for _, answer := range v.Answers {
		reply := promptReply{Added: cutTexts(answer.Added), Text: cutText(answer.Text, mostShown), Error: answer.Error, Usage: usageText(answer.Usage)}
		if reply.Text == "" && answer.Size > 0 {
			reply.Lacks = numeral.Size(answer.Size) + ", " + store.WhyNotKept(answer.Size)
		}
		v.Shown = append(v.Shown, reply)
	}
	return &content{Title: "Prompt of " + v.About, Section: "runs", Template: "prompt", Data: v, Still: true}, nil
}

func cutTexts(texts []string) (cut []string) {
	for _, text := range texts {
		cut = append(cut, cutText(text, mostShown))
	}
	return cut
}

// Schema is the schema of the answer, and Params the parameters, as JSON in lines.
func (v *promptView) Schema() string { return inLines(v.Request.Schema) }

// Params is described at [promptView.Schema].
func (v *promptView) Params() string { return inLines(v.Request.Params) }

func inLines(text json.RawMessage) string {
	var b bytes.Buffer
	if len(text) == 0 || string(text) == "null" || string(text) == "{}" || json.Indent(&b, text, "", "  ") != nil {
		return ""
	}
	return cutText(b.String(), mostShown)
}
