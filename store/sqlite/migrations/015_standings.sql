-- Version 15: the row of a context says how its newest run stands, so that lists, counts
-- and what is due need no look into the journal. Each append that changes it writes the
-- row in its own transaction; of a context that is being run, updated, bytes and the
-- numbers of calls may be a second behind.
--   SELECT context, status, plan, done || '/' || calls FROM contexts WHERE parent IS NULL ORDER BY updated DESC LIMIT 20;
--   SELECT status, count(*) FROM contexts GROUP BY status;
-- A run whose status is running and that nobody holds (leases) is interrupted.
ALTER TABLE contexts ADD COLUMN status TEXT NOT NULL DEFAULT '';     -- of its newest run, '' where nothing has run
ALTER TABLE contexts ADD COLUMN plan TEXT NOT NULL DEFAULT '';       -- the plan's file
ALTER TABLE contexts ADD COLUMN tick INTEGER NOT NULL DEFAULT 0;     -- its newest tick; the next five are about the calls of that
ALTER TABLE contexts ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;    -- how many there are
ALTER TABLE contexts ADD COLUMN done INTEGER NOT NULL DEFAULT 0;     -- how many are done
ALTER TABLE contexts ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;   -- have failed
ALTER TABLE contexts ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;  -- wait for something from outside
ALTER TABLE contexts ADD COLUMN held INTEGER NOT NULL DEFAULT 0;     -- wait for a person; 1 for a plan that waits to be released
ALTER TABLE contexts ADD COLUMN error TEXT NOT NULL DEFAULT '';      -- why the run failed
ALTER TABLE contexts ADD COLUMN due TEXT;                            -- when to look at it if nobody holds it; NULL for never
ALTER TABLE contexts ADD COLUMN wakes INTEGER NOT NULL DEFAULT 0;    -- 1 if new messages and decisions make it due
ALTER TABLE contexts ADD COLUMN labels TEXT;                         -- JSON: those that the run was started with, {"customer":"7"}
ALTER TABLE contexts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;    -- of JSON in its messages; without what a fork shares

ALTER TABLE contexts ADD COLUMN once INTEGER NOT NULL DEFAULT 0;     -- 1 if its name was to be made once: by a schedule, a hook, a key

-- The names of pruned contexts that were to be made once: they stay taken for 30 days.
CREATE TABLE tombstones (
  context TEXT NOT NULL PRIMARY KEY,     -- the name
  pruned  TEXT NOT NULL                  -- when the context was pruned
) WITHOUT ROWID;

CREATE INDEX contexts_parent ON contexts (parent) WHERE parent IS NOT NULL;
CREATE INDEX contexts_updated ON contexts (updated, status, parent);
CREATE INDEX contexts_due ON contexts (due) WHERE due IS NOT NULL;
CREATE INDEX contexts_held ON contexts (held) WHERE held > 0;

-- What the journal says of older contexts. All that could go on is due: whoever looks finds
-- out whether it does.
UPDATE contexts SET bytes = COALESCE((
  SELECT sum(COALESCE(octet_length(data), 0) + COALESCE(octet_length(schema), 0) + COALESCE(octet_length(producer), 0))
  FROM messages AS m WHERE m.context = contexts.context), 0);

UPDATE contexts SET status = COALESCE(s.status, ''), plan = COALESCE(s.plan, ''), tick = s.tick, error = COALESCE(s.error, ''),
  due = iif(s.status IN ('running', 'waiting') OR s.stopped OR s.behind, strftime('%Y-%m-%dT%H:%M:%fZ', updated), NULL), wakes = s.status = 'waiting',
  held = s.mode IS 'lazy' AND s.status = 'waiting' AND NOT EXISTS (
    SELECT 1 FROM spans AS p CROSS JOIN journal AS e ON e.context = p.source AND e.n <= p.n
    WHERE p.context = contexts.context AND e.event = 'release' AND e.call IS NULL AND e.n > s.n)
FROM (
  SELECT o.context AS context, p.n AS n, p.data ->> '$.plan' AS plan, p.data ->> '$.tick' AS tick, p.data ->> '$.mode' AS mode, r.data ->> '$.error' AS error,
    COALESCE(r.data ->> '$.stopped', 0) AS stopped, COALESCE(r.data ->> '$.behind', 0) AS behind, CASE
      WHEN r.data IS NULL OR r.data ->> '$.status' = 'continued' THEN 'running'
      WHEN r.data ->> '$.status' = 'cancelled' AND r.data ->> '$.stopped' THEN 'interrupted'
      ELSE r.data ->> '$.status' END AS status
  FROM contexts AS o CROSS JOIN json_each((
      SELECT json_array(json_array(max(iif(event = 'plan', n, NULL)), max(iif(event = 'run', n, NULL)))) FROM (
        SELECT e.n, e.event FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n
        WHERE s.context = o.context AND e.event IN ('plan', 'run') AND e.call IS NULL))) AS newest
    CROSS JOIN journal AS p ON p.n = newest.value ->> '$[0]' LEFT JOIN journal AS r ON r.n = newest.value ->> '$[1]' AND r.n > p.n) AS s
WHERE s.context = contexts.context;

UPDATE contexts SET calls = c.calls, done = c.done, failed = c.failed, waiting = c.waiting, held = contexts.held + c.held
FROM (
  SELECT o.context AS context, count(*) AS calls, total(c.status = 'done') AS done, total(c.status = 'failed') AS failed, total(c.status = 'waiting') AS waiting,
    total(c.status = 'held') AS held
  FROM contexts AS o CROSS JOIN calls AS c ON c.context = o.context AND c.tick = o.tick GROUP BY o.context) AS c
