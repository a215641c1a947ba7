package model

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"obelus/engine/lazyregexp"
)

// windowTeller is an [Asker] whose server says how many tokens a prompt may have.
type windowTeller interface {
	// serverWindow returns the number for a model by its name in the settings, and 0 where it is not
	// known.
	serverWindow(ctx context.Context, model string) int
}

// providerOllama takes no window with a request to /v1, and cuts a prompt in silence.
const providerOllama = "ollama"

// defaultOllama is the window of a model of Ollama that does not say another.
const defaultOllama = 2048

// ServerWindow returns how many tokens a prompt may have by the server of the model, which it asks;
// 0 where it does not say. Only Ollama is asked, and once it has answered not again. A cassette
// that is replayed says what the server said as it was recorded.
func (m *Model) ServerWindow(ctx context.Context) int {
	if m.config.Provider != providerOllama {
		return 0
	}
	return windowOf(ctx, m.asker, m.config.Name)
}

// Knowing returns the model with the window that its server says, where the settings say none.
func (m *Model) Knowing(ctx context.Context) *Model {
	if m.config.Window > 0 || m.config.Provider != providerOllama {
		return m
	}
	known := *m
	known.said = m.ServerWindow(ctx)
	known.config.Window = known.said
	return &known
}

// learned is a window as a server has said it.
type learned struct {
	mu     sync.Mutex
	tokens int       // 0 while it is not known
	asked  time.Time // when it was asked last
}

// askAgain is after how long a server is asked again that has not said its window.
const askAgain = time.Minute

// numCtx finds the window among the parameters of a model of Ollama.
var numCtx = lazyregexp.New(`(?m)^num_ctx\s+(\d+)\s*$`)

func (c *Client) serverWindow(ctx context.Context, _ string) int {
	c.window.mu.Lock()
	defer c.window.mu.Unlock()
	if c.window.tokens == 0 && time.Since(c.window.asked) > askAgain {
		c.window.tokens = c.askWindow(ctx)
		c.window.asked = time.Now()
	}
	return c.window.tokens
}

// askWindow asks Ollama for the parameters of the model. A server that can't be reached, or does
// not know the model, says nothing: a request to it will tell.
func (c *Client) askWindow(ctx context.Context) int {
	u, err := url.Parse(c.config.URL)
	if err != nil {
		return 0
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	body, _ := json.Marshal(map[string]string{"model": c.config.Model})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.JoinPath("api", "show").String(), bytes.NewReader(body))
	if err != nil {
		return 0
	}
	key, _ := c.key()
	if err := c.fillHeader(request.Header, key, ""); err != nil {
		return 0
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	var shown struct{ Parameters string }
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(text, &shown) != nil {
		return 0
	}
	found := numCtx().FindStringSubmatch(shown.Parameters)
	if found == nil {
		return defaultOllama
	}
	tokens, _ := strconv.Atoi(found[1])
	return tokens
}

func (k *keeper) serverWindow(ctx context.Context, model string) int {
	return windowOf(ctx, k.asker, model)
}

func (a *cassetteAsker) serverWindow(ctx context.Context, model string) int {
	if a.recording == ReplayOnly {
		return a.cassette.window(model)
	}
	return windowOf(ctx, a.inner, model)
}

// window returns the window that the server of a model had as the cassette was recorded; 0 where it
// said none.
func (c *Cassette) window(model string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if e.Window > 0 && headOf(e.Request).Model == model {
			return e.Window
		}
	}
	return 0
}

func windowOf(ctx context.Context, asker Asker, model string) int {
	if teller, ok := asker.(windowTeller); ok {
		return teller.serverWindow(ctx, model)
	}
	return 0
}
