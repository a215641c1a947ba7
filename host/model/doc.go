// Package model asks language models: it makes requests for latent calls and for plans, and checks
// the answers.
//
// A [Model] answers latent calls ([obelus/engine/plan.Model]) and makes plans
// ([obelus/engine/plan.PlanModel]). It says what to ask, and leaves the asking to an [Asker]: a
// client of a provider, a recording of one, or a function of a test.
//
//	m := model.New(model.Config{Name: "wise", Model: "gpt-5-mini"}, asker)
//	registry.Model = m
//
// # Requests
//
// A [Request] is neutral: it has a system text, blocks of text from what never changes to what
// changes last, and the schema of the answer. [Model.AnswerRequest], [Model.PlanRequest] and
// [Model.AskRequest] return one without asking it, for a look at the prompt of a model.
// [Request.Hash] is the same wherever the same is asked.
//
// For an answer, data is shown whole. For a plan it is shown in part, since a plan refers to data
// instead of copying it; texts that begin with † have a second one there, as
// [obelus/engine/plan.Literal] writes them.
//
// # Schemas
//
// The schema of a request for a plan is composed of all tools that the plan may call, and that of a
// request for answers of the results of the calls. The members of these objects have an order: a
// model writes its answer in the order of the properties, so the tool comes first and the result
// last.
//
// Providers take different parts of JSON Schema. An asker fits the schema of a request to its
// provider by package [obelus/host/model/fit], and undoes the same in the answer: [Answer.Value] is
// a value of the request's schema. Where the fitted schema exceeds a limit, the provider would
// refuse or ignore it, and [Request.Loose] is the same question with a smaller schema.
//
// # Answers
//
// The answer of a model is validated against the original schema, whatever the provider promises.
// An answer that does not fit is asked for again, with its error and its call alone, as often as
// [Config.Repairs] says; then it is a fault with the code "schema". A refusal is a failure with the
// code "refused", which a plan may handle. An answer that was cut off is a fault with the code
// "max_tokens", and a prompt that is larger than [Config.Window] one with the code "window".
package model
