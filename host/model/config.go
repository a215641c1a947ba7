package model

import "time"

// Config is one model of the settings: its address, the parameters of its requests, and its limits.
// The zero of a field stands for its default.
type Config struct {
	Name     string // in the settings
	Provider string // openai, anthropic, gemini, ollama, vllm, llama, openrouter, azure; else URL is set
	Model    string // as the provider calls it
	URL      string // of the API, such as http://127.0.0.1:11434/v1
	Key      string // name of the environment variable with the key; empty for none
	Headers  []Header
	Wire     string // "openai" or "anthropic"
	Dialect  string // of JSON Schema: openai, anthropic, gemini, llama, ollama, plain
	Mode     string // auto, schema, tools, json, text
	Strict   bool   // a lower mode is an error

	Params
	Think     bool           // answers have a field "thinking" first
	NoReasons bool           // calls of plans have no _reasoningForCall
	Extra     map[string]any // merged into the body of each request

	Timeout     time.Duration // of a question, with its repairs; 0 for plan.DefaultModelTimeout
	Tries       int           // of one request over the network; 0 for 4
	Repairs     int           // questions again about an answer that breaks the schema; 0 for 2, negative for none
	Concurrency int           // requests at once, of the process; 0 for no limit
	RPM, TPM    int           // requests and tokens a minute, of the process; 0 for no limit
	Batch       int           // questions of one request; 0 for 16
	// Questions of different instances may be joined.
	AcrossInstances bool
	Window          int // tokens that a prompt may have; 0 for no limit
	// Size of a schema, in bytes, up to which it is sent in its exact form; 0 for the dialect's.
	MaxSchema int
	Insecure  bool   // http is allowed beyond this machine
	Keep      bool   // the log keeps the requests and the answers
	Price     *Price // nil if it is not known
}

// Price is the price of a model, in US dollars for a million tokens.
type Price struct {
	Input, Output, CacheRead, CacheWrite float64
}

// Header is a header of each request. Its value is a text, or the environment variable that has it.
type Header struct {
	Name, Value, Env string
}

// Secrets names the environment variables that have the model's key and the values of its headers.
func (c Config) Secrets() (names []string) {
	if key := c.WithDefaults().Key; key != "" {
		names = append(names, key)
	}
	for _, h := range c.Headers {
		if h.Env != "" {
			names = append(names, h.Env)
		}
	}
	return names
}
