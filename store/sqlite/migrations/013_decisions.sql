-- Version 13: what nobody is at any more is interrupted, a call that failed and was
-- handled says so, and who decided what has a view of its own.

-- Every call of every plan, as it stands: what the last of its events says. One
-- that nothing has happened to yet is blocked; when its tick has ended there is
-- none of these, and before that no other tick begins. One that had started when its
-- process ended is interrupted, or in-doubt where it must not run twice.
--   SELECT call, tool, status, duration_ms, script, script_sha256 FROM calls WHERE context = 'order-7';
-- reads and writes are JSON: {"†state.a": 5} with the newest seq that each
-- value came from, and ["†state.b"]. handled is that of a call which is done, though
-- it failed: its failure went where the plan has it, {"code": …, "message": …}.
DROP VIEW failures;
DROP VIEW calls;
CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation, handled) AS
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
  j.data -> '$.handled'
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
  p.plan ->> ('$[' || (c.value - 1) || ']._instance'), 0, NULL, 0.0, p.date, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
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

-- Every plan that was run, and how it stands: done, failed, waiting, interrupted,
-- cancelled or running. One whose process died is interrupted once its lease has
-- lapsed, 30 seconds later at most; obelus contexts knows at once.
DROP VIEW runs;
CREATE VIEW runs (context, tick, plan, started, ended, status, output, error) AS
SELECT context, tick, plan, started, iif(stands = 'running', NULL, ended), CASE
    WHEN stands = 'running' AND NOT held OR stands = 'cancelled' AND data ->> '$.stopped' THEN 'interrupted'
    ELSE stands END, data -> '$.output', data ->> '$.error'
FROM (
  SELECT o.context AS context, p.data ->> '$.tick' AS tick, p.data ->> '$.plan' AS plan, p.date AS started, r.date AS ended, r.data AS data,
    COALESCE(r.data ->> '$.status', 'running') AS stands,
    EXISTS (SELECT 1 FROM leases WHERE context = o.context AND until > (julianday('now') - 2440587.5) * 86400000) AS held
  FROM contexts AS o CROSS JOIN json_each((
      SELECT json_group_array(json_array(began, stands)) FROM (
        SELECT max(iif(event = 'plan', n, NULL)) AS began, max(iif(event = 'run', n, NULL)) AS stands FROM (
          SELECT n, event, data ->> '$.tick' AS tick FROM journal WHERE context = o.context AND event IN ('plan', 'run') AND call IS NULL
          UNION ALL SELECT e.n, e.event, e.data ->> '$.tick' FROM lineage AS l CROSS JOIN journal AS e ON e.context = l.ancestor AND e.n <= l.n
          WHERE l.context = o.context AND e.event IN ('plan', 'run') AND e.call IS NULL)
        GROUP BY tick))) AS tick
    CROSS JOIN journal AS p ON p.n = tick.value ->> '$[0]' LEFT JOIN journal AS r ON r.n = tick.value ->> '$[1]');

-- What persons decided: approved, rejected, released (a lazy plan), retried, skipped,
-- given (a result that a person knew), rerun or cancelled; who, when, what they were
-- shown and what they corrected of it, both as JSON, and why.
--   SELECT date, "by", decision, call, tool, shown, corrected, reason FROM decisions WHERE context = 'order-7';
-- by is as the program knows it, a login name or a token, and claimed what they called
-- themselves beside it; NULL in what was decided before version 13.
CREATE VIEW decisions (context, call, tool, decision, "by", claimed, date, shown, corrected, reason) AS
SELECT d.context, d.call, r.data ->> '$.tool', d.decision, d."by", d.claimed, d.date, iif(d.decision IN ('approved', 'rejected'), r.data -> '$.hold.arguments', NULL), d.corrected, d.reason
FROM (
  SELECT s.context AS context, e.n AS n, e.call AS call, e.data ->> '$.hold.decision' AS decision, e.data ->> '$.hold.by' AS "by", e.data ->> '$.hold.claimed' AS claimed,
    e.date AS date, (
      SELECT json_group_object(a.key, json(CASE a.type WHEN 'text' THEN json_quote(a.value) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE a.value END))
      FROM json_each(e.data, '$.hold.arguments') AS a WHERE a.key IN (SELECT value FROM json_each(e.data, '$.hold.corrected')) HAVING count(*) > 0) AS corrected,
    e.data ->> '$.hold.reason' AS reason
  FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'ready' AND e.call IS NOT NULL
  UNION ALL SELECT s.context, e.n, e.data ->> '$.call', e.data ->> '$.decision', e.data ->> '$.by', e.data ->> '$.claimed', e.date, e.data -> '$.corrected', NULL
  FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'decision' AND e.call IS NULL) AS d
  LEFT JOIN journal AS r ON r.n = (
    SELECT max(b.n) FROM spans AS s CROSS JOIN journal AS b ON b.context = s.source AND b.n <= s.n WHERE s.context = d.context AND b.call = d.call AND b.n < d.n)
WHERE d.decision NOT IN ('approved', 'rejected') OR r.event = 'held' -- of two decisions at once the first counts
UNION ALL SELECT s.context, NULL, NULL, 'released', e.data ->> '$.by', e.data ->> '$.claimed', e.date, NULL, NULL, NULL
FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'release' AND e.call IS NULL
  AND NOT EXISTS ( -- nor of two releases of one plan
    SELECT 1 FROM spans AS f CROSS JOIN journal AS b ON b.context = f.source AND b.n <= f.n
    WHERE f.context = s.context AND b.event = 'release' AND b.call IS NULL AND b.n < e.n AND b.data ->> '$.tick' = e.data ->> '$.tick')
UNION ALL SELECT s.context, NULL, NULL, 'cancelled', e.data ->> '$.by', e.data ->> '$.claimed', e.date, NULL, NULL, NULL
FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'run' AND e.call IS NULL AND e.data ->> '$.by' IS NOT NULL;
