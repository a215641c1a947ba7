package fit

// For tests in package fit_test.
const (
	TextMark = textMark
	Wrapper  = wrapper
)
