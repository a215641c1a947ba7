-- The schema of an obelus log, version 1. It is a public interface: read it
-- with any SQLite. JSON is text that json_extract reads; dates are RFC 3339,
-- UTC, milliseconds. A column without a value is NULL, but for instance, which
-- is '' then, so that it can be compared with =.

CREATE TABLE contexts (
  context     TEXT NOT NULL PRIMARY KEY, -- its name
  parent      TEXT,                      -- the context whose call made it for a delegate
  parent_call TEXT,                      -- that call, such as '1.2'
  created     TEXT NOT NULL,             -- when it was made
  updated     TEXT NOT NULL              -- when it was appended to last, in microseconds: the order of contexts
) WITHOUT ROWID;

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
) WITHOUT ROWID;

-- The two questions that concern few messages, so that they need not read all.
CREATE INDEX messages_schema ON messages (context, kind, seq) WHERE schema IS NOT NULL;
CREATE INDEX messages_other ON messages (context, type, seq) WHERE type <> 'data';

CREATE TABLE writes (
  context  TEXT NOT NULL,                -- the message's context
  path     TEXT NOT NULL,                -- a path that it writes: where its call wrote, or each leaf of what is merged
  instance TEXT NOT NULL DEFAULT '',     -- the message's instance
  seq      INTEGER NOT NULL,             -- the message
  PRIMARY KEY (context, path, instance, seq)
) WITHOUT ROWID;

CREATE TABLE journal (
  n       INTEGER NOT NULL PRIMARY KEY,  -- its position among the events of all contexts
  context TEXT NOT NULL,                 -- the context that it is about
  seq     INTEGER NOT NULL,              -- that context's newest message then, 0 if it had none
  date    TEXT NOT NULL,                 -- when it was written
  call    TEXT,                          -- the call that it is about, such as '1.2'
  event   TEXT NOT NULL,                 -- what happened
  data    TEXT                           -- JSON: more about it
);

-- Each entry of an index ends with n, so that both give events in their order.
-- What is about a run and no call is rare, and looked for often.
CREATE INDEX journal_context ON journal (context);
CREATE INDEX journal_event ON journal (context, event) WHERE call IS NULL;

CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM messages WHERE context = NEW.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: seq must follow the newest of its context'); END;

CREATE TRIGGER messages_update BEFORE UPDATE ON messages
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER messages_delete BEFORE DELETE ON messages
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER writes_update BEFORE UPDATE ON writes
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER writes_delete BEFORE DELETE ON writes
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER journal_insert BEFORE INSERT ON journal
WHEN EXISTS (SELECT 1 FROM journal WHERE n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: there is an event of that n'); END;

CREATE TRIGGER journal_update BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER journal_delete BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER contexts_insert BEFORE INSERT ON contexts
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = NEW.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: there is a context of that name'); END;

CREATE TRIGGER contexts_update BEFORE UPDATE OF context, parent, parent_call, created ON contexts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER contexts_delete BEFORE DELETE ON contexts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Every value that was ever written, under each path that the write names:
--   SELECT date, value, call, tool FROM history
--   WHERE context = 'order-7' AND path = '†state.user.status' ORDER BY seq;
-- value is JSON; read a string or a number out of it with value ->> '$'.
-- method is what the write does to what was there before, also where none was
-- given. A path becomes a JSON path by writing ["key"] as ."key"; \" and \\ in
-- a key are set aside meanwhile. Where data holds an array on the way to the
-- value, its index is found by the names that json_tree gives to places.
CREATE VIEW history (context, path, instance, seq, date, value, method, call, tool, producer) AS
SELECT context, path, instance, seq, date,
  COALESCE(data -> place, (
    SELECT data -> fullkey FROM json_tree(data)
    WHERE replace(replace(replace(fullkey, '[', '.'), ']', ''), '"', '') = replace(place, '"', ''))),
  method, call, producer ->> '$._tool', producer
FROM (
  SELECT w.context, w.path, w.instance, w.seq, m.date, m.data, m.call, m.producer,
    CASE WHEN m.kind = 'error' THEN 'set' WHEN m.producer IS NULL THEN 'merge' ELSE COALESCE(m.method, 'set') END AS method,
    '$' || replace(replace(replace(replace(replace(replace(
      substr(w.path, length(m.kind) + 2),
      '\\', char(1)), '\"', char(2)), '["', '."'), '"]', '"'), char(2), '\"'), char(1), '\\') AS place
  FROM writes AS w CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq);

-- Every call to which something has happened, as it stands: what the last of
-- its events says. A call that has not begun has none yet.
--   SELECT call, tool, status, duration_ms, script, script_sha256 FROM calls WHERE context = 'order-7';
-- reads and writes are JSON: {"†state.a": 5} with the newest seq that each
-- value came from, and ["†state.b"].
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on) AS
SELECT context, call, data ->> '$.tick', data ->> '$.position', data ->> '$.tool', data ->> '$.status', data ->> '$.instance',
  data ->> '$.attempts', data ->> '$.started', data ->> '$.duration_ms', date, data ->> '$.script', data ->> '$.script_sha256',
  data -> '$.reads', data -> '$.writes', data -> '$.error', data ->> '$.reason', data -> '$.waiting_on'
FROM (SELECT context, call, date, data, max(n) FROM journal WHERE call IS NOT NULL GROUP BY context, call);

-- What failed, and why.
CREATE VIEW failures (context, call, tool, date, message, error, script) AS
SELECT context, call, tool, changed, error ->> '$.message', error, script FROM calls WHERE status = 'failed';

-- Every plan that was run, and how it ended: done, failed, waiting or
-- cancelled; without an end it runs, or its process died.
CREATE VIEW runs (context, tick, plan, started, ended, status, output, error) AS
SELECT context, tick, plan, started, ended, COALESCE(data ->> '$.status', 'running'), data -> '$.output', data ->> '$.error'
FROM (
  SELECT p.context, p.data ->> '$.tick' AS tick, p.data ->> '$.plan' AS plan, p.date AS started, r.date AS ended, r.data
  FROM journal AS p LEFT JOIN journal AS r ON r.n = (
    SELECT max(e.n) FROM journal AS e WHERE e.context = p.context AND e.event = 'run' AND e.call IS NULL AND e.data ->> '$.tick' = p.data ->> '$.tick')
  WHERE p.event = 'plan' AND p.call IS NULL);
