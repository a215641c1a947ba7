package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxBody bounds the bytes that are read of one answer.
const maxBody = 16 << 20

// errTooLarge is the end of an answer that is larger than [maxBody].
var errTooLarge = errors.New("the answer is larger than 16 MB")

// bounded reads at most a number of bytes, and fails with [errTooLarge] beyond.
type bounded struct {
	r    io.Reader
	left int
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(len(p), b.left+1)])
	b.left -= n
	if b.left < 0 {
		return n - 1, errTooLarge
	}
	return n, err
}

// event is one of a stream of server-sent events.
type event struct {
	name string
	data []byte // valid until the next one is read
}

// eventReader reads server-sent events, in whatever pieces they come. A line ends with LF, CRLF or
// CR.
type eventReader struct {
	r     *bufio.Reader
	line  []byte
	data  []byte
	begun bool // the first line has been read
	lf    bool // the line before ended with CR: an LF that follows belongs to it
}

// next returns the next event that has data. Its error is io.EOF after the last. An event that the
// stream ends in is returned as well: not every server ends it with an empty line.
func (e *eventReader) next() (event, error) {
	var ev event
	has := false
	e.data = e.data[:0]
	for {
		err := e.readLine()
		line := e.line
		if err != nil && (err != io.EOF || len(line) == 0) {
			if err == io.EOF && has {
				ev.data = e.data
				return ev, nil
			}
			return event{}, err
		}
		if len(line) == 0 {
			if has {
				ev.data = e.data
				return ev, nil
			}
			ev.name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) { // a comment has an empty one
		case "event":
			ev.name = string(value)
		case "data":
			if has {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			has = true
		}
	}
}

// readLine reads a line into e.line, without its end. At the end of the stream it returns io.EOF,
// with the text that no line end follows.
func (e *eventReader) readLine() error {
	e.line = e.line[:0]
	for {
		if _, err := e.r.Peek(1); err != nil {
			e.trimMark()
			return err
		}
		text, _ := e.r.Peek(e.r.Buffered())
		if e.lf {
			e.lf = false
			if text[0] == '\n' {
				_, _ = e.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(text, "\r\n")
		if end < 0 {
			e.line = append(e.line, text...)
			_, _ = e.r.Discard(len(text))
			continue
		}
		e.line = append(e.line, text[:end]...)
		e.lf = text[end] == '\r'
		_, _ = e.r.Discard(end + 1)
		e.trimMark()
		return nil
	}
}

// trimMark takes the byte order mark off the first line.
func (e *eventReader) trimMark() {
	if !e.begun {
		e.begun = true
		e.line = bytes.TrimPrefix(e.line, []byte("\ufeff"))
	}
}
