package store

import (
	"strings"
	"unicode/utf8"
)

// Exchange is one request to a model and its answer, kept beside the journal entry that has the
// request's usage, where the model's settings say so. The log does not interpret it.
type Exchange struct {
	Hash    string // of the request, SHA-256 in hex, as it was sent
	Request string // JSON; empty if it is not kept, see [WhyNotKept]
	Answer  string // the text as it came; empty if there was none, or it is not kept
	Error   string // why no answer came; empty if one did
	Usage   string // JSON: the tokens, the model that answered, why the answer ended

	// RequestSize and AnswerSize are the bytes of the texts, also where they are not kept.
	RequestSize, AnswerSize int64
}

// MaxExchange is the largest text of an exchange that is kept, in bytes.
const MaxExchange = 4 << 20

// WhyNotKept says why an exchange does not keep a text of a size in bytes.
func WhyNotKept(size int64) string {
	if size > MaxExchange {
		return "too long to be kept"
	}
	return "not kept: it is not UTF-8"
}

// NewExchange returns an exchange without a request or an answer that is larger than [MaxExchange],
// or is not UTF-8. A failure is cut and mended instead, so that it is known that there was one.
func NewExchange(hash, request, answer, failure, usage string) Exchange {
	kept := func(text string) string {
		if len(text) > MaxExchange || !utf8.ValidString(text) {
			return ""
		}
		return text
	}
	failure = strings.ToValidUTF8(failure[:min(len(failure), MaxExchange/3)], "\ufffd") // which has 3 bytes
	return Exchange{
		Hash: hash, Request: kept(request), Answer: kept(answer), Error: failure, Usage: usage,
		RequestSize: int64(len(request)), AnswerSize: int64(len(answer)),
	}
}
