package web

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"obelus/host/internal/setting"
	"obelus/host/web/internal/api"
)

// described returns the operations that clients are told of.
func described(operations []operation) (all []api.Operation) {
	for i := range operations {
		if operations[i].Tag != "" {
			all = append(all, operations[i].describe())
		}
	}
	return all
}

// describe describes the operation for clients.
func (o *operation) describe() api.Operation {
	described := api.Operation{
		ID: o.ID, Method: o.method(), Path: o.path(), Tag: o.Tag, Summary: o.Summary, Detail: o.Detail, Example: o.Example,
		Parameters: o.parameters(), Body: o.Body, BodyType: o.BodyType, Answers: o.answers(),
	}
	if !o.Open {
		described.Role = o.role().String()
	}
	if o.hasFields() {
		described.Body = o.bodySchema()
	}
	return described
}

// parameters describes the parts of the path, and the parameters of the query.
func (o *operation) parameters() (all []api.Parameter) {
	if o.in == nil {
		return nil
	}
	for _, form := range []*setting.Form{&pathForm, &queryForm} {
		for _, field := range form.Fields(o.in) {
			all = append(all, api.Parameter{
				Name: field.Name, In: form.Tag, About: field.About, Schema: parameterSchema(form, field), Required: form == &pathForm || field.Required != "", Example: field.Example,
			})
		}
	}
	return all
}

// parameterSchema returns the schema of a parameter.
func parameterSchema(form *setting.Form, field setting.Field) api.Schema {
	kind, _ := form.KindOf(field)
	switch {
	case kind.Schema != nil:
		return kind.Schema
	case isList(field):
		return api.List(api.Text())
	case field.Type.Kind() == reflect.Bool:
		return api.Boolean()
	}
	return api.Text()
}

// bodySchema returns the schema of a body that is read into the struct.
func (o *operation) bodySchema() api.Schema {
	var fields []reflect.StructField
	for _, field := range reflect.VisibleFields(o.in) {
		if field.Tag.Get("json") != "" {
			fields = append(fields, field)
		}
	}
	var required []string
	for _, field := range bodyForm.Fields(o.in) {
		if field.Required != "" {
			required = append(required, field.Name)
		}
	}
	return api.Body(fields, required)
}

// answers describes the answers that are no errors.
func (o *operation) answers() []api.Answer {
	if o.Answers != nil {
		return o.Answers()
	}
	answer := api.Answer{Status: http.StatusOK, Type: o.Type, About: o.Answer}
	switch {
	case o.Schema != nil:
		answer.Schema = o.Schema()
	case o.out != nil:
		if l, ok := reflect.Zero(o.out).Interface().(interface{ schema() api.Schema }); ok {
			answer.Schema = l.schema()
		} else {
			answer.Schema = api.OfType(o.out)
		}
	}
	return []api.Answer{answer}
}

// help lists the operations for people.
func help(operations []operation) string {
	var b strings.Builder
	for i := range operations {
		o := &operations[i]
		fmt.Fprintf(&b, "%s %s\n%s", o.method(), o.path(), setting.Paragraph(o.Summary+" "+o.Detail, 2))
		if o.in != nil {
			query := slices.Clone(queryForm.Fields(o.in))
			for i := range query {
				query[i].Name = "?" + query[i].Name
			}
			b.WriteString(setting.Help(query))
		}
		if o.hasFields() {
			b.WriteString(setting.Help(bodyForm.Fields(o.in)))
		}
		for _, a := range o.answers() {
			b.WriteString(setting.Paragraph(fmt.Sprintf("%d: %s%s", a.Status, a.About, a.Fields()), 2))
		}
		b.WriteString("\n")
	}
	return b.String()
}
