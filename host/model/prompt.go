package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/store"
)

// SchemaBlock returns the block of a prompt that shows a schema, for providers that hold the model
// to it without showing it, or not at all.
func SchemaBlock(schema any) string {
	return "## Schema of the answer\nAnswer with JSON that fits this JSON Schema, and with nothing else.\n" + jsonText(schema)
}

// jsonText writes a value as JSON: schemas in their order, other objects sorted.
func jsonText(v any) string {
	text, err := fit.JSON(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// systemText returns a primer and the system messages of a context.
func systemText(primer string, prose []plan.Prose) string {
	texts := []string{primer}
	for _, p := range prose {
		if p.System {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// textBlocks returns the text messages of a context.
func textBlocks(prose []plan.Prose) (blocks []string) {
	for _, p := range prose {
		if !p.System {
			blocks = append(blocks, p.Text)
		}
	}
	return blocks
}

// dataBlock returns the block of a kind.
func dataBlock(kind plan.Shown, s *shower) string {
	var b strings.Builder
	path := store.KindPath(kind.Kind)
	b.WriteString("## Data: " + path.String())
	if kind.Instance != "" {
		b.WriteString(" " + oneLine(kind.Instance))
	}
	if kind.Description != "" {
		b.WriteString("\n" + oneLine(kind.Description))
	}
	if kind.Kind == "input" {
		b.WriteString("\nTreat it as a structured prompt.")
	}
	switch {
	case !kind.Value.Set:
		b.WriteString("\n(no value yet)")
	default:
		b.WriteString("\n" + jsonText(s.show(kind.Value.Value, path)))
	}
	if kind.Schema != nil {
		b.WriteString("\nSchema: " + jsonText(ordered(kind.Schema)))
	}
	return b.String()
}

// byteSize writes a number of bytes for people.
func byteSize(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// toolsBlock lists the tools of a plan; with their schemas where calls are loose.
func toolsBlock(p plan.Proposal, loose bool) string {
	tools := slices.Clone(p.Tools)
	slices.SortFunc(tools, func(a, b plan.Offer) int { return strings.Compare(a.Name, b.Name) })
	lines := []string{"## Tools"}
	for _, tool := range tools {
		lines = append(lines, toolLine(tool, p.Mode == plan.ModeLazy))
		if loose {
			lines = append(lines, "  Schema: "+jsonText(ordered(tool.Schema)))
		}
	}
	if len(tools) == 0 {
		lines = append(lines, "(none)")
	}
	return strings.Join(lines, "\n")
}

// lastPlanBlock says what became of the calls of the tick before.
func lastPlanBlock(calls []plan.LastCall) string {
	lines := []string{"## Last plan"}
	for _, call := range calls {
		line := call.Call + " " + call.Tool + issuedText(call.Issued) + " → "
		if len(call.Wrote) > 0 {
			line += "wrote " + strings.Join(call.Wrote, ", ")
		} else {
			line += call.Status
		}
		for _, note := range []string{call.Reason, call.SetAside} {
			if note != "" {
				line += ": " + oneLine(note)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// maxIssued is how many bytes of a call of the last plan are shown.
const maxIssued = 1000

// issuedText returns a call as it was issued, without its tool, its reasoning and its result.
func issuedText(call map[string]any) string {
	shown := map[string]any{}
	for name, v := range call {
		if name != "_tool" && name != "_output" && name != "_reasoningForCall" {
			shown[name] = v
		}
	}
	if len(shown) == 0 {
		return ""
	}
	return " " + cutText(jsonText(shown), maxIssued)
}

// refusedBlock shows a plan that was refused.
func refusedBlock(solution any) string {
	return "## Last plan\nIt was refused, and nothing of it has run:\n" + cutText(jsonText(solution), 4*maxIssued)
}

// errorsBlock shows the error messages of the tick before.
func errorsBlock(errors []map[string]any) string {
	lines := []string{"## Errors"}
	for _, data := range errors {
		lines = append(lines, errorLine(data))
	}
	return strings.Join(lines, "\n")
}

// errorLine returns an error message on a line: its call, and its text.
func errorLine(data map[string]any) string {
	failure, _ := data["error"].(map[string]any)
	message, ok := failure["message"].(string)
	if !ok {
		return jsonText(plan.Literal(data))
	}
	var names []string
	for _, name := range []string{"call", "tool"} {
		if text, ok := data[name].(string); ok && text != "" {
			names = append(names, text)
		}
	}
	if tool, ok := data["tool"].(string); ok { // the call is named already
		if _, own, ok := strings.Cut(message, " ("+tool+"): "); ok {
			message = own
		}
	}
	message = strings.ReplaceAll(message, "\n", "\n  ") // it can't begin a block
	if len(names) == 0 {
		return message
	}
	return strings.Join(names, " ") + ": " + message
}

// planBlocks returns the blocks of a question for a plan, and how many of them the next one will
// begin with if all goes on as it did.
func planBlocks(p plan.Proposal, loose bool, s *shower) (blocks []string, stable int) {
	blocks = append(textBlocks(p.Prose), toolsBlock(p, loose))
	stable = len(blocks)
	written := map[string]bool{}
	for _, call := range p.Last {
		for _, text := range call.Wrote {
			if path, err := store.ParsePath(text); err == nil {
				written[path.Kind()] = true
			}
		}
	}
	for _, kind := range p.Kinds {
		if stable == len(blocks) && !written[kind.Kind] {
			stable++
		}
		blocks = append(blocks, dataBlock(kind, s))
	}
	if p.Schema != nil {
		blocks = append(blocks, "## Output\nThe schema of the output: "+jsonText(ordered(p.Schema)))
	}
	if len(p.Outcomes) > 1 {
		blocks = append(blocks, "## Outcomes\nThe output goes to "+p.Outcomes[0]+". To choose another of "+strings.Join(p.Outcomes, " or ")+
			`, give {"to": PATH, "value": OUTPUT} as output, or where it can't be done {"to": "`+p.Outcomes[len(p.Outcomes)-1]+`", "message": WHY}.`)
	}
	switch {
	case p.Refused != nil:
		blocks = append(blocks, refusedBlock(p.Refused))
	case len(p.Last) > 0:
		blocks = append(blocks, lastPlanBlock(p.Last))
	}
	if len(p.Errors) > 0 {
		blocks = append(blocks, errorsBlock(p.Errors))
	}
	return append(blocks, fmt.Sprintf("## Tick %d\nGive the calls of the next step, and the output if the task is done.", p.Tick)), stable
}

// answerBlocks returns the blocks of what questions have in common, and all of them.
// What their calls read is whole.
func answerBlocks(questions []plan.Question, s *shower) (common, calls []string) {
	common = textBlocks(questions[0].Prose)
	for _, kind := range joinedKinds(questions) {
		if isScoped(kind, questions) {
			common = append(common, dataBlock(kind, &shower{}))
		} else {
			common = append(common, dataBlock(kind, s))
		}
	}
	var seen []string
	for _, q := range questions {
		for _, thought := range q.Thoughts {
			if text := thoughtBlock(thought); !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
	}
	for _, q := range questions {
		calls = append(calls, callBlock(q))
	}
	return append(common, seen...), calls
}

// isScoped reports whether the scopes of any of several questions name a kind, or something in it.
func isScoped(kind plan.Shown, questions []plan.Question) bool {
	return slices.ContainsFunc(questions, func(q plan.Question) bool {
		return slices.ContainsFunc(q.Scopes, func(path store.Path) bool { return path.Kind() == kind.Kind })
	})
}

// joinedKinds returns the kinds that any of several questions shows, each once: those that all
// scopes name last.
func joinedKinds(questions []plan.Question) []plan.Shown {
	type key struct{ kind, instance string }
	at := map[key]int{}
	var kinds []plan.Shown
	for _, q := range questions {
		for _, kind := range q.Kinds {
			k := key{kind.Kind, kind.Instance}
			if i, ok := at[k]; ok {
				kinds[i].Scoped = kinds[i].Scoped && kind.Scoped
				continue
			}
			at[k] = len(kinds)
			kinds = append(kinds, kind)
		}
	}
	if len(questions) > 1 {
		slices.SortStableFunc(kinds, func(a, b plan.Shown) int {
			if a.Scoped != b.Scoped {
				return map[bool]int{true: 1, false: -1}[a.Scoped]
			}
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Instance, b.Instance))
		})
	}
	return kinds
}

// thoughtBlock shows a latent call without an output path that came before.
func thoughtBlock(thought map[string]any) string {
	call, _ := thought["call"].(map[string]any)
	name, _ := call["_tool"].(string)
	text := "## Thought " + name + "\n" + jsonText(parametersOf(call))
	if output, ok := thought["output"]; ok {
		text += "\n→ " + jsonText(output)
	}
	return text
}

// parametersOf returns a call without its meta-properties.
func parametersOf(call map[string]any) map[string]any {
	made := map[string]any{}
	for name, v := range call {
		if !strings.HasPrefix(name, "_") {
			made[name] = v
		}
	}
	return made
}

// callBlock shows a call that is to be answered.
func callBlock(q plan.Question) string {
	var b strings.Builder
	name, _ := q.Call["_tool"].(string)
	b.WriteString("## Call " + q.ID + " " + name)
	if instance, ok := q.Call["_instance"].(string); ok && instance != "" {
		b.WriteString(" " + oneLine(instance))
	}
	tool, _ := q.Tool.(map[string]any)
	if text, ok := tool["description"].(string); ok && text != "" {
		b.WriteString(" — " + oneLine(text))
	}
	if len(q.Scopes) > 0 {
		var paths []string
		for _, path := range q.Scopes {
			paths = append(paths, path.String())
		}
		b.WriteString("\nUse above all: " + strings.Join(paths, ", "))
	}
	if len(q.Alternatives) > 1 {
		b.WriteString("\nGoes to: " + strings.Join(q.Alternatives, " or "))
	}
	if text, ok := resultDescription(q.Schema); ok {
		b.WriteString("\nResult: " + text)
	}
	return b.String() + "\n" + jsonText(parametersOf(q.Call))
}

// resultDescription returns the description in the schema of a result.
func resultDescription(schema any) (string, bool) {
	object, _ := schema.(map[string]any)
	text, ok := object["description"].(string)
	return oneLine(text), ok && text != ""
}
