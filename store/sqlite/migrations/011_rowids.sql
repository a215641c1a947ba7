-- Version 11: who gives a row a number of its own can't take that of another row,
-- which would be replaced. A row that is given none has the number -1 before it is
-- inserted, and one above 0 after.

DROP TRIGGER messages_insert;
CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT 1 + COALESCE(
  (SELECT MAX(seq) FROM messages WHERE context = NEW.context), (SELECT MAX(upto) FROM lineage WHERE context = NEW.context), 0)
  OR EXISTS (SELECT 1 FROM messages WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: seq must follow the newest of its context, and a rowid be new'); END;

CREATE TRIGGER messages_rowid AFTER INSERT ON messages WHEN NEW.rowid < 1
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: a rowid must be above 0'); END;

DROP TRIGGER scripts_insert;
CREATE TRIGGER scripts_insert BEFORE INSERT ON scripts
WHEN EXISTS (SELECT 1 FROM scripts WHERE rowid = NEW.rowid OR sha256 = NEW.sha256 AND path = NEW.path AND source <> NEW.source)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER scripts_rowid AFTER INSERT ON scripts WHEN NEW.rowid < 1
BEGIN SELECT RAISE(ABORT, 'the log is append-only: a rowid must be above 0'); END;
