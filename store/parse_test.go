package store

import (
	"fmt"
	"strings"
	"testing"
)

// TestWideMessage: a message may have very many fields beside its type; to take
// them costs no more for each than if there were few.
func TestWideMessage(t *testing.T) {
	const fields = 200_000
	var b strings.Builder
	b.WriteString(`[{"type":"state"`)
	for i := range fields {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	b.WriteString(`}]`)
	messages, err := ParseMessages([]byte(b.String()))
	if err != nil || len(messages) != 1 || len(messages[0].Data.Value.(map[string]any)) != fields {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
}
