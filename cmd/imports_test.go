package cmd

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayImport is the line of packages: what each may import of this module and
// of others. A package that is not listed may not exist. "obelus/engine/..." is the engine with
// its packages.
var mayImport = map[string][]string{
	"obelus/store":                     {},
	"obelus/store/memory":              {"obelus/store"},
	"obelus/store/storetest":           {"obelus/store", "obelus/store/memory", "github.com/google/go-cmp/cmp", "github.com/google/go-cmp/cmp/cmpopts"},
	"obelus/store/suites":              {},
	"obelus/store/sqlite":              {"obelus/store", "github.com/fsnotify/fsnotify", "github.com/mattn/go-sqlite3", "golang.org/x/sys/unix"},
	"obelus/engine/spell":              {},
	"obelus/engine/duration":           {},
	"obelus/engine/lazyregexp":         {},
	"obelus/engine/numeral":            {},
	"obelus/engine/strftime":           {},
	"obelus/engine/visible":            {},
	"obelus/engine/internal/bounds":    {},
	"obelus/engine/internal/crash":     {},
	"obelus/engine/internal/jsonvalue": {"obelus/store"},
	"obelus/engine/internal/logerr":    {},
	"obelus/engine/internal/phrase":    {"obelus/store"},
	"obelus/engine/internal/regex":     {},
	"obelus/engine/expr": {"obelus/engine/lazyregexp", "obelus/store", "obelus/engine/spell", "obelus/engine/strftime", "obelus/engine/internal/jsonvalue", "obelus/engine/internal/phrase",
		"obelus/engine/internal/regex", "github.com/expr-lang/expr"},
	"obelus/engine/schema": {"obelus/engine/lazyregexp", "obelus/store", "obelus/engine/spell", "obelus/engine/internal/crash", "obelus/engine/internal/jsonvalue", "obelus/engine/internal/phrase",
		"obelus/engine/internal/regex", "github.com/santhosh-tekuri/jsonschema", "github.com/google/jsonschema-go", "github.com/dlclark/regexp2",
		"golang.org/x/text/language", "golang.org/x/text/message"},
	"obelus/engine/plan": {"obelus/store", "obelus/engine/duration", "obelus/engine/expr", "obelus/engine/schema", "obelus/engine/spell",
		"obelus/engine/internal/bounds", "obelus/engine/internal/crash", "obelus/engine/internal/jsonvalue", "obelus/engine/internal/phrase"},
	"obelus/engine/journal":             {"obelus/store", "obelus/engine/expr", "obelus/engine/plan", "obelus/engine/schema", "obelus/engine/internal/jsonvalue"},
	"obelus/engine/journal/journaltest": {"obelus/store", "obelus/engine/journal"},
	"obelus/engine/history": {"obelus/store", "obelus/engine/duration", "obelus/engine/expr", "obelus/engine/journal", "obelus/engine/plan", "obelus/engine/spell",
		"obelus/engine/internal/jsonvalue"},
	"obelus/engine/internal/capture":  {"obelus/engine/plan"},
	"obelus/engine/internal/declared": {"obelus/store", "obelus/engine/plan", "obelus/engine/schema", "obelus/engine/internal/jsonvalue", "obelus/engine/internal/logerr", "obelus/engine/internal/validate"},
	"obelus/engine/internal/failure":  {"obelus/store", "obelus/engine/plan"},
	"obelus/engine/internal/lease":    {"obelus/store"},
	"obelus/engine/internal/output":   {"obelus/store", "obelus/engine/expr", "obelus/engine/schema", "obelus/engine/plan", "obelus/engine/journal", "obelus/engine/internal/capture", "obelus/engine/internal/sched"},
	"obelus/engine/internal/proposal": {"obelus/store", "obelus/engine/journal", "obelus/engine/plan", "obelus/engine/internal/logerr", "obelus/engine/internal/output"},
	"obelus/engine/internal/reading":  {"obelus/store", "obelus/engine/plan", "obelus/engine/internal/sched"},
	"obelus/engine/internal/sched":    {"obelus/store", "obelus/engine/expr", "obelus/engine/journal", "obelus/engine/plan"},
	"obelus/engine/internal/validate": {"obelus/store", "obelus/engine/plan", "obelus/engine/schema", "obelus/engine/internal/jsonvalue", "obelus/engine/internal/logerr"},
	"obelus/engine": {"obelus/store", "obelus/engine/expr", "obelus/engine/schema", "obelus/engine/plan", "obelus/engine/journal", "obelus/engine/history",
		"obelus/engine/spell", "obelus/engine/internal/bounds", "obelus/engine/internal/capture", "obelus/engine/internal/crash", "obelus/engine/internal/declared", "obelus/engine/internal/failure",
		"obelus/engine/internal/jsonvalue", "obelus/engine/internal/lease", "obelus/engine/internal/logerr", "obelus/engine/internal/output", "obelus/engine/internal/phrase", "obelus/engine/internal/proposal", "obelus/engine/internal/reading", "obelus/engine/internal/sched", "obelus/engine/internal/validate"},
	"obelus/engine/replay": {"obelus/store", "obelus/engine", "obelus/engine/expr", "obelus/engine/journal", "obelus/engine/plan", "obelus/engine/internal/capture", "obelus/engine/internal/declared",
		"obelus/engine/internal/failure", "obelus/engine/internal/jsonvalue", "obelus/engine/internal/logerr", "obelus/engine/internal/output", "obelus/engine/internal/proposal", "obelus/engine/internal/reading", "obelus/engine/internal/sched"},
	"obelus/luastd":                    {"obelus/engine/lazyregexp", "obelus/engine/duration", "obelus/engine/strftime", "obelus/luastd/internal/formats", "github.com/yuin/gopher-lua", "github.com/google/uuid", "go.yaml.in/yaml"},
	"obelus/luastd/internal/formats":   {},
	"obelus/luastd/internal/oracle":    {},
	"obelus/scripts":                   {},
	"obelus/host":                      {"obelus/engine/lazyregexp", "obelus/engine", "obelus/engine/expr", "obelus/engine/plan", "obelus/engine/schema", "obelus/engine/spell", "obelus/host/internal/budget", "obelus/host/internal/codec", "obelus/host/internal/limits", "obelus/host/internal/logkeeper", "obelus/host/internal/luac", "obelus/host/internal/luacall", "obelus/host/internal/luaerr", "obelus/host/internal/luatypes", "obelus/host/internal/projectfs", "obelus/host/internal/sandbox", "obelus/host/internal/setting", "obelus/host/internal/worker", "obelus/host/hook", "obelus/host/keep", "obelus/host/model", "obelus/host/schedule", "obelus/host/trace", "obelus/luastd", "obelus/store", "github.com/fsnotify/fsnotify", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/annotations": {"obelus/engine/lazyregexp", "obelus/host/internal/explain", "obelus/host/internal/luac", "obelus/host/internal/sandbox", "obelus/scripts", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/budget":      {"obelus/host/internal/limits", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/codec":       {"obelus/host/internal/budget", "obelus/host/internal/limits", "obelus/host/internal/luatext", "obelus/luastd", "obelus/store", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/explain":     {"obelus/engine/lazyregexp", "obelus/engine/spell", "obelus/host/internal/luac", "obelus/host/internal/luatext", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/inspect":     {"obelus/engine/lazyregexp", "obelus/host/internal/limits", "obelus/host/internal/luatext", "obelus/host/internal/sandbox", "obelus/luastd", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/limits":      {},
	"obelus/host/internal/logkeeper":   {"obelus/engine/plan", "obelus/store"},
	"obelus/host/internal/luac":        {"obelus/engine/lazyregexp", "obelus/host/internal/luaerr", "obelus/host/internal/luatext", "obelus/store", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/luacall":     {"obelus/engine/expr", "obelus/engine/plan", "obelus/engine/schema", "obelus/host/internal/codec", "obelus/host/internal/sandbox", "obelus/store", "github.com/yuin/gopher-lua"},
	"obelus/host/internal/luaerr":      {"obelus/engine/spell", "obelus/store"},
	"obelus/host/internal/luapattern":  {"github.com/yuin/gopher-lua"},
	"obelus/host/internal/luatext":     {"github.com/yuin/gopher-lua"},
	"obelus/host/internal/luatypes":    {"obelus/engine/plan", "obelus/host/internal/codec", "obelus/host/internal/luatext"},
	"obelus/host/internal/projectfs":   {"obelus/host/internal/limits", "obelus/host/internal/luaerr"},
	"obelus/host/internal/sandbox":     {"obelus/engine/spell", "obelus/engine/strftime", "obelus/host/internal/budget", "obelus/host/internal/codec", "obelus/host/internal/explain", "obelus/host/internal/limits", "obelus/host/internal/luac", "obelus/host/internal/luaerr", "obelus/host/internal/luapattern", "obelus/host/internal/luatext", "obelus/luastd", "obelus/store", "github.com/yuin/gopher-lua", "layeh.com/gopher-luar"},
	"obelus/host/internal/setting":     {"obelus/engine/lazyregexp", "obelus/engine/duration", "obelus/engine/spell", "obelus/host/internal/luaerr", "obelus/store"},
	"obelus/host/internal/worker":      {"obelus/engine/plan", "obelus/host/internal/limits", "obelus/host/internal/luaerr", "obelus/host/internal/sandbox", "obelus/luastd", "obelus/store"},
	"obelus/host/luatest":              {"obelus/engine/lazyregexp", "obelus/engine", "obelus/engine/journal", "obelus/engine/plan", "obelus/host", "obelus/host/internal/inspect", "obelus/host/internal/limits", "obelus/host/internal/luacall", "obelus/host/internal/luaerr", "obelus/host/internal/luatext", "obelus/host/internal/projectfs", "obelus/host/internal/sandbox", "obelus/host/model", "obelus/luastd", "obelus/store", "obelus/store/memory", "github.com/yuin/gopher-lua"},
	"obelus/host/model":                {"obelus/engine/...", "obelus/host/model/fit", "obelus/store", "github.com/aymanbagabas/go-udiff"},
	"obelus/host/model/fit":            {"obelus/engine/lazyregexp", "obelus/engine/schema", "obelus/store"},
	"obelus/host/model/modeltest":      {"obelus/store/suites", "github.com/santhosh-tekuri/jsonschema"},
	"obelus/host/repl":                 {"obelus/engine/lazyregexp", "obelus/engine/plan", "obelus/host", "obelus/host/internal/inspect", "obelus/host/internal/limits", "obelus/host/internal/luac", "obelus/host/internal/luacall", "obelus/host/internal/luaerr", "obelus/host/internal/luatext", "obelus/host/internal/sandbox", "github.com/yuin/gopher-lua"},
	"obelus/host/hook":                 {"obelus/engine/lazyregexp", "obelus/host/once", "obelus/store"},
	"obelus/host/keep":                 {"obelus/engine/journal", "obelus/store"},
	"obelus/host/once":                 {"obelus/engine", "obelus/engine/journal", "obelus/engine/plan", "obelus/store"},
	"obelus/host/prompts":              {"obelus/engine/...", "obelus/host", "obelus/host/model", "obelus/store", "obelus/store/memory"},
	"obelus/host/schedule":             {"obelus/engine/lazyregexp", "obelus/engine/spell", "github.com/robfig/cron"},
	"obelus/host/schedule/ledger":      {"obelus/engine/journal", "obelus/host/once", "obelus/host/schedule", "obelus/store"},
	"obelus/host/supervise":            {"obelus/engine/...", "obelus/host", "obelus/host/keep", "obelus/host/once", "obelus/host/schedule/...", "obelus/store"},
	"obelus/host/trace":                {"obelus/engine/journal", "obelus/engine/plan", "obelus/store"},
	"obelus/host/web/internal/api":     {"obelus/engine/schema", "obelus/engine/visible"},
	"obelus/host/web/internal/layers":  {},
	"obelus/host/web/internal/mount":   {},
	"obelus/host/ops":                  {"obelus/engine", "obelus/engine/history", "obelus/engine/journal", "obelus/engine/plan", "obelus/host", "obelus/host/prompts", "obelus/store"},
	"obelus/host/web/page":             {"obelus/engine/...", "obelus/host", "obelus/host/schedule/ledger", "obelus/host/web/internal/layers", "obelus/host/ops", "obelus/host/web/internal/mount", "obelus/store", "github.com/aymanbagabas/go-udiff"},
	"obelus/host/web":                  {"obelus/engine/...", "obelus/host", "obelus/host/hook", "obelus/host/internal/setting", "obelus/host/once", "obelus/host/prompts", "obelus/host/schedule", "obelus/host/supervise", "obelus/host/trace", "obelus/host/web/internal/api", "obelus/host/ops", "obelus/host/web/internal/mount", "obelus/host/web/page", "obelus/store", "github.com/oklog/ulid", "github.com/VictoriaMetrics/metrics", "golang.org/x/sync/semaphore"},
	"obelus/examples/embed":            {"obelus/cmd", "obelus/engine/...", "obelus/host", "obelus/store", "obelus/store/sqlite"},
	// The loop that it times Obelus beside does without all of ours.
	"obelus/examples/bench": {"obelus/engine/...", "obelus/host", "obelus/host/web", "obelus/store", "obelus/store/sqlite",
		"github.com/mattn/go-sqlite3", "github.com/yuin/gopher-lua", "golang.org/x/sync/errgroup"},
	"obelus/examples/nightly/shop": {},
	"obelus/cmd/obelus":            {"obelus/cmd"},
	"obelus/cmd": {"obelus/cmd/internal/answers", "obelus/cmd/internal/cli", "obelus/cmd/internal/exit", "obelus/cmd/internal/human", "obelus/cmd/internal/permissions",
		"obelus/cmd/internal/prompt", "obelus/cmd/internal/prune", "obelus/cmd/internal/roots", "obelus/cmd/internal/scaffold", "obelus/cmd/internal/suspend", "obelus/cmd/internal/term",
		"obelus/cmd/internal/testreport", "obelus/cmd/internal/topics", "obelus/cmd/internal/triggers", "obelus/cmd/internal/usage", "obelus/cmd/internal/view",
		"obelus/engine/...", "obelus/host", "obelus/host/luatest", "obelus/host/model", "obelus/host/model/fit", "obelus/host/once", "obelus/host/ops", "obelus/host/prompts", "obelus/host/schedule/...", "obelus/host/trace", "obelus/host/web", "obelus/luastd", "obelus/store/memory", "obelus/store", "obelus/store/sqlite",
		"github.com/oklog/ulid", "github.com/spf13/cobra"},
	"obelus/cmd/internal/answers":     {"obelus/cmd/internal/human", "obelus/cmd/internal/term", "obelus/store"},
	"obelus/cmd/internal/cli":         {"obelus/cmd/internal/exit", "obelus/cmd/internal/usage", "obelus/engine/duration", "obelus/engine/history", "obelus/engine/plan", "obelus/engine/spell", "obelus/host", "obelus/store"},
	"obelus/cmd/internal/exit":        {"obelus/store"},
	"obelus/cmd/internal/human":       {"obelus/engine/lazyregexp", "obelus/engine/numeral", "obelus/engine/visible", "obelus/store", "github.com/mattn/go-runewidth"},
	"obelus/cmd/internal/permissions": {"obelus/cmd/internal/exit", "obelus/cmd/internal/term", "obelus/engine/plan", "obelus/host", "obelus/luastd", "github.com/spf13/cobra"},
	"obelus/cmd/internal/prompt":      {"obelus/cmd/internal/cli", "obelus/cmd/internal/exit", "obelus/cmd/internal/term", "obelus/engine/...", "obelus/host", "obelus/host/repl", "obelus/store"},
	"obelus/cmd/internal/prune":       {"obelus/cmd/internal/exit", "obelus/engine/...", "obelus/store"},
	"obelus/cmd/internal/roots":       {"obelus/cmd/internal/exit", "obelus/engine/...", "obelus/store"},
	"obelus/cmd/internal/scaffold":    {"obelus/cmd/internal/cli", "obelus/host", "obelus/scripts"},
	"obelus/cmd/internal/suspend":     {"obelus/store/sqlite", "golang.org/x/sys/unix"},
	"obelus/cmd/internal/term": {"obelus/cmd/internal/cli", "obelus/cmd/internal/exit", "obelus/cmd/internal/human", "obelus/cmd/internal/view",
		"obelus/engine/...", "obelus/luastd", "obelus/store", "github.com/peterh/liner", "golang.org/x/sys/unix", "golang.org/x/term"},
	"obelus/cmd/internal/termtest":   {"golang.org/x/sys/unix"},
	"obelus/cmd/internal/testreport": {"obelus/cmd/internal/exit", "obelus/cmd/internal/human", "obelus/cmd/internal/term", "obelus/cmd/internal/usage", "obelus/host/luatest", "github.com/aymanbagabas/go-udiff"},
	"obelus/cmd/internal/topics":     {"obelus/engine/lazyregexp", "obelus/host", "obelus/host/web", "obelus/scripts", "github.com/spf13/cobra"},
	"obelus/cmd/internal/triggers":   {"obelus/cmd/internal/human", "obelus/cmd/internal/term", "obelus/engine/...", "obelus/host", "obelus/host/schedule/...", "obelus/store", "obelus/store/memory"},
	"obelus/cmd/internal/usage":      {"obelus/cmd/internal/exit", "obelus/engine/...", "obelus/store", "github.com/spf13/cobra", "github.com/spf13/pflag"},
	"obelus/cmd/internal/view":       {"obelus/cmd/internal/human", "obelus/engine/...", "obelus/store"},
}

// owners are the standard packages that belong to few of ours. A package below cmd/internal counts
// as cmd.
var owners = map[string][]string{
	"database/sql": {"obelus/examples/bench"},
	"net":          {"obelus/examples/nightly/shop", "obelus/cmd", "obelus/luastd", "obelus/host/web", "obelus/examples/bench"},
	"net/http":     {"obelus/examples/nightly/shop", "obelus/luastd", "obelus/host/model", "obelus/host/model/modeltest", "obelus/host/trace", "obelus/host/web", "obelus/host/web/internal/api", "obelus/host/web/internal/mount", "obelus/host/web/page", "obelus/examples/bench"},
	"os":           {"obelus/cmd", "obelus/cmd/obelus", "obelus/host", "obelus/host/internal/annotations", "obelus/host/internal/budget", "obelus/host/internal/worker", "obelus/host/model", "obelus/host/model/modeltest", "obelus/host/trace", "obelus/store/sqlite", "obelus/store/suites", "obelus/luastd", "obelus/examples/embed", "obelus/examples/bench"},
	"os/exec":      {"obelus/host/internal/worker", "obelus/luastd/internal/oracle", "obelus/examples/bench"},
	"os/signal":    {"obelus/cmd", "obelus/host/internal/worker"},
	"os/user":      {"obelus/cmd"},
}

// owner returns the package that the owners list for a package.
func owner(path string) string {
	if strings.HasPrefix(path, "obelus/cmd/internal/") {
		return "obelus/cmd"
	}
	return path
}

// TestImports_AreInContributing holds that the table of packages in CONTRIBUTING.md names each one,
// or the tree that it is in.
func TestImports_AreInContributing(t *testing.T) {
	text, err := os.ReadFile("../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| package | holds |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	listed := regexp.MustCompile("`([a-z/…]+)`").FindAllStringSubmatch(table, -1)
	for path := range mayImport {
		name := strings.TrimPrefix(path, "obelus/")
		if !slices.ContainsFunc(listed, func(match []string) bool {
			tree, ok := strings.CutSuffix(match[1], "…")
			return match[1] == name || ok && strings.HasPrefix(name, tree)
		}) {
			t.Errorf("CONTRIBUTING.md does not list %s", name)
		}
	}
}

// TestImports holds every package to the line, tests aside.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "obelus/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		allowed, ok := mayImport[fields[0]]
		if !ok {
			t.Errorf("%s is not in the line of packages", fields[0])
		}
		for _, imported := range fields[1:] {
			first, _, _ := strings.Cut(imported, "/")
			ours := first == "obelus" || strings.Contains(first, ".")
			below := func(name string) bool {
				if tree, ok := strings.CutSuffix(name, "/..."); ok {
					return imported == tree || strings.HasPrefix(imported, tree+"/")
				}
				return imported == name || first != "obelus" && strings.HasPrefix(imported, name+"/")
			}
			if ours && !slices.ContainsFunc(allowed, below) {
				t.Errorf("%s must not import %s", fields[0], imported)
			}
			if list, ok := owners[imported]; ok && !slices.Contains(list, owner(fields[0])) {
				t.Errorf("%s must not import %s: it belongs to %v", fields[0], imported, list)
			}
		}
	}
}
