package memory_test

import (
	"context"
	"fmt"
	"testing"

	"obelus/store"
	"obelus/store/memory"
	"obelus/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Log { return memory.New() })
}

func Example() {
	ctx := context.Background()
	log := memory.New()
	defer log.Close()

	messages, err := store.ParseMessages([]byte(`{"type":"state","user":{"status":"active"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	at, err := log.Append(ctx, store.Batch{Context: "order-7", Create: &store.Origin{}, Messages: messages})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("at", at.Seq)

	for op, err := range log.Touching(ctx, store.Query{Context: "order-7", Path: store.MustParsePath("†state.user")}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d: %s at %s: %s\n", op.Seq, op.Method, op.Path, store.EncodeJSON(op.Value))
	}
	// Output:
	// at 1
	// 1: merge at †state: {"user":{"status":"active"}}
}
