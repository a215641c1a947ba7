package model

import (
	"cmp"
	"fmt"
	"maps"
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

// toolsBlock lists the tools of a plan; with their parameters where the schema does not have them.
func toolsBlock(p plan.Proposal, loose bool) string {
	tools := slices.Clone(p.Tools)
	slices.SortFunc(tools, func(a, b plan.Offer) int { return strings.Compare(a.Name, b.Name) })
	lines := []string{"## Tools"}
	for _, tool := range tools {
		lines = append(lines, toolLines(tool, p.Mode == plan.ModeLazy, loose))
	}
	if len(tools) == 0 {
		lines = append(lines, "(none)")
	}
	return strings.Join(lines, "\n")
}

// Bounds of the ledger: in bytes, of all its lines where the model has no window, of an argument or
// a value of a call whose tick is not among the newest, and of the reason of a failure or a skip.
const (
	maxLedger = 48 << 10
	maxShort  = 100
	maxReason = 300
)

// ledgerBlock says what became of the calls of the run's earlier ticks: the newest whole, older
// ones shortened, and the oldest left out where there are too many.
func ledgerBlock(calls []plan.PastCall, most int) string {
	lines := make([]string, len(calls))
	size, first := 0, len(calls)
	for ; first > 0; first-- {
		line := pastLine(calls[first-1], most/4)
		if size+len(line) > most/2 {
			line = pastLine(calls[first-1], maxShort)
		}
		if size += len(line) + 1; size > most {
			break
		}
		lines[first-1] = line
	}
	lines = lines[first:]
	if first > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("(%d calls before that are left out)", first))
	}
	return "## So far\nYour calls, each with what became of it. What is done is done: go on from there. Do not repeat a call as it failed.\n" + strings.Join(lines, "\n")
}

// pastLine returns what became of a call, on a line; arguments and values have at most some bytes.
func pastLine(call plan.PastCall, most int) string {
	line := call.Call + " " + call.Tool
	if issued := issuedText(call); issued != "" {
		line += " " + cutText(issued, most)
	}
	if why, ok := call.Issued["_reasoningForCall"].(string); ok && why != "" {
		line += " (" + cutText(oneLine(why), min(most, maxReason)) + ")"
	}
	ended := call.Status
	if len(call.Wrote) > 0 {
		ended = strings.TrimPrefix(ended+", wrote "+strings.Join(call.Wrote, ", "), "done, ")
	}
	line += " → " + ended
	if call.Value.Set {
		shown := jsonText(plan.Literal(call.Value.Value))
		if len(call.Wrote) > 0 { // the data has it
			shown = cutText(shown, maxShort)
		}
		line += " = " + cutText(shown, most)
	}
	for _, note := range []string{call.Reason, call.SetAside} {
		if note != "" {
			line += ": " + cutText(oneLine(note), max(most, maxReason))
		}
	}
	return line
}

// issuedText returns a call as it was issued, without what stands elsewhere on its line, and
// without its result; empty where there is no more.
func issuedText(call plan.PastCall) string {
	shown := maps.Clone(call.Issued)
	for _, name := range []string{"_tool", "_output", "_reasoningForCall"} {
		delete(shown, name)
	}
	if len(call.Wrote) > 0 {
		delete(shown, "_outputPath")
	}
	if len(shown) == 0 {
		return ""
	}
	return jsonText(shown)
}

// refusedBlock shows a plan that was refused.
func refusedBlock(solution any) string {
	return "## Last plan\nIt was refused, and nothing of it has run:\n" + cutText(jsonText(solution), maxPlan)
}

// maxPlan is how many bytes of an earlier plan are shown.
const maxPlan = 16 << 10

// errorsBlock shows what was wrong with the tick before, a line each, unless the ledger has it
// whole; empty where nothing was.
func errorsBlock(p plan.Proposal, ledger string) string {
	lines := []string{"## Errors"}
	for _, data := range p.Errors {
		message, _ := messageOf(data)
		if told := message != "" && data["call"] != nil && strings.Contains(ledger, oneLine(message)); !told {
			lines = append(lines, errorLine(data))
		}
	}
	for _, warning := range p.Warnings {
		lines = append(lines, "Warning: "+withoutCaret(warning))
	}
	if p.Repeats != "" {
		lines = append(lines, "You repeat yourself: "+p.Repeats)
	}
	if len(lines) == 1 {
		return ""
	}
	return strings.Join(lines, "\n")
}

