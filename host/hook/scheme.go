package hook

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/lazyregexp"
)

// Scheme is a way in which senders show that they know a shared secret. What is empty in the
// settings of a hook is as its sender has it.
type Scheme struct {
	Hash   func() hash.Hash // of the HMAC; nil where the header has the secret itself
	Header string           `json:"header" kind:"header" jsonschema:"has the signature (default of hmac-sha256 \"X-Hub-Signature-256\")"`
	Prefix string           `json:"prefix" jsonschema:"stands before each signature, as \"v1=\"; a header without it is one"`
	// Encoding is empty for hex.
	Encoding string `json:"encoding" kind:"encoding" jsonschema:"of a signature: \"hex\" or \"base64\""`
	// Key is empty for text.
	Key    string `json:"key" kind:"key encoding" jsonschema:"\"base64\" if the secret is, perhaps with whsec_ before it"`
	Signed string `json:"signed" jsonschema:"the text that is signed: \"{body}\", \"v0:{time}:{body}\", \"{id}.{body}\""`
	// Time is in seconds or milliseconds since 1970; empty for none.
	Time      string        `json:"time" kind:"time or field" jsonschema:"the header with the time, or \"t=\" for t=… in the signature's header"`
	Tolerance time.Duration `json:"tolerance" jsonschema:"by which the time may differ from the server's (default \"5m\")"`
	ID        string        // the header with the id of a delivery; empty for none
}

// Or returns the scheme with what is empty as another has it. The hash and the id are the other's.
func (s Scheme) Or(other Scheme) Scheme {
	other.Header, other.Prefix, other.Signed = cmp.Or(s.Header, other.Header), cmp.Or(s.Prefix, other.Prefix), cmp.Or(s.Signed, other.Signed)
	other.Encoding, other.Key = cmp.Or(s.Encoding, other.Encoding), cmp.Or(s.Key, other.Key)
	other.Time, other.Tolerance = cmp.Or(s.Time, other.Time), cmp.Or(s.Tolerance, DefaultTolerance)
	return other
}

// Ways to verify a request that are no schemes of one sender.
const (
	HMACSHA256 = "hmac-sha256"
	None       = "none" // anyone may send one
)

// DefaultTolerance is the Tolerance of a scheme with a time that does not say.
const DefaultTolerance = 5 * time.Minute

const (
	bodyAlone = "{body}"
	inBase64  = "base64" // an encoding
)

// schemes are the ways of senders by their names.
var schemes = map[string]Scheme{
	HMACSHA256:  {Hash: sha256.New, Header: "X-Hub-Signature-256", Prefix: "sha256=", Signed: bodyAlone}, // GitHub
	"hmac-sha1": {Hash: sha1.New, Header: "X-Hub-Signature", Prefix: "sha1=", Signed: bodyAlone},
	"gitlab":    {Header: "X-Gitlab-Token"},
	"pagerduty": {Hash: sha256.New, Header: "X-PagerDuty-Signature", Prefix: "v1=", Signed: bodyAlone},
	"shopify":   {Hash: sha256.New, Header: "X-Shopify-Hmac-Sha256", Encoding: inBase64, Signed: bodyAlone},
	"slack":     {Hash: sha256.New, Header: "X-Slack-Signature", Prefix: "v0=", Signed: "v0:{time}:{body}", Time: "X-Slack-Request-Timestamp"},
	"standard":  {Hash: sha256.New, Header: "webhook-signature", Prefix: "v1,", Encoding: inBase64, Key: inBase64, Signed: "{id}.{time}.{body}", Time: "webhook-timestamp", ID: "webhook-id"},
	"stripe":    {Hash: sha256.New, Header: "Stripe-Signature", Prefix: "v1=", Signed: "{time}.{body}", Time: "t="},
	"telegram":  {Header: "X-Telegram-Bot-Api-Secret-Token"},
	"token":     {Header: "X-Token"},
	"zoom":      {Hash: sha256.New, Header: "x-zm-signature", Prefix: "v0=", Signed: "v0:{time}:{body}", Time: "x-zm-request-timestamp"},
}

// Verifications lists the ways to verify a request.
func Verifications() []string { return append(slices.Sorted(maps.Keys(schemes)), None) }

// SchemeOf returns the scheme of a way to verify; false for None and what is no way.
func SchemeOf(verification string) (Scheme, bool) {
	s, ok := schemes[verification]
	return s, ok
}

var signedPart = lazyregexp.New(`\{[^{}]*\}`)

