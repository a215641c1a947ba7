package cmd

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/host/model/modeltest"
	"obelus/store"
)

// seedTools are the tools that the seeds name, as their texts describe them. Delegates are
// registered with the messages that the seeds give them, see [seedStory.registerDelegates].
const seedTools = `
Activity.register("updateUserStatus", function(call) return call.newStatus end)
Activity.register("greetUser", function(call) print(call.userName) end)
Activity.register("verifyUser", function(call) return nil, "unknown: " .. call.userId end)
Activity.register("generateSummary", function(call) return call.text:sub(1, 4) end)
Activity.register("sendMessage", function(call, context)
  assert(context.state == nil and context.input.mentionedUser.id == call.recipientId)
  print(call.recipientId)
end)
Activity.register("logEvent", function(call, context) print(call.eventName .. " " .. context.state.userId) end)
Tool.register("translate", { properties = { _delegate = { type = "string" } } })
local function granted(call, context) return context end
Activity.register("brought", granted)
Activity.register("registered", granted)
`

// seedOutcome is the result that the text beside a call gives.
type seedOutcome struct {
	context string            // message that the call needs and that the seed does not show
	waits   string            // reference that has no value as the plan is run
	input   string            // given to obelus resume then
	values  map[string]string // by path; "" is missing
	prints  string
	scoped  string // kind whose messages a model is shown last and marked
}

// seedOutcomes are by the tool of a call. The texts beside calls with a delegate show the contexts
// of the delegates, which [seedStory.children] compares.
var seedOutcomes = map[string]seedOutcome{
	"updateUserStatus": {values: map[string]string{"data.user.status": `"inactive"`, "data.user.name": `"Alex"`}},
	"greetUser":        {waits: "†input.userName", input: "userName=Ada", prints: "Ada"},
	"verifyUser":       {values: map[string]string{"state.user.failed.message": `"unknown: perfect-stranger"`, "state.user.verified": ""}},
	"generateSummary":  {values: map[string]string{"state.user.summary": `"Long"`, "state.audit.summary": `"Long"`}},
	"sendMessage":      {prints: "user_B", scoped: "input"},
	"logEvent":         {context: `{"type": "state", "userId": "user_A"}`, prints: "user_login user_A"},
	"summarizeArticle": {},
	"translate":        {},
}

// TestSeeds gives the program each JSON block of the texts in the folder that OBELUS_SEEDS names,
// as it stands: a message or list of messages to obelus append, a call or list with calls as a plan
// file to obelus check and obelus run, a fragment of a schema as a tool, and a solution as the
// answer of a model. Where the text beside a block gives an outcome, it must come out.
func TestSeeds(t *testing.T) {
	dir := os.Getenv("OBELUS_SEEDS")
	if dir == "" {
		t.Skip("skipped: the seeds are not here: OBELUS_SEEDS names no folder with them")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no seeds in %s: %v", dir, err)
	}
	ran, tools := 0, map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			ran++
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			blocks := seedBlocks(t, string(text))
			if len(blocks) == 0 {
				t.Fatal("there is no block of JSON")
			}
			newSeedStory(t, blocks, tools).giveAll()
		})
	}
	for tool := range seedOutcomes {
		if ran == len(files) && !tools[tool] {
			t.Errorf("no block calls %s", tool)
		}
	}
}

// seedStory is a text whose blocks are given to the program one after the other, in one project.
type seedStory struct {
	t      *testing.T
	dir    string
	blocks []seedBlock
	tools  map[string]bool // tools whose calls have run

	messages string   // context of the newest messages, for the next plan; "" if that has come
	ran      string   // context of the newest plan
	children []string // contexts of delegates that no block has shown yet

	mu       sync.Mutex
	systems  []string // system messages of the delegates
	solution string   // of the model, until it has given it
	asked    []string // prompts about the delegates
}

func newSeedStory(t *testing.T, blocks []seedBlock, tools map[string]bool) *seedStory {
	s := &seedStory{t: t, blocks: blocks, tools: tools}
	server := modeltest.NewServer(t)
	server.Answer = s.answer
	s.dir = project(t, map[string]string{
		"obelus.lua":           fmt.Sprintf(`return { model = "m", models = { m = { url = %q, model = "x", tries = 1 } } }`, server.URL),
		"activities/tools.lua": seedTools,
	})
	return s
}

// answer is the model: it gives the solution, and once that has run the output, and for a delegate
// its output.
func (s *seedStory) answer(r *modeltest.Request) modeltest.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	prompt := r.System + "\n" + r.Prompt
	if slices.ContainsFunc(s.systems, func(system string) bool { return strings.Contains(prompt, system) }) {
		s.asked = append(s.asked, prompt)
		return modeltest.Reply{Text: `{"calls": [], "output": "done"}`}
	}
	if text := s.solution; text != "" {
		s.solution = ""
		return modeltest.Reply{Text: text}
	}
	return modeltest.Reply{Text: `{"calls": [], "output": "settled"}`}
}

