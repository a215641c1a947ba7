-- Version 23: a lazy plan is released as it was given or corrected, or rejected with a reason. Corrections
-- stand by call and place ("1.2.amount"); a call that was dropped has null.
DROP VIEW decisions;
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
UNION ALL SELECT s.context, NULL, NULL, coalesce(e.data ->> '$.decision', 'released'), e.data ->> '$.by', e.data ->> '$.claimed', e.date, e.data -> '$.shown',
  e.data -> '$.corrected', e.data ->> '$.reason'
FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'release' AND e.call IS NULL
  AND NOT EXISTS ( -- nor of two releases of one plan; a fork may release it once more
    SELECT 1 FROM journal AS b
    WHERE b.context = e.context AND b.event = 'release' AND b.call IS NULL AND b.n < e.n AND b.data ->> '$.tick' = e.data ->> '$.tick')
UNION ALL SELECT s.context, NULL, NULL, 'cancelled', e.data ->> '$.by', e.data ->> '$.claimed', e.date, NULL, NULL, NULL
FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'run' AND e.call IS NULL AND e.data ->> '$.by' IS NOT NULL;

-- When the newest run began, and how long it was at work when it ended or halted last: without the times
-- in which it waited. error has also the failure of a call that made it fail.
ALTER TABLE contexts ADD COLUMN started TEXT;
ALTER TABLE contexts ADD COLUMN worked_ms REAL NOT NULL DEFAULT 0;

DROP VIEW runs;
CREATE VIEW runs (context, tick, plan, started, ended, status, output, error) AS
SELECT context, tick, plan, started, iif(stands = 'running', NULL, ended), CASE
    WHEN stands = 'running' AND NOT held OR stands = 'cancelled' AND data ->> '$.stopped' THEN 'interrupted'
    ELSE stands END, data -> '$.output', COALESCE(data ->> '$.cause', data ->> '$.error')
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