// Check refuses a scheme that can't verify what it says.
func (s *Scheme) Check() error {
	parts := signedPart().FindAllString(s.Signed, -1)
	for _, part := range parts {
		if part != bodyAlone && part != "{time}" && part != "{id}" {
			return fmt.Errorf("signs %s, which is none of {body}, {time} and {id}", part)
		}
	}
	hasTime := slices.Contains(parts, "{time}")
	switch {
	case s.Hash == nil && (s.Signed != "" || s.Time != ""):
		return errors.New("has a token in its header, which signs nothing: signed and time go with a signature")
	case s.Hash != nil && !slices.Contains(parts, bodyAlone):
		return fmt.Errorf("signs %q, without {body}: anyone could send another body with it", s.Signed)
	case hasTime && s.Time == "":
		return errors.New(`signs a {time}, and does not say where it is: time = "X-Timestamp", or time = "t=" for t=… in the header of the signature`)
	case s.Time != "" && !hasTime:
		return errors.New("has a time that is not signed: signed must have {time}")
	case s.SignsID() && s.ID == "":
		return errors.New(`signs an {id}, and does not say where it is: once = "X-Delivery"`)
	}
	return nil
}

// SignsID reports whether a signature covers the id of a delivery.
func (s *Scheme) SignsID() bool { return strings.Contains(s.Signed, "{id}") }

// The errors of [Scheme.Verify]. They repeat nothing of the request.
var (
	ErrSignature = errors.New("the request is not signed, or not with the secret of this hook")
	ErrTime      = errors.New("the request was signed too long ago, or is dated ahead: the clocks may differ")
)

// Verify returns an error unless a request with a body and headers shows that its sender knows a
// secret. It takes as long for a wrong signature. An empty secret signs nothing.
func (s *Scheme) Verify(body []byte, secret string, header func(name string) string, now time.Time) error {
	key := []byte(secret)
	if s.Key == inBase64 {
		var err error
		if key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err != nil {
			return ErrSignature
		}
	}
	given := strings.TrimSpace(header(s.Header))
	if len(key) == 0 || given == "" {
		return ErrSignature
	}
	if s.Hash == nil {
		want, got := sha256.Sum256(key), sha256.Sum256([]byte(given))
		if !hmac.Equal(want[:], got[:]) {
			return ErrSignature
		}
		return nil
	}
	at := s.timeOf(given, header)
	mac := hmac.New(s.Hash, key)
	rest := s.Signed
	for _, m := range signedPart().FindAllString(s.Signed, -1) {
		before, after, _ := strings.Cut(rest, m)
		mac.Write([]byte(before))
		mac.Write(map[string][]byte{bodyAlone: body, "{time}": []byte(at), "{id}": []byte(header(s.ID))}[m])
		rest = after
	}
	mac.Write([]byte(rest))
	sum := mac.Sum(nil)
	if !slices.ContainsFunc(s.signatures(given), func(signature []byte) bool { return hmac.Equal(sum, signature) }) {
		return ErrSignature
	}
	if s.Time != "" && !isNear(at, now, s.Tolerance) {
		return ErrTime
	}
	return nil
}

// timeOf returns the time of a request as it is written.
func (s *Scheme) timeOf(signatures string, header func(name string) string) string {
	if !strings.HasSuffix(s.Time, "=") {
		return strings.TrimSpace(header(s.Time))
	}
	if all := behind(s.Time, signatures); len(all) > 0 {
		return all[0]
	}
	return ""
}

// behind lists what stands behind a prefix, up to a blank or a comma, in a list of such.
func behind(prefix, list string) (all []string) {
	separates := func(c byte) bool { return c == ' ' || c == ',' || c == '\t' }
	for i := 0; i < len(list); i++ {
		if i > 0 && !separates(list[i-1]) || !strings.HasPrefix(list[i:], prefix) {
			continue
		}
		rest := list[i+len(prefix):]
		if end := strings.IndexAny(rest, " ,\t"); end >= 0 {
			rest = rest[:end]
		}
		all = append(all, rest)
	}
	return all
}

// signatures decodes the signatures of a header. What is no signature is left out.
func (s *Scheme) signatures(given string) (all [][]byte) {
	texts := []string{given}
	if found := behind(s.Prefix, given); s.Prefix != "" && len(found) > 0 {
		texts = found
	}
	decode := hex.DecodeString
	if s.Encoding == inBase64 {
		decode = base64.StdEncoding.DecodeString
	}
	for _, text := range texts {
		if signature, err := decode(text); err == nil && !slices.ContainsFunc(all, func(b []byte) bool { return bytes.Equal(b, signature) }) {
			all = append(all, signature)
		}
	}
	return all
}

// isNear reports whether a time, in seconds or milliseconds, differs little from another.
func isNear(text string, now time.Time, tolerance time.Duration) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return false
	}
	at := time.Unix(n, 0)
	if n > 1e11 { // seconds of the year 5138
		at = time.UnixMilli(n)
	}
	return now.Sub(at).Abs() <= tolerance
}
