-- Version 4: forks, and contexts that are pruned. A fork begins with what other
-- contexts hold up to some point, without a copy of it.
--   SELECT seq, date, kind, path, data FROM log WHERE context = 'order-7-again' ORDER BY seq;

ALTER TABLE contexts ADD COLUMN fork TEXT;       -- the context that it was forked from
ALTER TABLE contexts ADD COLUMN fork_at INTEGER; -- that context's newest message that it shares

CREATE TABLE lineage (
  context  TEXT NOT NULL,                -- a fork
  ancestor TEXT NOT NULL,                -- a context of whose messages it holds some
  upto     INTEGER NOT NULL,             -- those up to this seq
  n        INTEGER NOT NULL,             -- and the events up to this position
  PRIMARY KEY (context, ancestor)
) WITHOUT ROWID;

CREATE INDEX lineage_ancestor ON lineage (ancestor);

CREATE TRIGGER lineage_update BEFORE UPDATE ON lineage
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER contexts_update;
CREATE TRIGGER contexts_update BEFORE UPDATE OF context, parent, parent_call, created, fork, fork_at ON contexts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- A fork's own messages follow those that it shares.
DROP TRIGGER messages_insert;
CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT 1 + COALESCE(
  (SELECT MAX(seq) FROM messages WHERE context = NEW.context), (SELECT MAX(upto) FROM lineage WHERE context = NEW.context), 0)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: seq must follow the newest of its context'); END;

-- A context can only go as a whole, by prune, and never one that a fork needs.
CREATE TABLE pruning (
  context TEXT NOT NULL PRIMARY KEY      -- what is being removed; empty at all other times
) WITHOUT ROWID;

DROP TRIGGER contexts_delete;
CREATE TRIGGER contexts_delete BEFORE DELETE ON contexts
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER messages_delete;
CREATE TRIGGER messages_delete BEFORE DELETE ON messages
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER writes_delete;
CREATE TRIGGER writes_delete BEFORE DELETE ON writes
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

DROP TRIGGER journal_delete;
CREATE TRIGGER journal_delete BEFORE DELETE ON journal
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER lineage_delete BEFORE DELETE ON lineage
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER pruning_insert BEFORE INSERT ON pruning
WHEN EXISTS (SELECT 1 FROM lineage WHERE ancestor = NEW.context)
BEGIN SELECT RAISE(ABORT, 'a fork needs this context'); END;

-- What each context holds: its own, and what it shares.
CREATE VIEW spans (context, source, upto, n) AS
SELECT context, context, 9223372036854775807, 9223372036854775807 FROM contexts
UNION ALL SELECT context, ancestor, upto, n FROM lineage;

-- The messages of a context in order, those that a fork shares among them.
CREATE VIEW log (context, seq, date, type, kind, instance, path, method, data, schema, description, mode, call, producer, written, source) AS
SELECT s.context, m.seq, m.date, m.type, m.kind, m.instance, m.path, m.method, m.data, m.schema, m.description, m.mode, m.call, m.producer, m.written, s.source
FROM spans AS s CROSS JOIN messages AS m ON m.context = s.source AND m.seq <= s.upto;

-- The views as before, over what forks share too.
DROP VIEW history;
CREATE VIEW history (context, path, instance, seq, date, value, method, call, tool, producer) AS
SELECT context, path, instance, seq, date,
  COALESCE(data -> place, (
    SELECT data -> fullkey FROM json_tree(data)
    WHERE replace(replace(replace(fullkey, '[', '.'), ']', ''), '"', '') = replace(place, '"', ''))),
  method, call, producer ->> '$._tool', producer
FROM (
  SELECT s.context, w.path, w.instance, w.seq, m.date, m.data, m.call, m.producer,
    CASE WHEN m.kind = 'error' THEN 'set' WHEN m.producer IS NULL THEN 'merge' ELSE COALESCE(m.method, 'set') END AS method,
    '$' || replace(replace(replace(replace(replace(replace(
      substr(w.path, length(m.kind) + 2),
      '\\', char(1)), '\"', char(2)), '["', '."'), '"]', '"'), char(2), '\"'), char(1), '\\') AS place
  FROM spans AS s CROSS JOIN writes AS w ON w.context = s.source AND w.seq <= s.upto
    CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq);

DROP VIEW failures;
DROP VIEW calls;
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation) AS
SELECT context, call, data ->> '$.tick', data ->> '$.position', data ->> '$.tool', data ->> '$.status', data ->> '$.instance',
  data ->> '$.attempts', data ->> '$.started', data ->> '$.duration_ms', date, data ->> '$.script', data ->> '$.script_sha256',
  data -> '$.reads', data -> '$.writes', data -> '$.error', data ->> '$.reason', data -> '$.waiting_on', data ->> '$.generation'
FROM (
  SELECT s.context AS context, j.call AS call, j.date AS date, j.data AS data, max(j.n)
  FROM spans AS s CROSS JOIN journal AS j ON j.context = s.source AND j.n <= s.n
  WHERE j.call IS NOT NULL GROUP BY s.context, j.call);

CREATE VIEW failures (context, call, tool, date, message, error, script) AS
SELECT context, call, tool, changed, error ->> '$.message', error, script FROM calls WHERE status = 'failed';

DROP VIEW runs;
CREATE VIEW runs (context, tick, plan, started, ended, status, output, error) AS
SELECT context, tick, plan, started, iif(data ->> '$.status' = 'running', NULL, ended), COALESCE(data ->> '$.status', 'running'), data -> '$.output', data ->> '$.error'
FROM (
  SELECT s.context AS context, p.data ->> '$.tick' AS tick, p.data ->> '$.plan' AS plan, p.date AS started, r.date AS ended, r.data AS data
  FROM spans AS s CROSS JOIN journal AS p ON p.context = s.source AND p.n <= s.n LEFT JOIN journal AS r ON r.n = (
    SELECT max(e.n) FROM spans AS t CROSS JOIN journal AS e ON e.context = t.source AND e.n <= t.n
    WHERE t.context = s.context AND e.event = 'run' AND e.call IS NULL AND e.data ->> '$.tick' = p.data ->> '$.tick')
  WHERE p.event = 'plan' AND p.call IS NULL);
