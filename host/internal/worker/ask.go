package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync/atomic"

	"obelus/luastd"
)

// AskFunc puts a question of a script to a model.
type AskFunc func(ctx context.Context, q luastd.ModelQuestion) (any, error)

// put puts a question, if there is a function for that.
func (f AskFunc) put(ctx context.Context, q luastd.ModelQuestion) (any, error) {
	if f == nil {
		return nil, errors.New("there are no models here")
	}
	return f(ctx, q)
}

// answerQuestion returns the message that answers a worker's question, which is sent before the
// outcome of its job.
func answerQuestion(asked map[string]any, ask func(q luastd.ModelQuestion) (any, error)) map[string]any {
	q := luastd.ModelQuestion{Data: asked["data"], Schema: asked["schema"]}
	q.Prompt, _ = asked["prompt"].(string)
	q.Model, _ = asked["model"].(string)
	v, err := ask(q)
	if err != nil {
		return map[string]any{"ask": asked["ask"], "error": err.Error()}
	}
	return map[string]any{"ask": asked["ask"], "answer": v}
}

// asker puts the questions of a worker to the process that started it. There is one at a time.
type asker struct {
	out     io.Writer
	count   int64
	waiting atomic.Pointer[question] // nil while nothing is asked
}

// question is a question that waits for its answer.
type question struct {
	number int64
	answer chan map[string]any // has room for it
}

// ask puts a question, and waits for its answer until ctx is done.
func (a *asker) ask(ctx context.Context, q luastd.ModelQuestion) (any, error) {
	a.count++
	waiting := &question{a.count, make(chan map[string]any, 1)}
	a.waiting.Store(waiting)
	defer a.waiting.Store(nil)
	message := map[string]any{
		"ask": json.Number(strconv.FormatInt(a.count, 10)), "prompt": q.Prompt, "model": q.Model, "data": q.Data, "schema": q.Schema,
	}
	if err := send(a.out, message); err != nil {
		return nil, err
	}
	select {
	case answer := <-waiting.answer:
		if text, failed := answer["error"].(string); failed {
			return nil, errors.New(text)
		}
		return answer["answer"], nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// receive takes an answer. One to a question that no call waits for any more is dropped.
func (a *asker) receive(answer map[string]any) {
	if waiting := a.waiting.Load(); waiting != nil && waiting.number == toInt64(answer["ask"]) {
		waiting.answer <- answer
	}
}
