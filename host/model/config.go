package model

import "time"

// Config is one model of the settings: its address, the parameters of its requests, and its limits.
// The tags of its fields have their names there, and describe them for help and editors. The zero
// of a field stands for its default.
type Config struct {
	Name string // in the settings

	Provider string `json:"provider" jsonschema:"openai, anthropic, gemini, ollama, vllm, llama, openrouter, azure"`
	Model    string `json:"model" jsonschema:"as the provider calls it"`
	URL      string `json:"url" jsonschema:"of the API, such as \"http://127.0.0.1:11434/v1\""`
	// Key is the name of the variable; empty for none.
	Key     string   `json:"key" kind:"key" jsonschema:"{ env = \"NAME\" }: the variable of the environment with the key"`
	Headers []Header `json:"headers" jsonschema:"by name: a text, or { env = \"NAME\" }"`
	Wire    string   `json:"wire" jsonschema:"\"openai\" or \"anthropic\""`
	Dialect string   `json:"dialect" jsonschema:"of JSON Schema: \"openai\", \"anthropic\", \"gemini\", \"llama\", \"ollama\", \"plain\""`
	Mode    string   `json:"mode" jsonschema:"how it is held to a schema: \"schema\", \"tools\", \"json\", \"text\"; \"auto\" begins with what the provider has, and warns when it steps down"`
	Strict  bool     `json:"strict" jsonschema:"true makes it an error to step down from mode"`

	Params
	Think     bool           `json:"think" jsonschema:"true has its answers begin with a field for its thoughts"`
	NoReasons bool           `json:"reasons" kind:"not" jsonschema:"false leaves out why a call of its plan is made (true)"`
	Extra     map[string]any `json:"extra" jsonschema:"a table that is merged into the body of each request"`

	Timeout time.Duration `json:"timeout" jsonschema:"of one question, with its repairs, and while it waits for its turn under concurrency, rpm and tpm (default \"2m\")"`
	Tries   int           `json:"tries" jsonschema:"of one request over the network (4). Where none brings an answer, the model's call fails with the code \"unavailable\", so that _retries and the last alternative follow, as they do not after a wrong key or setting"`
	// Repairs is negative for none.
	Repairs     int `json:"repairs" kind:"count" zero:"-1" jsonschema:"questions again about an answer that breaks its schema (2)"`
	Concurrency int `json:"concurrency" jsonschema:"requests at once, of the whole process (no bound)"`
	RPM         int `json:"rpm" jsonschema:"requests a minute, of the whole process (no bound)"`
	TPM         int `json:"tpm" jsonschema:"tokens a minute, of the whole process (no bound)"`
	Batch       int `json:"batch" kind:"batch" jsonschema:"calls that one request answers; \"instances\" joins those of several instances, so that the model sees what each of them may see (16)"`
	// AcrossInstances is set for "instances".
	AcrossInstances bool
	Window          int `json:"window" jsonschema:"tokens that the model takes at once, its answer with them (128000 of openai, azure, anthropic, gemini and openrouter; of ollama the num_ctx that the server says, or 2048; else no bound)"`
	// MaxSchema is in bytes; 0 for the bound of the dialect.
	MaxSchema int  `json:"max_schema" kind:"size" jsonschema:"size up to which a schema is sent in its exact form"`
	Insecure  bool `json:"insecure" jsonschema:"true allows http beyond this machine"`
	Keep      bool `json:"keep" jsonschema:"true has the log keep its requests and answers (see WHAT IS SENT)"`
	// Price is nil if it is not known.
	Price *Price `json:"price" jsonschema:"{ input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }, in US dollars for a million tokens; without one there is no cost"`
}

// Price is the price of a model, in US dollars for a million tokens.
type Price struct {
	Input      float64 `json:"input" kind:"price" jsonschema:"of a prompt"`
	Output     float64 `json:"output" kind:"price" jsonschema:"of an answer"`
	CacheRead  float64 `json:"cache_read" kind:"price" jsonschema:"of the part of a prompt that the provider has kept"`
	CacheWrite float64 `json:"cache_write" kind:"price" jsonschema:"of the part of a prompt that the provider is to keep"`
}

// Header is a header of each request. Its value is a text, or the environment variable that has it.
type Header struct {
	Name  string
	Value string `kind:"string" short:"true"`
	Env   string `json:"env" required:"the name of the environment variable that has it: env = \"NAME\"" jsonschema:"the variable of the environment that has it"`
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