WHERE c.context = contexts.context;

-- Every call of every plan, as it stands: what the last of its events says. One
-- that nothing has happened to yet is blocked; when its tick has ended there is
-- none of these, and before that no other tick begins. One that had started when its
-- process ended is interrupted, or in-doubt where it must not run twice.
--   SELECT call, tool, status, duration_ms, script, script_sha256 FROM calls WHERE context = 'order-7';
-- reads and writes are JSON: {"†state.a": 5} with the newest seq that each
-- value came from, and ["†state.b"]. handled is that of a call which is done, though
-- it failed: its failure went where the plan has it, {"code": …, "message": …}.
-- model is the one that answered a call, with its tokens and its cost in US dollars, NULL
-- where it has no price. Of calls that one request answered the first has what all used.
-- due is when a call with a time is due, and if says of one with a condition whether that
-- held, and what it read.
DROP VIEW failures;
DROP VIEW calls;
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation, handled,
  model, input_tokens, output_tokens, cost, due, "if") AS
SELECT o.context, j.call, j.data ->> '$.tick', j.data ->> '$.position', j.data ->> '$.tool', CASE
    WHEN j.data ->> '$.status' = 'running' AND NOT EXISTS (SELECT 1 FROM leases WHERE context = o.context AND until > (julianday('now') - 2440587.5) * 86400000)
      OR j.data ->> '$.status' = 'blocked' AND j.data ->> '$.attempts' > 0 AND j.data -> '$.error' IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM leases WHERE context = o.context AND until > (julianday('now') - 2440587.5) * 86400000)
      OR j.data ->> '$.status' = 'cancelled' AND (
        SELECT e.data ->> '$.stopped' FROM journal AS e WHERE e.n = (SELECT max(n) FROM (
          SELECT max(n) AS n FROM journal WHERE context = o.context AND event = 'run' AND call IS NULL
          UNION ALL SELECT e.n FROM lineage AS l CROSS JOIN journal AS e ON e.context = l.ancestor AND e.n <= l.n
          WHERE l.context = o.context AND e.event = 'run' AND e.call IS NULL)))
    THEN iif(j.data ->> '$.once' AND j.data ->> '$.rests' IS NULL AND j.data ->> '$.status' <> 'blocked', 'in-doubt', 'interrupted')
    ELSE j.data ->> '$.status' END, j.data ->> '$.instance',
  j.data ->> '$.attempts', j.data ->> '$.started', j.data ->> '$.duration_ms', j.date, j.data ->> '$.script', j.data ->> '$.script_sha256',
  j.data -> '$.reads', j.data -> '$.writes', j.data -> '$.error', j.data ->> '$.reason', j.data -> '$.waiting_on', j.data ->> '$.generation',
  j.data -> '$.handled',
  j.data ->> '$.model.model', j.data ->> '$.model.input', j.data ->> '$.model.output', j.data ->> '$.model.cost', j.data ->> '$.due', j.data -> '$.if'
FROM contexts AS o CROSS JOIN json_each((
    SELECT json_group_array(n) FROM (
      SELECT max(n) AS n FROM (
        SELECT call, n FROM journal WHERE context = o.context AND call IS NOT NULL
        UNION ALL SELECT e.call, e.n FROM lineage AS l CROSS JOIN journal AS e ON e.context = l.ancestor AND e.n <= l.n
        WHERE l.context = o.context AND e.call IS NOT NULL)
      GROUP BY call))) AS last
  CROSS JOIN journal AS j ON j.n = last.value
UNION ALL
SELECT p.context, p.tick || '.' || c.value, p.tick, c.value, p.plan ->> ('$[' || (c.value - 1) || ']._tool'), 'blocked',
  p.plan ->> ('$[' || (c.value - 1) || ']._instance'), 0, NULL, 0.0, p.date, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL
FROM (
  SELECT o.context AS context, j.date AS date, j.data ->> '$.tick' AS tick, m.data AS plan
  FROM contexts AS o CROSS JOIN journal AS j ON j.n = (
      SELECT max(n) FROM (
        SELECT max(n) AS n FROM journal WHERE context = o.context AND event = 'plan' AND call IS NULL
        UNION ALL SELECT e.n FROM lineage AS l CROSS JOIN journal AS e ON e.context = l.ancestor AND e.n <= l.n
        WHERE l.context = o.context AND e.event = 'plan' AND e.call IS NULL))
    CROSS JOIN messages AS m ON m.context = j.context AND m.seq = j.data ->> '$.seq'
  WHERE NOT EXISTS (
    SELECT 1 FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n
    WHERE s.context = o.context AND e.event = 'run' AND e.call IS NULL AND e.n > j.n
    AND e.data ->> '$.status' IN ('done', 'failed', 'continued'))) AS p
  CROSS JOIN json_each((
    SELECT json_group_array(place) FROM (
      SELECT key + 1 AS place FROM json_each(p.plan)
      EXCEPT SELECT data ->> '$.position' FROM journal WHERE context = p.context AND call IS NOT NULL AND data ->> '$.tick' = p.tick
      EXCEPT SELECT j.data ->> '$.position' FROM lineage AS l CROSS JOIN journal AS j ON j.context = l.ancestor AND j.n <= l.n
      WHERE l.context = p.context AND j.call IS NOT NULL AND j.data ->> '$.tick' = p.tick))) AS c;

CREATE VIEW failures (context, call, tool, date, message, error, script) AS
SELECT context, call, tool, changed, error ->> '$.message', error, script FROM calls WHERE status = 'failed';
