-- Version 22: a fire-and-forget call whose process has ended is interrupted, or in doubt, as any other.
ALTER TABLE contexts ADD COLUMN background INTEGER NOT NULL DEFAULT 0; -- calls of the run for which it does not wait, and that have not ended, once it has ended or halted

DROP VIEW calls;
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation, handled,
  model, input_tokens, output_tokens, cost, due, "if") AS
SELECT o.context, j.call, j.data ->> '$.tick', j.data ->> '$.position', j.data ->> '$.tool', CASE
    WHEN j.data ->> '$.status' NOT IN ('running', 'blocked', 'waiting', 'cancelled') OR o.held THEN j.data ->> '$.status'
    WHEN (j.data ->> '$.status' IN ('running', 'waiting') AND j.data ->> '$.rests' OR j.data ->> '$.status' = 'blocked' AND j.data ->> '$.attempts' > 0 AND j.data -> '$.error' IS NOT NULL)
      AND o.stands ->> '$.status' = 'cancelled' AND o.stands ->> '$.stopped' IS NULL THEN 'cancelled'
    WHEN j.data ->> '$.status' = 'running' OR j.data ->> '$.status' = 'cancelled' AND o.stands ->> '$.stopped'
    THEN iif(j.data ->> '$.once' AND j.data ->> '$.rests' IS NULL, 'in-doubt', 'interrupted')
    WHEN j.data ->> '$.status' = 'blocked' AND j.data ->> '$.attempts' > 0 AND j.data -> '$.error' IS NOT NULL THEN 'interrupted'
    ELSE j.data ->> '$.status' END, j.data ->> '$.instance',
  j.data ->> '$.attempts' + (j.data ->> '$.status' = 'running' AND j.data ->> '$.rests' IS NULL AND j.data ->> '$.child' IS NULL AND NOT o.held),
  j.data ->> '$.started', j.data ->> '$.duration_ms', j.date, j.data ->> '$.script', j.data ->> '$.script_sha256',
  j.data -> '$.reads', j.data -> '$.writes', j.data -> '$.error',
  j.data ->> '$.reason', j.data -> '$.waiting_on', j.data ->> '$.generation', j.data -> '$.handled',
  j.data ->> '$.model.model', j.data ->> '$.model.input', j.data ->> '$.model.output', j.data ->> '$.model.cost',
  iif(j.data ->> '$.status' = 'waiting' AND NOT o.held AND o.stands ->> '$.status' = 'cancelled' AND o.stands ->> '$.stopped' IS NULL, NULL, j.data ->> '$.due'),
  j.data -> '$.if'
FROM (
    SELECT c.context, EXISTS (SELECT 1 FROM leases AS l WHERE l.context = c.context AND l.until > (julianday('now') - 2440587.5) * 86400000) AS held, (
      SELECT e.data FROM journal AS e WHERE e.n = (SELECT max(n) FROM (
        SELECT max(n) AS n FROM journal WHERE context = c.context AND event IN ('plan', 'run') AND call IS NULL
        UNION ALL SELECT e.n FROM lineage AS l CROSS JOIN journal AS e ON e.context = l.ancestor AND e.n <= l.n
        WHERE l.context = c.context AND e.event IN ('plan', 'run') AND e.call IS NULL))) AS stands
    FROM contexts AS c) AS o CROSS JOIN json_each((
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
