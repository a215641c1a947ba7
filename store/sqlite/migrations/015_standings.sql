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
