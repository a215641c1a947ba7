-- Version 6: calls that have not begun, values inside what was written, and no
-- row that is written over.

-- REPLACE deletes without asking the triggers of DELETE. What is inserted again
-- as it is may be, since scripts and generations are.
CREATE TRIGGER writes_insert BEFORE INSERT ON writes
WHEN EXISTS (SELECT 1 FROM writes WHERE context = NEW.context AND path = NEW.path AND instance = NEW.instance AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER leaves_insert BEFORE INSERT ON leaves
WHEN EXISTS (SELECT 1 FROM leaves WHERE context = NEW.context AND path = NEW.path AND instance = NEW.instance AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER scripts_insert BEFORE INSERT ON scripts
WHEN EXISTS (SELECT 1 FROM scripts WHERE sha256 = NEW.sha256 AND path = NEW.path AND source <> NEW.source)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER generations_insert BEFORE INSERT ON generations
WHEN EXISTS (SELECT 1 FROM generations WHERE generation = NEW.generation AND path = NEW.path AND sha256 <> NEW.sha256)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER lineage_insert BEFORE INSERT ON lineage
WHEN EXISTS (SELECT 1 FROM lineage WHERE context = NEW.context AND ancestor = NEW.ancestor)
  OR EXISTS (SELECT 1 FROM messages WHERE context = NEW.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: a context begins with what it shares'); END;

-- Every value that was ever written, under each path that the write names, and
-- within an object that was written, of each scalar, array and {}.
--   SELECT date, value, call, tool FROM history
--   WHERE context = 'order-7' AND path = '†state.user.status' ORDER BY seq;
-- Its two tables are joined each by itself: of one for both SQLite would read all.
DROP VIEW history;
CREATE VIEW history (context, path, instance, seq, date, value, method, call, tool, producer) AS
SELECT context, path, instance, seq, date,
  COALESCE(data -> place, (
    SELECT data -> fullkey FROM json_tree(data)
    WHERE replace(replace(replace(fullkey, '[', '.'), ']', ''), '"', '') = replace(place, '"', ''))),
  CASE WHEN kind = 'error' THEN 'set' WHEN producer IS NULL THEN 'merge' ELSE COALESCE(method, 'set') END,
  call, producer ->> '$._tool', producer
FROM (
  SELECT *, '$' || replace(replace(replace(replace(replace(replace(
    substr(path, length(kind) + 2),
    '\\', char(1)), '\"', char(2)), '["', '."'), '"]', '"'), char(2), '\"'), char(1), '\\') AS place
  FROM (
    SELECT s.context, w.path, w.instance, w.seq, m.date, m.kind, m.data, m.method, m.call, m.producer
    FROM spans AS s CROSS JOIN writes AS w ON w.context = s.source AND w.seq <= s.upto
      CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq
    UNION ALL
    SELECT s.context, w.path, w.instance, w.seq, m.date, m.kind, m.data, m.method, m.call, m.producer
    FROM spans AS s CROSS JOIN leaves AS w ON w.context = s.source AND w.seq <= s.upto
      CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq));

-- Every call of every plan, as it stands: what the last of its events says. One
-- that nothing has happened to yet is blocked; when its tick has ended there is
-- none of these.
--   SELECT call, tool, status, duration_ms, script, script_sha256 FROM calls WHERE context = 'order-7';
-- reads and writes are JSON: {"†state.a": 5} with the newest seq that each
-- value came from, and ["†state.b"].
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
  WHERE j.call IS NOT NULL GROUP BY s.context, j.call)
UNION ALL
SELECT p.context, p.tick || '.' || c.value, p.tick, c.value, p.plan ->> ('$[' || (c.value - 1) || ']._tool'), 'blocked',
  p.plan ->> ('$[' || (c.value - 1) || ']._instance'), 0, NULL, 0.0, p.date, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (
  SELECT s.context AS context, j.date AS date, j.data ->> '$.tick' AS tick, m.data AS plan
  FROM spans AS s CROSS JOIN journal AS j ON j.context = s.source AND j.n <= s.n
    CROSS JOIN messages AS m ON m.context = s.source AND m.seq = j.data ->> '$.seq'
  WHERE j.event = 'plan' AND j.call IS NULL AND NOT EXISTS (
    SELECT 1 FROM spans AS t CROSS JOIN journal AS e ON e.context = t.source AND e.n <= t.n
    WHERE t.context = s.context AND e.event = 'run' AND e.call IS NULL
    AND e.data ->> '$.tick' = j.data ->> '$.tick' AND e.data ->> '$.status' IN ('done', 'failed', 'continued'))) AS p
  CROSS JOIN json_each((
    SELECT json_group_array(place) FROM (
      SELECT key + 1 AS place FROM json_each(p.plan)
      EXCEPT SELECT data ->> '$.position' FROM journal WHERE context = p.context AND call IS NOT NULL AND data ->> '$.tick' = p.tick
      EXCEPT SELECT j.data ->> '$.position' FROM lineage AS l CROSS JOIN journal AS j ON j.context = l.ancestor AND j.n <= l.n
      WHERE l.context = p.context AND j.call IS NOT NULL AND j.data ->> '$.tick' = p.tick))) AS c;

CREATE VIEW failures (context, call, tool, date, message, error, script) AS
SELECT context, call, tool, changed, error ->> '$.message', error, script FROM calls WHERE status = 'failed';