// giveAll gives each block to the program, as its shape says.
func (s *seedStory) giveAll() {
	counts := map[string]int{}
	for i, block := range s.blocks {
		name := fmt.Sprintf("block%d", i+1)
		shape := seedShape(block.value)
		s.t.Logf("line %d: %s", block.line, shape)
		counts[shape]++
		switch shape {
		case "messages":
			s.appendMessages(name, block)
		case "plan":
			s.runPlan(name, block, s.blocks[i+1:])
		case "fragment":
			s.holdFragment(name, block)
		case "solution":
			s.runSolution(name, block, s.blocks[i+1:])
		default:
			s.t.Errorf("line %d: there is no rule for this block:\n%s", block.line, block.text)
		}
	}
	if len(s.children) > 0 {
		s.t.Errorf("no block shows the contexts %v", s.children)
	}
	s.t.Logf("%d blocks: %v", len(s.blocks), counts)
}

// obelus runs the program in the project and returns what it prints to stdout.
func (s *seedStory) obelus(status int, stdin string, args ...string) string {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(Config{}, append([]string{"-C", s.dir}, args...), strings.NewReader(stdin), &stdout, &stderr); got != status {
		s.t.Fatalf("obelus %s: exit status %d, not %d\n%s%s\n%s", strings.Join(args, " "), got, status, &stdout, &stderr, stdin)
	}
	return stdout.String()
}

// appendMessages appends a block of messages to a context of its own. One that has what a call
// wrote must be the context after the newest plan, and one that begins with a system message that
// of the next delegate.
func (s *seedStory) appendMessages(name string, block seedBlock) {
	s.t.Helper()
	s.obelus(exitDone, block.text, "append", "-", "-c", name)
	items, isList := block.value.([]any)
	if !isList {
		items = []any{block.value}
	}
	written := slices.ContainsFunc(items, func(v any) bool { return v.(map[string]any)["_call"] != nil })
	first := items[0].(map[string]any)
	switch {
	case written:
		s.compare(block, name, s.ran)
		s.compareWritten(block, name, items)
		if seen := s.obelus(exitDone, "", "log", "--model", "--json", "-c", s.ran); strings.Contains(seen, "_call") || strings.Contains(seen, "_date") {
			s.t.Errorf("line %d: a model sees the call or the date: %s", block.line, seen)
		}
	case first["type"] == "system" && len(s.children) > 0:
		s.compare(block, name, s.children[0])
		s.children = s.children[1:]
		s.compareAsked(block, items[1:])
	default:
		s.messages = name
	}
}

// log returns the messages of a context without its plans, and without the fields that differ from
// context to context.
func (s *seedStory) log(context string) (messages []any) {
	s.t.Helper()
	for _, v := range records(s.t, s.obelus(exitDone, "", "log", "--json", "-c", context)) {
		message := v.(map[string]any)
		if message["type"] == "plan" {
			continue
		}
		for _, name := range []string{"seq", "context", "date", "_date", "call"} {
			delete(message, name)
		}
		messages = append(messages, message)
	}
	return messages
}

// compare holds that a context has the messages of a block, which was appended to another.
func (s *seedStory) compare(block seedBlock, appended, context string) {
	s.t.Helper()
	if context == "" {
		s.t.Fatalf("line %d: no plan has run before", block.line)
	}
	if diff := cmp.Diff(s.log(appended), s.log(context)); diff != "" {
		s.t.Errorf("line %d: (-block +context %s):\n%s", block.line, context, diff)
	}
}

// compareWritten holds that each message of a block is in the log of the newest plan with every field
// as the block writes it, dates aside, and that the appended block has the outcomes of its calls.
func (s *seedStory) compareWritten(block seedBlock, appended string, items []any) {
	s.t.Helper()
	messages := s.log(s.ran)
	for i, v := range items {
		message := v.(map[string]any)
		if call, ok := message["_call"].(map[string]any); ok {
			s.holdValues(block, appended, seedOutcomes[call["_tool"].(string)].values)
		}
		for name, want := range message {
			if got := messages[i].(map[string]any)[name]; name != "_date" && !cmp.Equal(got, want) {
				s.t.Errorf("message %d: %s is %v, not %v", i+1, name, got, want)
			}
		}
	}
}

