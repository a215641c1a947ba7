package store

import (
	"context"
	"iter"
)

// Hiding returns a log without the operations of some messages, which hides tells by their seqs.
func Hiding(log OpReader, hides func(seq int64) bool) OpReader { return &hiding{log, hides} }

type hiding struct {
	OpReader
	hides func(seq int64) bool
}

// Touching implements [OpReader].
func (h *hiding) Touching(ctx context.Context, q Query) iter.Seq2[Op, error] {
	return func(yield func(Op, error) bool) {
		for op, err := range h.OpReader.Touching(ctx, q) {
			if err == nil && h.hides(op.Seq) {
				continue
			}
			if !yield(op, err) {
				return
			}
		}
	}
}
