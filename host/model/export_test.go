package model

// For tests in package model_test.
const (
	TextMark = textMark
	Wrapper  = wrapper
)

// Ordered is orderSchema.
func Ordered(schema any) (any, error) { return orderSchema(schema) }
