package model

import (
	"context"
	"net/http"

	"obelus/engine/plan"
)

type Options struct {
	Env       func(string) (string, bool)
	Transport http.RoundTripper
	Warn      func(string)
}
type Client struct{}

func NewClient(Config, Options) (*Client, error)                            { return &Client{}, nil }
func (*Client) Ask(context.Context, *Request, *plan.Meter) (*Answer, error) { return nil, nil }

type Model struct{}

func New(Config, Asker) *Model                                    { return &Model{} }
func (*Model) Answer(context.Context, plan.Question) (any, error) { return nil, nil }

func (c Config) Check() error      { return nil }
func (c Config) Secrets() []string { return nil }
