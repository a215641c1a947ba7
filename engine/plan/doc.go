// Package plan holds what runs are made of and compiles it: tools and activities in a
// [Registry], the [Request] that a plan's file or a planner gives, and its calls.
//
// [Compile] checks a request's calls against their tools, finds which call waits for which from
// the paths that they read and write, and gives an immutable [Plan]. What is wrong comes as a
// [*PlanError], a [Problem] for each fault, with the line of the plan's file.
//
// Go programs implement [Activity] and [Planner]; package host makes both of Lua.
package plan
