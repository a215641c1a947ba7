package model

import "fmt"

// This file stands in for the fitting of schemas, and goes once that is here.

// Dialect is what a provider takes of JSON Schema.
type Dialect struct {
	Name     string
	InPrompt bool // the schema is shown in the prompt as well
	MaxSize  int  // bytes of a schema in its exact form; 0 for no limit

	RootObject bool
}

// Fitted is a schema as a dialect takes it.
type Fitted struct {
	Schema any
	Undo   func(any) (any, error) // of a value that fits Schema, the value meant
	Notes  []string
	Size   int // bytes
	Excess string
}

// DialectOf returns a dialect by its name.
func DialectOf(name string) (Dialect, bool) {
	size, ok := map[string]int{"openai": 120000, "anthropic": 8 << 10, "gemini": 30 << 10, "llama": 12 << 10, "ollama": 12 << 10, "plain": 30 << 10}[name]
	return Dialect{Name: name, InPrompt: name == "llama" || name == "ollama", MaxSize: size}, ok
}

// Dialects returns the names of the dialects that are known, sorted.
func Dialects() []string {
	return []string{"anthropic", "gemini", "llama", "ollama", "openai", "plain"}
}

// Fit returns the schema as it is.
func Fit(schema any, d Dialect) (Fitted, error) {
	text, _ := encode(schema)
	f := Fitted{Schema: schema, Undo: func(v any) (any, error) { return v, nil }, Size: len(text)}
	if d.MaxSize > 0 && len(text) > d.MaxSize {
		f.Excess = fmt.Sprintf("the schema has %d bytes, and %s takes %d", f.Size, d.Name, d.MaxSize)
	}
	return f, nil
}

// SchemaBlock is the block of a prompt that shows a schema.
func SchemaBlock(schema any) string {
	text, _ := encode(schema)
	return "## Schema of the answer\nAnswer with JSON that fits this JSON Schema, and with nothing else.\n" + string(text)
}
