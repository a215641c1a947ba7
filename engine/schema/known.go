package schema

import (
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/store"
)

// Possible is the set of values that a place may hold: their types by JSON's names, and, if they
// are few, the values themselves. Without types it holds every value.
type Possible struct {
	Types  []string
	Values []any
	Where  string // the schema or call that says so
}

// Node is a place in a JSON Schema. The zero Node allows every value.
type Node struct {
	Root any // what its references are about
	At   any
}

// maxKnown bounds the nesting of references and alternatives that are followed to find types.
const maxKnown = 16

// Possible returns the values that the schema accepts.
func (n Node) Possible() Possible { return n.possibleWithin(maxKnown) }

func (n Node) possibleWithin(depth int) (k Possible) {
	object, _ := n.At.(map[string]any)
	if depth == 0 || object == nil {
		return k
	}
	switch types := object["type"].(type) {
	case string:
		k.Types = []string{types}
	case []any:
		for _, t := range types {
			if t, ok := t.(string); ok {
				k.Types = append(k.Types, t)
			}
		}
	}
	if v, ok := object["const"]; ok {
		k = k.and(TypesOfValues([]any{v}))
	}
	if values, ok := object["enum"].([]any); ok {
		k = k.and(TypesOfValues(values))
	}
	for _, part := range n.included() {
		k = k.and(part.possibleWithin(depth - 1))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		var either Possible
		for i, at := range listAt(object, word) {
			one := Node{n.Root, at}.possibleWithin(depth - 1)
			if one.Types == nil {
				either = Possible{}
				break
			}
			if either.Types = append(either.Types, one.Types...); i == 0 || either.Values != nil {
				either.Values = append(either.Values, one.Values...)
			}
			if one.Values == nil {
				either.Values = nil
			}
		}
		k = k.and(either)
	}
	return k
}

// included are the schemas that the schema says hold as well, by $ref and allOf.
func (n Node) included() (all []Node) {
	object, _ := n.At.(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		if at, ok := n.referred(ref); ok {
			all = append(all, at)
		}
	}
	for _, at := range listAt(object, "allOf") {
		all = append(all, Node{n.Root, at})
	}
	return all
}

// referred resolves a reference within the schema's document, by keys alone.
func (n Node) referred(ref string) (Node, bool) {
	rest, ok := strings.CutPrefix(ref, "#/")
	at := n.Root
	for ok && rest != "" {
		var key string
		key, rest, _ = strings.Cut(rest, "/")
		object, _ := at.(map[string]any)
		at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return Node{n.Root, at}, ok
}

func listAt(object map[string]any, key string) []any {
	list, _ := object[key].([]any)
	return list
}

// Child is the schema of a part of the value: of a property, or of an element.
func (n Node) Child(segment string) Node { return n.childWithin(segment, maxKnown) }

func (n Node) childWithin(segment string, depth int) Node {
	object, _ := n.At.(map[string]any)
	if depth == 0 || object == nil {
		return Node{}
	}
	properties, _ := object["properties"].(map[string]any)
	if at, ok := properties[segment]; ok {
		return Node{n.Root, at}
	}
	if i, isIndex := jsonvalue.Index(segment); isIndex {
		if prefix := listAt(object, "prefixItems"); i < len(prefix) {
			return Node{n.Root, prefix[i]}
		}
		if at, ok := object["items"]; ok {
			return Node{n.Root, at}
		}
	}
	for _, part := range n.included() {
		if at := part.childWithin(segment, depth-1); at.At != nil {
			return at
		}
	}
	return Node{}
}

// TypesOfValues returns what is known of a value that is one of some values.
func TypesOfValues(values []any) (k Possible) {
	for _, v := range values {
		if name := store.TypeName(v); !slices.Contains(k.Types, name) {
			k.Types = append(k.Types, name)
		}
	}
	k.Values = values
	return k
}

// and returns the values that are in both.
func (k Possible) and(other Possible) Possible {
	switch {
	case k.Types == nil:
		return other
	case other.Types == nil:
		return k
	}
	both := Possible{Values: k.Values}
	if both.Values == nil {
		both.Values = other.Values
	}
	for _, t := range k.Types {
		if slices.ContainsFunc(other.Types, func(o string) bool { return sameType(t, o) }) {
			both.Types = append(both.Types, t)
		}
	}
	return both
}

// sameType reports whether values of one type may be of another.
func sameType(a, b string) bool {
	return a == b || a == "integer" && b == "number" || a == "number" && b == "integer"
}

// Excludes reports whether no possible value is of one of some types.
func (k Possible) Excludes(types ...string) bool {
	return len(k.Types) > 0 && len(types) > 0 && !slices.ContainsFunc(k.Types, func(t string) bool {
		return slices.ContainsFunc(types, func(o string) bool { return sameType(t, o) })
	})
}

// String names the types, as in "number or string".
func (k Possible) String() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(k.Types))), " or ")
}

