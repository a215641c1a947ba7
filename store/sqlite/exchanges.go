package sqlite

import (
	"context"
	"database/sql/driver"

	"obelus/store"
)

const selectExchanges = `SELECT hash, request, request_bytes, answer, answer_bytes, error, usage FROM exchanges WHERE n = ? ORDER BY position`

// Exchanges implements [store.Log].
func (l *Log) Exchanges(ctx context.Context, n int64) (all []store.Exchange, err error) {
	for x, err := range sequence(l, ctx, func(c *conn, yield func(store.Exchange) bool) error {
		return c.each(ctx, selectExchanges, []driver.Value{n}, func(row []driver.Value) (bool, error) {
			return yield(store.Exchange{
				Hash: text(row[0]), Request: text(row[1]), RequestSize: integer(row[2]), Answer: text(row[3]), AnswerSize: integer(row[4]),
				Error: text(row[5]), Usage: text(row[6]),
			}), nil
		})
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}
