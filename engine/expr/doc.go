// Package expr reads, checks and evaluates the expressions of plans: references such as
// †state.user.name, the operators around them, templates that hold several, and the output paths
// that say where a result goes.
//
// [Parse] compiles an expression, [Expr.Eval] evaluates it: a function of the caller looks
// references up, || and && choose by whether references are missing, and integers of any size stay
// exact. An evaluation is bounded in time and in the values that it makes. An expression is
// immutable and safe for concurrent use. [ParseOutput] reads an output path. expr-lang/expr parses
// both and evaluates output paths. Errors are of type [*Error] and carry the column.
package expr
