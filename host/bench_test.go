package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"testing"
	"testing/fstest"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// sized makes an array of objects of about size bytes of JSON.
func sized(size int) (any, int) {
	list := []any{}
	for n := 0; n < size; n += 75 {
		list = append(list, map[string]any{"id": "order-" + fmt.Sprint(len(list)), "total": json.Number(strconv.FormatFloat(float64(n)/4, 'f', -1, 64)), "open": true, "lines": []any{"a", "b"}})
	}
	return list, len(store.EncodeJSON(list))
}

func BenchmarkCodec(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		v, bytes := sized(size)
		for _, way := range []struct {
			name string
			do   func(s *session) error
		}{
			{"whole", func(s *session) error { return touch(s.State, s.ToLua(v)) }},
			{"back", nil},
			{"untouched", func(s *session) error { _, err := s.FromLua(s.ToLua(v), "v"); return err }},
		} {
			b.Run(fmt.Sprintf("%dKB/%s", size>>10, way.name), func(b *testing.B) {
				s := bareSession()
				s.begin(context.Background(), 1<<40, &sandbox.Script{}, nil)
				do := way.do
				if do == nil {
					t := s.ToLua(v)
					if err := touch(s.State, t); err != nil {
						b.Fatal(err)
					}
					do = func(s *session) error { _, err := s.FromLua(t, "v"); return err }
				}
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				for b.Loop() {
					if err := do(s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// touch fills every table of v.
func touch(s *sandbox.State, v lua.LValue) error {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil
	}
	s.Fill(t)
	for key, e := t.Next(lua.LNil); key != lua.LNil; key, e = t.Next(key) {
		if err := touch(s, e); err != nil {
			return err
		}
	}
	return nil
}

// fifty is a project of fifty files of activities.
func fifty() fstest.MapFS {
	files := map[string]string{"obelus.lua": `return {}`}
	for i := range 50 {
		files[fmt.Sprintf("activities/a%d.lua", i)] = fmt.Sprintf(`
			Tool.register("t%d", { properties = { x = { type = "string" } }, required = { "x" } })
			Activity.register("t%d", { timeout = "5s" }, function(call)
			  local total = 0
			  for _, n in ipairs(call.list or {}) do total = total + n end
			  return { total = total }
			end)`, i, i)
	}
	return project(files).(fstest.MapFS)
}

func BenchmarkLoad(b *testing.B) {
	var files fs.FS = fifty()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(Config{FS: files}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad_Layers loads a file that registers a hundred tools and delegates.
func BenchmarkLoad_Layers(b *testing.B) {
	files := project(map[string]string{"activities/a.lua": layers()})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(Config{FS: files}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReload changes one of fifty files, and loads what has changed.
func BenchmarkReload(b *testing.B) {
	files := fifty()
	h, err := Open(Config{FS: files})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		files["activities/a7.lua"] = &fstest.MapFile{Data: fmt.Appendf(nil, `Activity.register("t7", function() return %d end)`, i)}
		if r := h.Reload(); r.Err != nil || len(r.Changed) != 1 {
			b.Fatal(r)
		}
	}
}

func BenchmarkFailure(b *testing.B) {
	for name, body := range map[string]string{"returned": `return nil, "no"`, "raised": `error("no")`} {
		b.Run(name, func(b *testing.B) {
			g := one(b, body)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(g, "a", plan.Invocation{}); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}
