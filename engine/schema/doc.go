// Package schema compiles JSON Schemas and validates values against them: the arguments and
// results of tools, messages, and the output of runs.
//
// [New] compiles a schema, which is then safe for concurrent use; a reference leads to no file
// and no network. [Schema.Validate] is bounded in time, and its error names the place and the
// reason in words. A Lua table that is empty is {} in JSON: [Schema.Lists] makes arrays of those
// for which the schema allows an array alone.
package schema
