package api

import (
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

// Document returns an OpenAPI 3.1 document about routes. server is the URL that paths begin with.
func Document(routes []Route, server string) map[string]any {
	paths := map[string]any{}
	for _, r := range routes {
		path := strings.ReplaceAll(r.Path, "...}", "}")
		operations, ok := paths[path].(map[string]any)
		if !ok {
			operations = map[string]any{}
			paths[path] = operations
		}
		operations[strings.ToLower(r.Method)] = r.document()
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

// document returns the operation of a route.
func (r *Route) document() map[string]any {
	operation := map[string]any{
		"operationId": r.ID, "tags": []any{r.Tag}, "summary": r.Summary, "responses": r.responses(),
	}
	if r.Detail != "" {
		operation["description"] = r.Detail
	}
	var parameters []any
	for _, name := range r.Parts() {
		parameters = append(parameters, r.documentParameter(name, "path"))
	}
	for _, name := range r.Query {
		parameters = append(parameters, r.documentParameter(name, "query"))
	}
	if parameters != nil {
		operation["parameters"] = parameters
	}
	if r.Body != nil {
		kind, media := r.BodyType, map[string]any{"schema": r.Body}
		if kind == "" {
			kind = jsonType
		}
		operation["requestBody"] = map[string]any{"content": map[string]any{kind: media}}
	}
	if r.Role == "" {
		operation["security"] = []any{}
	} else {
		operation["security"], operation["x-role"] = []any{map[string]any{"token": []any{}}}, r.Role
	}
	return operation
}

func (r *Route) documentParameter(name, in string) map[string]any {
	p := r.parameter(name)
	documented := map[string]any{"name": name, "in": in, "description": p.About, "schema": p.Schema}
	if in == "path" {
		documented["required"] = true
	}
	return documented
}

// responses returns the answers of a route, by status.
func (r *Route) responses() map[string]any {
	all := map[string]any{"default": map[string]any{
		"description": "The request is refused, or can't be answered.",
		"content":     map[string]any{jsonType: map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Error"}}},
	}}
	for _, a := range r.Answers {
		kind, media := a.Type, map[string]any{}
		if kind == "" {
			kind = jsonType
		}
		if a.Schema != nil {
			media["schema"] = a.Schema
		}
		all[strconv.Itoa(a.Status)] = map[string]any{"description": a.About, "content": map[string]any{kind: media}}
	}
	return all
}
