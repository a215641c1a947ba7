-- Version 11: who gives a row a number of its own can't take that of another row,
-- which would be replaced.

DROP TRIGGER messages_insert;
CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT 1 + COALESCE(
  (SELECT MAX(seq) FROM messages WHERE context = NEW.context), (SELECT MAX(upto) FROM lineage WHERE context = NEW.context), 0)
  OR EXISTS (SELECT 1 FROM messages WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: seq must follow the newest of its context'); END;

DROP TRIGGER scripts_insert;
CREATE TRIGGER scripts_insert BEFORE INSERT ON scripts
WHEN EXISTS (SELECT 1 FROM scripts WHERE rowid = NEW.rowid OR sha256 = NEW.sha256 AND path = NEW.path AND source <> NEW.source)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
