package api

import (
	"cmp"
	"strconv"
	"strings"
)

const jsonType = "application/json"

// errorSchema is the schema of an answer that is an error.
func errorSchema() Schema {
	problem := Object(Schema{
		"file?": Text(), "line?": Positive(), "call?": Positive(), "tool?": Text(), "severity": Schema{"enum": []any{"error", "warning"}}, "code": Text(), "message": Text(),
	})
	check := List(problem)
	check["description"] = "The problems of a plan, a script or a message that is refused, as obelus check has them."
	return Object(Schema{"error": Object(Schema{"code": Text(), "message": Text(), "check?": check})})
}

// Document returns an OpenAPI 3.1 document about operations. server is the URL that paths begin
// with.
func Document(all []Operation, server string) map[string]any {
	paths := map[string]any{}
	for _, o := range all {
		path := strings.ReplaceAll(o.Path, "...}", "}")
		methods, ok := paths[path].(map[string]any)
		if !ok {
			methods = map[string]any{}
			paths[path] = methods
		}
		methods[strings.ToLower(o.Method)] = o.document()
	}
	var tags []any
	for _, tag := range Tags {
		tags = append(tags, map[string]any{"name": tag.Name, "description": tag.About})
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Obelus", "version": "1",
			"description": "Runs plans on request, answers questions about the log, streams events, and takes decisions. " +
				"x-role is the role that a token needs: read, run or decide, each of which includes those before it.",
		},
		"servers": []any{map[string]any{"url": server}},
		"tags":    tags,
		"paths":   paths,
		"components": map[string]any{
			"schemas":         map[string]any{"Error": errorSchema()},
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}
}

// document returns the object of an operation.
func (o *Operation) document() map[string]any {
	operation := map[string]any{
		"operationId": o.ID, "tags": []any{o.Tag}, "summary": o.Summary, "responses": o.responses(),
	}
	if o.Detail != "" {
		operation["description"] = o.Detail
	}
	var parameters []any
	for _, p := range o.Parameters {
		documented := map[string]any{"name": p.Name, "in": p.In, "description": p.About, "schema": p.Schema}
		if p.Required {
			documented["required"] = true
		}
		parameters = append(parameters, documented)
	}
	if parameters != nil {
		operation["parameters"] = parameters
	}
	if o.Body != nil {
		operation["requestBody"] = map[string]any{"content": map[string]any{cmp.Or(o.BodyType, jsonType): map[string]any{"schema": o.Body}}}
	}
	if o.Role == "" {
		operation["security"] = []any{}
	} else {
		operation["security"], operation["x-role"] = []any{map[string]any{"token": []any{}}}, o.Role
	}
	return operation
}

// responses returns the answers of an operation, by status.
func (o *Operation) responses() map[string]any {
	all := map[string]any{"default": map[string]any{
		"description": "The request is refused, or can't be answered.",
		"content":     map[string]any{jsonType: map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Error"}}},
	}}
	for _, a := range o.Answers {
		media := map[string]any{}
		if a.Schema != nil {
			media["schema"] = a.Schema
		}
		all[strconv.Itoa(a.Status)] = map[string]any{"description": a.About, "content": map[string]any{cmp.Or(a.Type, jsonType): media}}
	}
	return all
}
