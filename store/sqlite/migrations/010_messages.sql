-- Version 10: messages stand in the order in which they came, and an index finds them.
-- Where the rows themselves are in the order of their key SQLite reads all of a row to
-- compare it, also one of many megabytes, at each append beside it.

PRAGMA legacy_alter_table = ON; -- what names the table goes on to name it
DROP INDEX messages_schema;
DROP INDEX messages_other;
DROP TRIGGER messages_update;
DROP TRIGGER messages_insert;
DROP TRIGGER messages_delete;
ALTER TABLE messages RENAME TO messages_by_key;
PRAGMA legacy_alter_table = OFF;

CREATE TABLE messages (
  context     TEXT NOT NULL,             -- the context that it belongs to
  seq         INTEGER NOT NULL,          -- 1, 2, 3 … without gaps in its context
  date        TEXT NOT NULL,             -- when it was appended
  type        TEXT NOT NULL,             -- data, tool, plan, system or text
  kind        TEXT,                      -- of a data message: state, input, error …
  instance    TEXT NOT NULL DEFAULT '',  -- the instance that it belongs to; '' for all
  path        TEXT,                      -- where its call wrote: '†state.user.status'; NULL if no call wrote it
  method      TEXT,                      -- _outputMethod, if the call gave one: set, merge, assign, push, concat
  data        TEXT,                      -- JSON: what it says. For data, a value of the whole kind, {"user":{"status":…}}
  schema      TEXT,                      -- JSON: the JSON Schema that it declares for its kind
  description TEXT,                      -- of a data message
  mode        TEXT,                      -- of a plan: eager or lazy
  call        TEXT,                      -- the call that wrote it by its place in the context: tick.position, '1.2'
  producer    TEXT,                      -- JSON, _call: that call as issued, references unresolved
  written     TEXT,                      -- _date: when that call wrote it
  PRIMARY KEY (context, seq)
);

INSERT INTO messages SELECT * FROM messages_by_key ORDER BY context, seq;
DROP TABLE messages_by_key;

CREATE INDEX messages_schema ON messages (context, kind, seq) WHERE schema IS NOT NULL;
CREATE INDEX messages_other ON messages (context, type, seq) WHERE type <> 'data';

CREATE TRIGGER messages_update BEFORE UPDATE ON messages
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT 1 + COALESCE(
  (SELECT MAX(seq) FROM messages WHERE context = NEW.context), (SELECT MAX(upto) FROM lineage WHERE context = NEW.context), 0)
BEGIN SELECT RAISE(ROLLBACK, 'the log is append-only: seq must follow the newest of its context'); END;

CREATE TRIGGER messages_delete BEFORE DELETE ON messages
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
