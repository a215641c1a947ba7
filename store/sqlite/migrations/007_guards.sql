-- Version 7: what is refused, once more.

-- Inserting costs less. RAISE(ABORT) undoes a statement and nothing else, for
-- which SQLite copies every page that the statement changes. RAISE(ROLLBACK)
-- ends the transaction, as a writer of the log does itself. And an event comes
-- after all others. (That a mark is one of the newest message is not looked at:
-- to find that, SQLite reads all of the message.)
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
WHEN NEW.n <= (SELECT MAX(n) FROM journal)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: n must follow the newest event'); END;

-- A context goes as a whole: when its row goes, which prune alone may remove,
-- all else goes with it, and as long as that is there nothing else does. A new
-- one of that name begins with nothing.
DROP TRIGGER contexts_insert;
CREATE TRIGGER contexts_insert BEFORE INSERT ON contexts
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = NEW.context) OR EXISTS (SELECT 1 FROM messages WHERE context = NEW.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: there is a context of that name'); END;

DROP TRIGGER contexts_delete;
CREATE TRIGGER contexts_delete BEFORE DELETE ON contexts
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context) OR EXISTS (SELECT 1 FROM lineage WHERE ancestor = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER contexts_pruned AFTER DELETE ON contexts
BEGIN
  -- No lease that is given for a context of that name must be one that there was:
  -- the row of no context holds the greatest epoch of those that are gone.
  INSERT INTO leases (context, epoch, host, boot, namespace, pid, started, until)
    SELECT '', epoch, '', '', '', 0, '', 0 FROM leases WHERE context = OLD.context
    ON CONFLICT DO UPDATE SET epoch = max(epoch, excluded.epoch);
  DELETE FROM leases WHERE context = OLD.context;
  DELETE FROM lineage WHERE context = OLD.context;
  DELETE FROM messages WHERE context = OLD.context;
  DELETE FROM writes WHERE context = OLD.context;
  DELETE FROM leaves WHERE context = OLD.context;
  DELETE FROM journal WHERE context = OLD.context;
  DELETE FROM pruning WHERE context = OLD.context;
END;

DROP TRIGGER messages_delete;
CREATE TRIGGER messages_delete BEFORE DELETE ON messages
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER writes_delete;
CREATE TRIGGER writes_delete BEFORE DELETE ON writes
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER leaves_delete;
CREATE TRIGGER leaves_delete BEFORE DELETE ON leaves
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER journal_delete;
CREATE TRIGGER journal_delete BEFORE DELETE ON journal
WHEN OLD.context = '' OR EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER lineage_delete;
CREATE TRIGGER lineage_delete BEFORE DELETE ON lineage
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