// withoutCaret returns a message without the lines at its end that show a place in an expression.
func withoutCaret(message string) string {
	lines := strings.Split(message, "\n")
	if n := len(lines); n > 2 && strings.TrimSpace(lines[n-1]) == "^" {
		lines = lines[:n-2]
	}
	return strings.Join(lines, "\n  ") // so that no line begins a block
}

// messageOf returns the text of an error message; ok is false for one without.
func messageOf(data map[string]any) (text string, ok bool) {
	failure, _ := data["error"].(map[string]any)
	text, ok = failure["message"].(string)
	return text, ok
}

// errorLine returns an error message on a line: its call, and its text.
func errorLine(data map[string]any) string {
	message, ok := messageOf(data)
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
	message = withoutCaret(message)
	if len(names) == 0 {
		return message
	}
	return strings.Join(names, " ") + ": " + message
}

// planBlocks returns the blocks of a question for a plan, and how many of them the next one will
// begin with if all goes on as it did. The ledger has at most some bytes.
func planBlocks(p plan.Proposal, loose bool, s *shower, ledger int) (blocks []string, stable int) {
	blocks = append(textBlocks(p.Prose), toolsBlock(p, loose))
	if len(p.Outcomes) > 1 {
		blocks = append(blocks, "## Output\nThe output goes to "+p.Outcomes[0]+". To choose another of "+strings.Join(p.Outcomes, " or ")+
			`, give {"to": PATH, "value": OUTPUT} as output, or where it can't be done {"to": "`+p.Outcomes[len(p.Outcomes)-1]+`", "message": WHY}.`)
	}
	if p.Plan != nil {
		blocks = append(blocks, "## Plan in the context\nIt is none of your own:\n"+cutText(jsonText(p.Plan), maxPlan))
	}
	stable = len(blocks)
	written := map[string]bool{}
	for _, call := range p.SoFar {
		if call.Tick != p.Tick-1 {
			continue
		}
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
	soFar := ""
	if len(p.SoFar) > 0 {
		soFar = ledgerBlock(p.SoFar, ledger)
		blocks = append(blocks, soFar)
	}
	if p.Refused != nil {
		blocks = append(blocks, refusedBlock(p.Refused))
	}
	if block := errorsBlock(p, soFar); block != "" {
		blocks = append(blocks, block)
	}
	return append(blocks, fmt.Sprintf("## Tick %d\nGive the calls of the next step, and the output if the task is done.", p.Tick)), stable
}

// answerBlocks returns the blocks of what questions have in common, and all of them.
// What their calls read is whole.
func answerBlocks(questions []plan.Question, s *shower) (common, calls []string) {
	add := func(block string) {
		if block != "" && !slices.Contains(common, block) {
			common = append(common, block)
		}
	}
	common = textBlocks(questions[0].Prose)
	for _, q := range questions {
		add(taskBlock(q))
	}
	for _, kind := range joinedKinds(questions) {
		if isScoped(kind, questions) {
			common = append(common, dataBlock(kind, &shower{}))
		} else {
			common = append(common, dataBlock(kind, s))
		}
	}
	for _, q := range questions {
		for _, thought := range q.Thoughts {
			add(thoughtBlock(thought))
		}
	}
	for _, q := range questions {
		calls = append(calls, callBlock(q))
	}
	return common, calls
}

// taskBlock says what a call's tool is to do; empty where its name alone says it.
func taskBlock(q plan.Question) string {
	name, _ := q.Call["_tool"].(string)
	tool, _ := q.Tool.(map[string]any)
	text, _ := tool["description"].(string)
	block := indented(strings.TrimSpace(text)) + exampleLines(tool, "\n")
	if block == "" {
		return ""
	}
	return "## Tool " + name + "\n" + strings.TrimPrefix(block, "\n")
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
	return b.String() + "\n" + jsonText(parametersOf(q.Call))
}
