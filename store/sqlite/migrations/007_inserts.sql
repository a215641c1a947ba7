-- Version 7: inserting costs less. RAISE(ABORT) undoes a statement and nothing
-- else, for which SQLite copies every page that the statement changes.
-- RAISE(ROLLBACK) ends the transaction, as a writer of the log does itself.

DROP TRIGGER messages_insert;
CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT 1 + COALESCE(
  (SELECT MAX(seq) FROM messages WHERE context = NEW.context), (SELECT MAX(upto) FROM lineage WHERE context = NEW.context), 0)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: seq must follow the newest of its context'); END;

DROP TRIGGER writes_insert;
CREATE TRIGGER writes_insert BEFORE INSERT ON writes
WHEN EXISTS (SELECT 1 FROM writes WHERE context = NEW.context AND path = NEW.path AND instance = NEW.instance AND seq = NEW.seq)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only'); END;

DROP TRIGGER leaves_insert;
CREATE TRIGGER leaves_insert BEFORE INSERT ON leaves
WHEN EXISTS (SELECT 1 FROM leaves WHERE context = NEW.context AND path = NEW.path AND instance = NEW.instance AND seq = NEW.seq)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only'); END;

DROP TRIGGER journal_insert;
CREATE TRIGGER journal_insert BEFORE INSERT ON journal
WHEN EXISTS (SELECT 1 FROM journal WHERE n = NEW.n)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: there is an event of that n'); END;
