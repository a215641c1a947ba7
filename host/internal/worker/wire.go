package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"obelus/store"
)

// A message to or from a worker is a value with its length before it: a letter for its kind, the
// size, then the contents. JSON took a third of the time of a small call, and twice as long for a
// large one.
const (
	wireNull   = 'z'
	wireTrue   = 't'
	wireFalse  = 'f'
	wireString = 's'
	wireNumber = 'n'
	wireArray  = 'a'
	wireObject = 'o'
)

// Bounds of one message.
const (
	maxFrame     = 1 << 30
	maxWireDepth = 10_000
)

func send(w io.Writer, v any) error {
	frame := appendWire(make([]byte, 4, 512), v)
	if len(frame) > maxFrame {
		return fmt.Errorf("%d bytes are too many for a worker", len(frame))
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	_, err := w.Write(frame)
	return err
}

func receive(r *bufio.Reader) (any, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, errors.New("a message is too long")
	}
	var text strings.Builder
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		return nil, err
	}
	reader := wireReader{text: text.String()}
	return reader.value(0)
}

func appendWire(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, wireNull)
	case bool:
		if v {
			return append(b, wireTrue)
		}
		return append(b, wireFalse)
	case string:
		return appendWireText(b, wireString, v)
	case json.Number:
		return appendWireText(b, wireNumber, string(v))
	case []any:
		b = binary.AppendUvarint(append(b, wireArray), uint64(len(v)))
		for _, e := range v {
			b = appendWire(b, e)
		}
		return b
	case map[string]any:
		b = binary.AppendUvarint(append(b, wireObject), uint64(len(v)))
		for key, e := range v {
			b = appendWire(appendWireText(b, wireString, key), e)
		}
		return b
	}
	return appendWireText(b, wireNumber, string(store.EncodeJSON(v))) // a type of Go
}

func appendWireText(b []byte, kind byte, text string) []byte {
	return append(binary.AppendUvarint(append(b, kind), uint64(len(text))), text...)
}

// wireReader reads a value. Its strings share the memory of the message.
type wireReader struct{ text string }

var errWire = errors.New("a message is broken")

func (r *wireReader) value(depth int) (any, error) {
	if r.text == "" || depth > maxWireDepth {
		return nil, errWire
	}
	kind := r.text[0]
	r.text = r.text[1:]
	switch kind {
	case wireNull:
		return nil, nil
	case wireTrue, wireFalse:
		return kind == wireTrue, nil
	}
	n, err := r.size()
	if err != nil {
		return nil, err
	}
	switch kind {
	case wireString:
		return r.take(n), nil
	case wireNumber:
		return json.Number(r.take(n)), nil
	case wireArray:
		array := make([]any, n)
		for i := range array {
			if array[i], err = r.value(depth + 1); err != nil {
				return nil, err
			}
		}
		return array, nil
	case wireObject:
		object := make(map[string]any, n)
		for range n {
			key, err := r.value(depth + 1)
			name, ok := key.(string)
			if err != nil || !ok {
				return nil, errWire
			}
			if object[name], err = r.value(depth + 1); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, errWire
}

// size reads a number of bytes or elements. Each of them takes at least a byte.
func (r *wireReader) size() (int, error) {
	var n uint64
	for i := range min(len(r.text), binary.MaxVarintLen32) {
		c := r.text[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if r.text = r.text[i+1:]; n > uint64(len(r.text)) {
				return 0, errWire
			}
			return int(n), nil
		}
	}
	return 0, errWire
}

func (r *wireReader) take(n int) (text string) {
	text, r.text = r.text[:n], r.text[n:]
	return text
}
