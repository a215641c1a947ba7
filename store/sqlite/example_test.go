package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"obelus/store"
	"obelus/store/sqlite"
)

func Example() {
	folder, err := os.MkdirTemp("", "obelus")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	l, err := sqlite.Open(filepath.Join(folder, ".obelus", "log.db"), sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	messages, err := store.ParseMessages([]byte(`{"type":"state","user":{"status":"active"}}`))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	at, err := l.Append(ctx, store.Batch{Context: "order-7", Create: &store.Origin{}, Messages: messages})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("on the disk at", at.Seq)

	for m, err := range l.Messages(ctx, store.Filter{Context: "order-7", Kind: "state"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s\n", m.Seq, store.EncodeJSON(m.Data.Value))
	}
	// Output:
	// on the disk at 1
	// 1: {"user":{"status":"active"}}
}
