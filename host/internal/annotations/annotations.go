// Package annotations compares the annotations of scripts for editors with the functions that
// scripts have. It is for tests.
package annotations

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"obelus/engine/lazyregexp"
	"obelus/host/internal/explain"
	"obelus/host/internal/luac"
	"obelus/host/internal/sandbox"
	"obelus/scripts"
)

// annotated has the declarations of a file of annotations: the parameters of each function by its
// full name, and the fields of each class.
type annotated struct {
	Functions map[string][]string
	values    []string // assigned ones
	Fields    map[string][]string
}

var (
	paramTag = lazyregexp.New(`^---@param (\S+?)\??\s`)
	classTag = lazyregexp.New(`^---@class ([\w.]+)`)
	fieldTag = lazyregexp.New(`^---@field (\w+)\??\s`)
)

// Read returns the declarations of a file of annotations. It is an error of the test if a
// function's tags differ from its parameters.
func Read(t *testing.T, file string) annotated {
	t.Helper()
	source, err := fs.ReadFile(scripts.Types(), file)
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := luac.ParseChunk(file, source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := luac.Compile(file, source, sandbox.Functions); err != nil {
		t.Error(err)
	}
	lines := strings.Split(string(source), "\n")
	a := annotated{Functions: map[string][]string{}, Fields: map[string][]string{}}
	for _, statement := range chunk {
		switch st := statement.(type) {
		case *ast.FuncDefStmt:
			name := explain.ExprText(st.Name.Func)
			if st.Name.Func == nil {
				name = explain.ExprText(st.Name.Receiver) + ":" + st.Name.Method
			}
			names := st.Func.ParList.Names
			a.Functions[name] = names
			if tags := paramsAbove(lines, st.Line()); !slices.Equal(tags, names) {
				t.Errorf("%s: %s has the parameters %v and the tags %v", file, name, names, tags)
			}
		case *ast.AssignStmt:
			a.values = append(a.values, explain.ExprText(st.Lhs[0]))
		}
	}
	class := ""
	for _, line := range lines {
		if m := classTag().FindStringSubmatch(line); m != nil {
			class = m[1]
		} else if m := fieldTag().FindStringSubmatch(line); m != nil {
			a.Fields[class] = append(a.Fields[class], m[1])
		}
	}
	return a
}

// paramsAbove returns the tags of parameters above a line, from 1.
func paramsAbove(lines []string, line int) (names []string) {
	for i := line - 2; i >= 0 && strings.HasPrefix(lines[i], "---"); i-- {
		if m := paramTag().FindStringSubmatch(lines[i]); m != nil {
			names = append(names, m[1])
		}
	}
	slices.Reverse(names)
	return names
}

// signature matches the comment that is a function's signature.
var signature = lazyregexp.New(`(?m)^// ((?:\w+[.:])?)(\w+(?:\|\w+)*)(?:\(([^)\n]*)\)|(\{)[^}\n]*\})`)

// Signatures returns the parameters of each function of Go files as its comment names them. A table
// that the comment spells out has no name there: "".
func Signatures(t *testing.T, patterns ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range signature().FindAllStringSubmatch(string(text), -1) {
				for name := range strings.SplitSeq(m[2], "|") {
					if params := parameters(m[3]); m[4] == "" {
						found[m[1]+name] = params
					} else {
						found[m[1]+name] = []string{""}
					}
				}
			}
		}
	}
	return found
}

var spelledOut = lazyregexp.New(`\{.*\}`)

func parameters(text string) (names []string) {
	if text == "" {
		return nil
	}
	text = spelledOut().ReplaceAllString(text, "")
	for name := range strings.SplitSeq(strings.NewReplacer("[", "", "]", "").Replace(text), ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

func sameParameters(want, got []string) bool {
	return slices.EqualFunc(want, got, func(want, got string) bool { return want == "" || want == got })
}

// CheckTable compares a table of the sandbox with its annotations.
func (a annotated) CheckTable(t *testing.T, name string, fields []sandbox.Field, all map[string][]string) {
	t.Helper()
	var want []string
	for _, f := range fields {
		full := name + "." + f.Name
		if _, ok := f.Value.(*lua.LFunction); !ok {
			if !slices.Contains(a.values, full) {
				t.Errorf("%s is not annotated", full)
			}
			continue
		}
		want = append(want, full)
		params, ok := a.Functions[full]
		documented, known := all[full]
		switch {
		case !ok:
			t.Errorf("%s is not annotated", full)
		case !known:
			t.Errorf("%s has no comment with its signature", full)
		case !sameParameters(documented, params):
			t.Errorf("%s is annotated with the parameters %v, its comment has %v", full, params, documented)
		}
	}
	for _, full := range slices.Sorted(maps.Keys(a.Functions)) {
		if strings.HasPrefix(full, name+".") && !slices.Contains(want, full) {
			t.Errorf("%s is annotated and does not exist", full)
		}
	}
}

// Globals returns the values and the functions that are annotated under a name without dots.
func (a annotated) Globals() []string {
	names := slices.Clone(a.values)
	for name := range a.Functions {
		if !strings.ContainsAny(name, ".:") {
			names = append(names, name)
		}
	}
	return names
}
