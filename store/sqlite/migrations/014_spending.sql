-- Version 14: what models used.

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
DROP VIEW failures;
DROP VIEW calls;
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation, handled,
  model, input_tokens, output_tokens, cost) AS
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
  j.data ->> '$.model.model', j.data ->> '$.model.input', j.data ->> '$.model.output', j.data ->> '$.model.cost'
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
  NULL, NULL, NULL, NULL
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

-- What models used, for calls and for plans, which have no call. Of calls that one
-- request answered the first has it, and the others have its name as their group. tokens
-- of the cache are among input, those of the reasoning among output. cost is in US
-- dollars, NULL without a price; estimated is 1 where the provider did not say. A fork has
-- what was spent in it, and not what was spent before.
--   SELECT model, sum(requests), sum(input), sum(output), sum(cost) FROM spending GROUP BY model;
CREATE VIEW spending (context, tick, call, tool, model, served, requests, input, output, cache_read, cache_write, reasoning, cost, estimated,
  mode, finish, ms, request, "group", date) AS
SELECT j.context, j.data ->> '$.tick', j.call, j.data ->> '$.tool', j.data ->> '$.model.model', j.data ->> '$.model.served', j.data ->> '$.model.requests',
  j.data ->> '$.model.input', j.data ->> '$.model.output', COALESCE(j.data ->> '$.model.cache_read', 0), COALESCE(j.data ->> '$.model.cache_write', 0),
  COALESCE(j.data ->> '$.model.reasoning', 0), j.data ->> '$.model.cost', COALESCE(j.data ->> '$.model.estimated', 0),
  j.data ->> '$.model.mode', j.data ->> '$.model.finish', j.data ->> '$.model.ms', j.data ->> '$.model.request', j.data ->> '$.model.group', j.date
FROM contexts AS o CROSS JOIN json_each((
    SELECT json_group_array(n) FROM (
      SELECT max(n) AS n FROM journal WHERE context = o.context AND call IS NOT NULL GROUP BY call
      UNION ALL SELECT n FROM journal WHERE context = o.context AND event IN ('plan', 'run') AND call IS NULL))) AS last
  CROSS JOIN journal AS j ON j.n = last.value
WHERE j.data -> '$.model' IS NOT NULL;
