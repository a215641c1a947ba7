package modeltest

import (
	"io"
	"net/http"
	"strings"
)

// Fault is something that goes wrong with a request, as it does with providers.
type Fault int

// Faults.
const (
	NoFault         Fault = iota
	TooManyRequests       // 429, with Retry-After of 7 seconds
	QuotaUsedUp           // 429 with the code insufficient_quota
	Overloaded            // 529
	ServerError           // 500
	Unauthorized          // 401, whose message has the key that was sent
	RefusesEffort         // 400 where an effort is asked for
	RefusesSchema         // 400 that names the schema, where one is asked for in a way to hold the model to it
	WebPage               // HTML, with 200
	BadGateway            // HTML, with 502
	Redirected            // 307 to another host
	Cut                   // the connection breaks in the middle of the answer
	Split                 // the bytes of the answer come one by one
	NoUsage               // nothing is said about tokens
	Fences                // the JSON stands in a code block, among other text
	Refuses               // the model refuses
	Slow                  // nothing comes until the client gives up
	Stuck                 // nothing comes after the first piece until the client gives up
	Deaf                  // schemas are taken and ignored
	Length                // the answer ends at the limit of tokens
	ErrorEvent            // an error comes within the stream
	Plain                 // the answer is not streamed, though that was asked for
	CRLF                  // lines end with CR and LF, and there are comments
	Huge                  // the answer does not end
	Mute                  // 500 that names the schema, which a stream hides: it ends without a word
)

// fail sends the errors that come in place of an answer. It reports whether it did.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, request *Request, fault Fault) bool {
	switch fault {
	case TooManyRequests:
		w.Header().Set("Retry-After", "7")
		sendError(w, http.StatusTooManyRequests, "rate_limit_error", "slow down")
	case QuotaUsedUp:
		sendError(w, http.StatusTooManyRequests, "insufficient_quota", "you exceeded your current quota")
	case Overloaded:
		sendError(w, 529, "overloaded_error", "overloaded")
	case ServerError:
		sendError(w, http.StatusInternalServerError, "api_error", "it went wrong")
	case Unauthorized:
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
		sendError(w, http.StatusUnauthorized, "authentication_error", "this key is not known: "+key)
	case RefusesEffort:
		if request.Body["reasoning_effort"] == nil && request.Body["output_config"] == nil {
			return false
		}
		sendError(w, http.StatusBadRequest, "invalid_request_error", "this model does not support thinking")
	case RefusesSchema:
		if request.Mode != "schema" && request.Mode != "tools" {
			return false
		}
		sendError(w, http.StatusBadRequest, "invalid_request_error", "Invalid schema for "+map[string]string{
			"schema": "response_format 'answer'", "tools": "function 'answer'"}[request.Mode])
	case WebPage, BadGateway:
		w.Header().Set("Content-Type", "text/html")
		if fault == BadGateway {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><head><title>Welcome to the proxy</title></head><body>…</body></html>")
	case Redirected:
		http.Redirect(w, r, "https://elsewhere.example/v1/chat/completions", http.StatusTemporaryRedirect)
	case Mute:
		if request.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n")
			return true
		}
		sendError(w, http.StatusInternalServerError, "api_error", "invalid JSON schema in format")
	case Slow:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}
