package schema_test

import (
	"testing"

	"obelus/engine/schema"
)

func TestReference_LeadsNowhere(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{"properties": {"x": {"$ref": "#/$defs/n", "$defs": {"n": {}}}}}`,
			`properties.x: $ref "#/$defs/n" leads nowhere: # is the whole schema, for a parameter the tool's, and "n" is defined in properties.x: move its $defs to the top, beside properties`},
		{`{"properties": {"x": {"items": {"$ref": "#/definitions/n"}, "definitions": {"n": {}}}}}`,
			`properties.x.items: $ref "#/definitions/n" leads nowhere: # is the whole schema, for a parameter the tool's, and "n" is defined in properties.x: move its definitions to the top, beside properties`},
		{`{"$defs": {"node": {}}, "prefixItems": [true, {"$ref": "#/$defs/nod"}]}`, `prefixItems[1]: $ref "#/$defs/nod" leads nowhere (did you mean "#/$defs/node"?)`},
		{`{"$defs": {"node": {}}, "$ref": "$defs/node"}`, `$ref "$defs/node" is another document, and a schema must stand by itself (did you mean "#/$defs/node"?)`},
		{`{"$defs": {"node": {"$anchor": "here"}}, "not": {"$ref": "#her"}}`, `not: $ref "#her" leads nowhere (did you mean "#here"?)`},
		{`{"$dynamicRef": "#gone"}`, `$dynamicRef "#gone" leads nowhere`},
		{`{"items": {"$ref": "https://example.com/item.json"}}`, `items: $ref "https://example.com/item.json" is another document, and a schema must stand by itself`},
		{`{"items": {"$ref": "item.json"}, "default": {"$ref": "item.json"}}`, `items: $ref "item.json" is another document, and a schema must stand by itself`},
		{`{"$ref": "#/properties/a/b/c"}`, `$ref "#/properties/a/b/c" leads nowhere`},
		{`{"$ref": "sub#/$defs/k", "$defs": {"a": {"$id": "sub"}}}`, `$ref "sub#/$defs/k" leads nowhere`},
	} {
		_, err := schema.New(decoded(t, test.schema))
		if want := "not a JSON Schema: " + test.want; err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", test.schema, err, want)
		}
	}
}