// compareAsked holds that the model was asked once for a delegate with the texts of its messages,
// and of no other delegate's.
func (s *seedStory) compareAsked(block seedBlock, items []any) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	own := seedTexts(items)
	asked := slices.DeleteFunc(slices.Clone(s.asked), func(prompt string) bool {
		return slices.ContainsFunc(own, func(text string) bool { return !strings.Contains(prompt, text) })
	})
	if len(asked) != 1 {
		s.t.Fatalf("line %d: %d requests have %q", block.line, len(asked), own)
	}
	for _, other := range s.blocks {
		list, _ := other.value.([]any)
		if len(list) < 2 || other.line == block.line || list[0].(map[string]any)["type"] != "system" {
			continue
		}
		for _, text := range seedTexts(list[1:]) {
			if strings.Contains(asked[0], text) {
				s.t.Errorf("line %d: the model was shown %q too", block.line, text)
			}
		}
	}
}

// runPlan checks and runs a call, or a list with calls, in the context of the messages before it.
func (s *seedStory) runPlan(name string, block seedBlock, after []seedBlock) {
	s.t.Helper()
	file := "plans/" + name + ".json"
	write(s.t, filepath.Join(s.dir, file), block.text)
	calls := seedCalls(block.value)
	s.registerDelegates(calls, after)
	context := s.takeContext(name)
	for _, call := range calls {
		if message := seedOutcomes[call["_tool"].(string)].context; message != "" {
			context = name
			s.obelus(exitDone, message, "append", "-", "-c", context)
		}
	}
	s.check(file)
	waits := slices.IndexFunc(calls, func(call map[string]any) bool { return seedOutcomes[call["_tool"].(string)].waits != "" })
	if waits < 0 {
		s.obelus(exitDone, "", "run", file, "-c", context)
	} else {
		outcome := seedOutcomes[calls[waits]["_tool"].(string)]
		s.obelus(exitWaiting, "", "run", file, "-c", context)
		if calls := s.obelus(exitDone, "", "calls", "--json", "-c", context); !strings.Contains(calls, `"waiting_on":["`+outcome.waits+`"]`) {
			s.t.Errorf("line %d: no call waits for %s: %s", block.line, outcome.waits, calls)
		}
		s.obelus(exitDone, "", "resume", "-c", context, "-i", outcome.input)
	}
	s.ran = context
	s.holdOutcomes(block, calls)
}

// check holds that obelus check finds no error in a plan.
func (s *seedStory) check(file string) {
	s.t.Helper()
	for _, v := range records(s.t, s.obelus(exitDone, "", "check", "--json", file)) {
		if problem := v.(map[string]any); problem["severity"] == "error" {
			s.t.Errorf("%s: %v", file, problem)
		}
	}
}

// takeContext returns the context for a plan: that of the messages before it, once, else a new one.
func (s *seedStory) takeContext(otherwise string) string {
	context := s.messages
	s.messages = ""
	if context == "" {
		return otherwise
	}
	return context
}

// registerDelegates registers the delegates that calls name. Each is planned by the model, and has
// the system message that the next block of a delegate's context begins with.
func (s *seedStory) registerDelegates(calls []map[string]any, after []seedBlock) {
	s.t.Helper()
	system := ""
	for _, block := range slices.Backward(after) {
		if list, ok := block.value.([]any); ok {
			if first := list[0].(map[string]any); first["type"] == "system" {
				system = first["message"].(string)
			}
		}
	}
	for _, call := range calls {
		name, ok := call["_delegate"].(string)
		if !ok {
			continue
		}
		if system == "" {
			s.t.Fatalf("no block shows the context of the delegate %s", name)
		}
		s.mu.Lock()
		s.systems = append(s.systems, system)
		s.mu.Unlock()
		write(s.t, filepath.Join(s.dir, "activities", name+".lua"),
			fmt.Sprintf("Delegate.register(%q, { context = { Message.system(%q) } })", name, system))
	}
}

// holdOutcomes holds that the newest plan did what the text beside it says.
func (s *seedStory) holdOutcomes(block seedBlock, calls []map[string]any) {
	s.t.Helper()
	done := records(s.t, s.obelus(exitDone, "", "calls", "--json", "-c", s.ran))
	for i, call := range calls {
		tool := call["_tool"].(string)
		outcome, ok := seedOutcomes[tool]
		if !ok {
			s.t.Errorf("line %d: there is no outcome for %s", block.line, tool)
		}
		s.tools[tool] = true
		record := done[i].(map[string]any)
		if record["tool"] != tool || record["status"] != "done" {
			s.t.Errorf("line %d: call %d is %v", block.line, i+1, record)
		}
		if call["_delegate"] != nil {
			s.children = append(s.children, fmt.Sprintf("%s.%s", s.ran, record["call"]))
		}
		s.holdOutcome(block, outcome)
	}
}

