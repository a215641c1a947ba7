-- Version 9: calls and runs of one context are found without those of others, and in
-- a context of many runs at a cost that grows with them and no faster.
--
-- What a context holds is asked for as an array, once for the context: where SQLite
-- joins or groups, it would do so for all contexts, or for each run anew.

-- Every call of every plan, as it stands: what the last of its events says. One
-- that nothing has happened to yet is blocked; when its tick has ended there is
-- none of these, and before that no other tick begins.
--   SELECT call, tool, status, duration_ms, script, script_sha256 FROM calls WHERE context = 'order-7';
-- reads and writes are JSON: {"†state.a": 5} with the newest seq that each
-- value came from, and ["†state.b"].
DROP VIEW failures;
DROP VIEW calls;
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation) AS
SELECT o.context, j.call, j.data ->> '$.tick', j.data ->> '$.position', j.data ->> '$.tool', j.data ->> '$.status', j.data ->> '$.instance',
  j.data ->> '$.attempts', j.data ->> '$.started', j.data ->> '$.duration_ms', j.date, j.data ->> '$.script', j.data ->> '$.script_sha256',
  j.data -> '$.reads', j.data -> '$.writes', j.data -> '$.error', j.data ->> '$.reason', j.data -> '$.waiting_on', j.data ->> '$.generation'
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
  p.plan ->> ('$[' || (c.value - 1) || ']._instance'), 0, NULL, 0.0, p.date, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
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

-- Every plan that was run, and how it stands: done, failed, waiting, cancelled or
-- running; one whose process died says running too.
DROP VIEW runs;
CREATE VIEW runs (context, tick, plan, started, ended, status, output, error) AS
SELECT context, tick, plan, started, iif(data ->> '$.status' = 'running', NULL, ended), COALESCE(data ->> '$.status', 'running'), data -> '$.output', data ->> '$.error'
FROM (
  SELECT o.context AS context, p.data ->> '$.tick' AS tick, p.data ->> '$.plan' AS plan, p.date AS started, r.date AS ended, r.data AS data
  FROM contexts AS o CROSS JOIN json_each((
      SELECT json_group_array(json_array(began, stands)) FROM (
        SELECT max(iif(event = 'plan', n, NULL)) AS began, max(iif(event = 'run', n, NULL)) AS stands FROM (
          SELECT n, event, data ->> '$.tick' AS tick FROM journal WHERE context = o.context AND event IN ('plan', 'run') AND call IS NULL
          UNION ALL SELECT e.n, e.event, e.data ->> '$.tick' FROM lineage AS l CROSS JOIN journal AS e ON e.context = l.ancestor AND e.n <= l.n
          WHERE l.context = o.context AND e.event IN ('plan', 'run') AND e.call IS NULL)
        GROUP BY tick))) AS tick
    CROSS JOIN journal AS p ON p.n = tick.value ->> '$[0]' LEFT JOIN journal AS r ON r.n = tick.value ->> '$[1]');