// Descendant is the schema of what stands deeper in a value.
func (n Node) Descendant(segments []string) Node {
	for _, segment := range segments {
		n = n.Child(segment)
	}
	return n
}

// Admission says what a schema has to say of a part of a value.
type Admission int

const (
	RuledOut Admission = iota // no value that the schema accepts has the part
	Unnamed                   // the schema names other parts beside it, and neither names nor forbids it
	silent                    // it names no parts: beside a schema that does it has no say, and alone it admits all
	Admitted                  // the schema names the part, or may take a part of any name there
)

// Admits reports what the schema says of a part of its value, such as a property of an element.
// Where its keywords are not understood here, it admits the part.
func (n Node) Admits(segments []string) Admission {
	return alone(n.admitsWithin(segments, maxKnown))
}

// alone returns what a schema says that stands beside no other.
func alone(says Admission) Admission {
	if says == silent {
		return Admitted
	}
	return says
}

// notUnderstood are keywords that may name a part in other ways.
var notUnderstood = []string{"$dynamicRef", "$id", "dependentSchemas", "else", "if", "not", "patternProperties", "then", "unevaluatedItems", "unevaluatedProperties"}

func (n Node) admitsWithin(segments []string, depth int) Admission {
	object, isObject := n.At.(map[string]any)
	switch {
	case n.At == false:
		return RuledOut
	case len(segments) == 0:
		return Admitted
	case !isObject || depth == 0:
		return silent
	case slices.ContainsFunc(notUnderstood, func(keyword string) bool { return object[keyword] != nil }):
		return Admitted
	case n.Possible().Excludes("object", "array"):
		return RuledOut
	}
	all := []Admission{n.admitsHere(object, segments, depth)}
	if ref, ok := object["$ref"].(string); ok {
		if at, found := n.referred(ref); found {
			all = append(all, at.admitsWithin(segments, depth-1))
		} else {
			return Admitted
		}
	}
	for _, at := range listAt(object, "allOf") {
		all = append(all, Node{n.Root, at}.admitsWithin(segments, depth-1))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if branches := listAt(object, word); len(branches) > 0 {
			best := RuledOut
			for _, at := range branches {
				best = max(best, Node{n.Root, at}.admitsWithin(segments, depth-1))
			}
			all = append(all, best)
		}
	}
	if slices.Contains(all, RuledOut) {
		return RuledOut
	}
	all = slices.DeleteFunc(all, func(one Admission) bool { return one == silent })
	if len(all) == 0 {
		return silent
	}
	return slices.Max(all) // one may name what another does not
}

// admitsHere is admitsWithin by the schema's own keywords for properties and elements.
func (n Node) admitsHere(object map[string]any, segments []string, depth int) Admission {
	within := func(at any) Admission { return alone(Node{n.Root, at}.admitsWithin(segments[1:], depth-1)) }
	properties, _ := object["properties"].(map[string]any)
	if at, ok := properties[segments[0]]; ok {
		return within(at)
	}
	i, isIndex := jsonvalue.Index(segments[0])
	if isIndex && !n.Possible().Excludes("array") {
		prefix := listAt(object, "prefixItems")
		items, hasItems := object["items"]
		switch {
		case i < len(prefix):
			return within(prefix[i])
		case hasItems:
			return within(items)
		}
		return silent
	}
	required, _ := object["required"].([]any)
	additional, isSaid := object["additionalProperties"]
	switch {
	case isSaid:
		return within(additional)
	case slices.Contains(required, any(segments[0])):
		return Admitted
	case len(properties) > 0:
		return Unnamed
	}
	return silent
}

// Names lists the properties that the schema names, by $ref and allOf too.
func (n Node) Names() []string { return n.namesWithin(maxKnown) }

func (n Node) namesWithin(depth int) []string {
	object, _ := n.At.(map[string]any)
	if depth == 0 {
		return nil
	}
	properties, _ := object["properties"].(map[string]any)
	names := jsonvalue.SortedKeys(properties)
	for _, part := range n.included() {
		names = append(names, part.namesWithin(depth-1)...)
	}
	return names
}