func (s *seedStory) holdOutcome(block seedBlock, outcome seedOutcome) {
	s.t.Helper()
	s.holdValues(block, s.ran, outcome.values)
	if outcome.prints != "" {
		lines := records(s.t, s.obelus(exitDone, "", "logs", "--json", "-c", s.ran))
		if len(lines) != 1 || lines[0].(map[string]any)["text"] != outcome.prints {
			s.t.Errorf("line %d: printed %v, not %s", block.line, lines, outcome.prints)
		}
	}
	if outcome.scoped != "" {
		shown := records(s.t, s.obelus(exitDone, "", "log", "--model", "--scopes", outcome.scoped, "--json", "-c", s.ran))
		last := shown[len(shown)-1].(map[string]any)
		if last["kind"] != outcome.scoped || last["scoped"] != true || len(shown) < 2 {
			s.t.Errorf("line %d: the model is shown %v", block.line, shown)
		}
	}
}

func (s *seedStory) holdValues(block seedBlock, context string, values map[string]string) {
	s.t.Helper()
	for path, want := range values {
		status := exitDone
		if want == "" {
			status = exitFailed
		}
		if got := strings.TrimSpace(s.obelus(status, "", "get", path, "-c", context)); got != want {
			s.t.Errorf("line %d: %s is %s, not %s", block.line, path, got, want)
		}
	}
}

// runSolution has a model give a block as its plan, in the context of the messages before it. It
// is a plan file too.
func (s *seedStory) runSolution(name string, block seedBlock, after []seedBlock) {
	s.t.Helper()
	calls := seedCalls(block.value)
	s.registerDelegates(calls, after)
	solution := "plans/" + name + "-solution.json"
	write(s.t, filepath.Join(s.dir, solution), block.text)
	s.check(solution)
	offer := map[string]bool{}
	for _, call := range calls {
		offer[call["_tool"].(string)] = true
	}
	file := "plans/" + name + ".json"
	write(s.t, filepath.Join(s.dir, file), encoded(s.t, map[string]any{"offer": slices.Sorted(maps.Keys(offer))}))
	s.mu.Lock()
	s.solution = block.plain
	s.mu.Unlock()
	s.ran = s.takeContext(name)
	if got := s.obelus(exitDone, "", "run", file, "-c", s.ran); got != "\"settled\"\n" {
		s.t.Errorf("line %d: the run gives %s", block.line, got)
	}
	s.holdOutcomes(block, calls)
}

// holdFragment makes a block the properties of a tool: of one that a plan brings, in the text of
// the plan, and of one that is registered. Calls that the properties allow must do as they say, and
// others must be refused.
func (s *seedStory) holdFragment(name string, block seedBlock) {
	s.t.Helper()
	write(s.t, filepath.Join(s.dir, "activities/registered.lua"),
		fmt.Sprintf("Tool.register(\"registered\", { properties = json.decode([==[%s]==]) })", store.PlainJSON([]byte(block.text))))
	for property, v := range block.value.(map[string]any) {
		schema := v.(map[string]any)
		for i, c := range seedCases(property, schema) {
			for _, tool := range []string{"brought", "registered"} {
				call := map[string]any{"_tool": tool, "_outputPath": "†seen", "_scopes": []any{"state", "input"}}
				delete(call, property)
				if c.given != nil {
					call[property] = c.given
				}
				context := fmt.Sprintf("%s-%s-%s-%d", name, property, tool, i+1)
				s.holdCall(block, context, property, call, c)
			}
		}
		if len(seedCases(property, schema)) == 0 {
			s.t.Errorf("line %d: there is no rule for %s", block.line, property)
		}
	}
}

// holdCall holds that a call of the tool that has the block as its properties is refused for the
// property, or gives what its scopes grant and writes it to the path of the case.
func (s *seedStory) holdCall(block seedBlock, context, property string, call map[string]any, c seedCase) {
	s.t.Helper()
	tools := ""
	if call["_tool"] == "brought" {
		tools = `"tools": {"brought": {"properties": ` + "\n" + block.text + "}},\n"
	}
	file := "plans/" + context + ".json"
	write(s.t, filepath.Join(s.dir, file),
		"{"+tools+`"context": [{"type": "state", "a": 1}, {"type": "input", "b": 2}], "calls": [`+encoded(s.t, call)+"]}")
	if c.granted == "" {
		problems := records(s.t, s.obelus(exitUsage, "", "check", "--json", file))
		if !slices.ContainsFunc(problems, func(v any) bool {
			problem := v.(map[string]any)
			return problem["severity"] == "error" && strings.HasPrefix(problem["message"].(string), property)
		}) {
			s.t.Errorf("line %d: %s as %v: %v", block.line, property, c.given, problems)
		}
		return
	}
	s.check(file)
	s.obelus(exitDone, "", "run", file, "-c", context)
	if got := s.obelus(exitDone, "", "get", c.path, "-c", context); got != c.granted+"\n" {
		s.t.Errorf("line %d: %v gives %s, not %s", block.line, c.given, got, c.granted)
	}
}
