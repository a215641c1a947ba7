// Package fit makes of a JSON Schema one that a provider of language models takes, and reads the
// values that fit it as values of the original.
//
// Providers take different parts of JSON Schema: a [Dialect] lists the keywords of one, and its
// limits. [Schema] fits a schema to a dialect:
//
//	dialect, _ := fit.DialectOf("openai")
//	fitted, err := fit.Schema(schema, dialect)
//
// A bound that the dialect lacks is said in the description; a value that it has no schema for is
// written as JSON text; a property that may be missing is null where all are required.
// [Fitted.Undo] reads a model's answer back: it parses the texts and drops the nulls. The result
// must then be validated against the original schema, since the fitted one may take more.
//
// Schemas are [Object] values, which keep the order of their members: a model writes its answer in
// the order of the properties. [Order] makes one of any schema.
package fit
