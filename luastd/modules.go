package luastd

import (
	"slices"
	"strings"
)

// Modules lists all modules. It is sorted by name, since [Find] searches it by halves, and must not
// be changed.
var Modules = []Module{
	{Name: "base64", Funcs: base64Funcs},
	{Name: "csv", Funcs: csvFuncs},
	{Name: "env", Funcs: envFuncs},
	{Name: "fs", Funcs: fsFuncs},
	{Name: "hash", Funcs: hashFuncs},
	{Name: "http", Funcs: httpFuncs},
	{Name: "json", Funcs: jsonFuncs, Values: []Value{{"null", Null}}},
	{Name: "log", Funcs: logFuncs},
	{Name: "model", Funcs: modelFuncs},
	{Name: "random", Funcs: randomFuncs},
	{Name: "re", Funcs: reFuncs},
	{Name: "str", Funcs: strFuncs},
	{Name: "template", Funcs: templateFuncs},
	{Name: "time", Funcs: timeFuncs},
	{Name: "url", Funcs: urlFuncs},
	{Name: "uuid", Funcs: uuidFuncs},
	{Name: "yaml", Funcs: yamlFuncs},
}

// Find returns the module of a name, and false if there is none.
func Find(name string) (Module, bool) {
	i, ok := slices.BinarySearchFunc(Modules, name, func(m Module, name string) int { return strings.Compare(m.Name, name) })
	if !ok {
		return Module{}, false
	}
	return Modules[i], true
}
