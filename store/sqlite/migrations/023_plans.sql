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
  AND NOT EXISTS ( -- nor of two releases of one plan
    SELECT 1 FROM spans AS f CROSS JOIN journal AS b ON b.context = f.source AND b.n <= f.n
    WHERE f.context = s.context AND b.event = 'release' AND b.call IS NULL AND b.n < e.n AND b.data ->> '$.tick' = e.data ->> '$.tick')
UNION ALL SELECT s.context, NULL, NULL, 'cancelled', e.data ->> '$.by', e.data ->> '$.claimed', e.date, NULL, NULL, NULL
FROM spans AS s CROSS JOIN journal AS e ON e.context = s.source AND e.n <= s.n WHERE e.event = 'run' AND e.call IS NULL AND e.data ->> '$.by' IS NOT NULL;
