package modeltest

import (
	"bytes"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/store/suites"
)

// HoldToOpenAI checks each request and each answer over the OpenAI wire against the schemas that
// OpenAI has published, and fails the test about those that do not fit. It skips the test where the
// schemas are not: openai.schemas.json, see package suites.
func (s *Server) HoldToOpenAI() {
	s.t.Helper()
	text, err := os.ReadFile(suites.File(s.t, "openai.schemas.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	takeNull(document)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openai.json", document); err != nil {
		s.t.Fatal(err)
	}
	compile := func(name string) func(text []byte) error {
		schema, err := compiler.Compile("openai.json#/components/schemas/" + name)
		if err != nil {
			s.t.Fatal(err)
		}
		return func(text []byte) error {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				return err
			}
			return schema.Validate(v)
		}
	}
	request, whole, event := compile("CreateChatCompletionRequest"), compile("CreateChatCompletionResponse"), compile("CreateChatCompletionStreamResponse")
	s.Check = func(r *Request) error {
		if r.Wire != "openai" {
			return nil
		}
		return request(r.Text)
	}
	s.CheckSent = func(body []byte, isEvent bool) error {
		if bytes.HasPrefix(body, []byte(`{"error":`)) {
			return nil
		}
		if isEvent {
			return event(body)
		}
		return whole(body)
	}
}

// takeNull adds null to the types of schemas that say nullable, which is a word of an older OpenAPI
// and none of JSON Schema.
func takeNull(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, inner := range schema {
			takeNull(inner)
		}
	case map[string]any:
		for _, inner := range schema {
			takeNull(inner)
		}
		if schema["nullable"] != true {
			return
		}
		if kind, ok := schema["type"].(string); ok {
			schema["type"] = []any{kind, "null"}
		}
		if values, ok := schema["enum"].([]any); ok {
			schema["enum"] = append(values, nil)
		}
	}
}
