package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// TraceID and SpanID are the ids of OTLP. The zero is none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String returns the id in hex, as backends show it.
func (id TraceID) String() string { return hex.EncodeToString(id[:]) }

// String returns the id in hex, as backends show it.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// traceID returns the id of the trace of a run, by its context and first tick.
func traceID(context string, first int) (id TraceID) {
	copy(id[:], digest("trace", context, tickID(first)))
	return id
}

// spanID returns the id of a span: of a run or a plan by its context and tick, of a call and of its
// requests by its context and call.
func spanID(kind, context, call string) (id SpanID) {
	copy(id[:], digest(kind, context, call))
	return id
}

// tickID stands for a tick where a call has its id.
func tickID(tick int) string { return strconv.Itoa(tick) }

func digest(kind, context, call string) []byte {
	sum := sha256.Sum256([]byte("obelus " + kind + " " + context + "/" + call))
	return sum[:]
}

// The messages of OTLP, as its JSON has them.
type (
	otlpRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   otlpResource `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope     otlpScope  `json:"scope"`
		Spans     []otlpSpan `json:"spans"`
		SchemaURL string     `json:"schemaUrl"`
	}
	otlpScope struct {
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// Numbers of OTLP.
const (
	kindInternal = 1
	kindClient   = 3
	statusError  = 2
)

// MarshalJSON returns the trace as OTLP/JSON: the body of a request to a collector.
func (t *Trace) MarshalJSON() ([]byte, error) {
	spans := make([]otlpSpan, len(t.Spans))
	for i, s := range t.Spans {
		spans[i] = s.otlp(t.ID)
	}
	scope := otlpScope{Name: "obelus", Attributes: otlpAttributes([]Attribute{{"obelus.conventions", Conventions}})}
	return json.Marshal(otlpRequest{[]resourceSpans{{
		Resource:   otlpResource{otlpAttributes([]Attribute{{"service.name", "obelus"}})},
		ScopeSpans: []scopeSpans{{Scope: scope, Spans: spans, SchemaURL: "https://opentelemetry.io/schemas/" + Conventions}},
	}}})
}

func (s *Span) otlp(trace TraceID) otlpSpan {
	made := otlpSpan{
		TraceID: trace.String(), SpanID: s.ID.String(), Name: s.Name, Kind: kindInternal,
		Start: nanoseconds(s.Start), End: nanoseconds(s.End), Attributes: otlpAttributes(s.Attributes),
	}
	if s.Parent != (SpanID{}) {
		made.Parent = s.Parent.String()
	}
	if s.Client {
		made.Kind = kindClient
	}
	if s.Failed {
		made.Status = &otlpStatus{Message: s.Message, Code: statusError}
	}
	return made
}

// nanoseconds returns a time as OTLP has it: JSON has 64-bit numbers as texts there.
func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func otlpAttributes(attributes []Attribute) []otlpAttribute {
	made := make([]otlpAttribute, len(attributes))
	for i, a := range attributes {
		made[i] = otlpAttribute{a.Key, otlpValue(a.Value)}
	}
	return made
}

func otlpValue(v any) map[string]any {
	switch v := v.(type) {
	case string:
		return map[string]any{"stringValue": v}
	case int64:
		return map[string]any{"intValue": strconv.FormatInt(v, 10)}
	case float64:
		return map[string]any{"doubleValue": v}
	case bool:
		return map[string]any{"boolValue": v}
	case []string:
		values := make([]map[string]any, len(v))
		for i, text := range v {
			values[i] = otlpValue(text)
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	return map[string]any{} // an empty value
}
