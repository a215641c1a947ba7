-- Version 5: what the current value of every path is found by (see version 8).

-- What a write leaves at its path, so that the index alone tells what stands:
-- 0 a number, true, false or null, 1 a string, 2 an array, 3 {}, 4 an object
-- with something in it, each in place of all that was there; 5 {} and 6 an
-- object with something in it that join what was there; 7 an array that gets
-- an element (push), 8 one that gets several (concat), 9 a string that gets
-- longer (concat).
ALTER TABLE writes ADD COLUMN form INTEGER;

-- What is there already gets its forms now, and nothing ever again.
DROP TRIGGER writes_update;
CREATE TRIGGER writes_update BEFORE UPDATE ON writes WHEN OLD.form IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- A value that a message puts below the path that it writes: each leaf of an
-- object (a scalar, an array, {}), and each key that assign replaces. What is
-- in writes is not repeated here.
CREATE TABLE leaves (
  context  TEXT NOT NULL,                -- the message's context
  path     TEXT NOT NULL,                -- where the value stands
  instance TEXT NOT NULL DEFAULT '',     -- the message's instance
  seq      INTEGER NOT NULL,             -- the message
  form     INTEGER,                      -- what it leaves there, as in writes
  PRIMARY KEY (context, path, instance, seq)
) WITHOUT ROWID;

CREATE TRIGGER leaves_update BEFORE UPDATE ON leaves
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER leaves_delete BEFORE DELETE ON leaves
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Every place at which a message leaves a value, in its own context.
CREATE VIEW marks (context, path, instance, seq, form) AS
SELECT context, path, instance, seq, form FROM writes UNION ALL SELECT context, path, instance, seq, form FROM leaves;
