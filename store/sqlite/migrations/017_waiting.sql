-- Version 17: the row of a context says whether calls of its run pause before another
-- attempt, and what a waiting run waits for.
--   SELECT context, plan, retrying FROM contexts WHERE retrying > 0;
--   SELECT context, updated, waiting_on FROM contexts WHERE status = 'waiting' ORDER BY updated;
ALTER TABLE contexts ADD COLUMN retrying INTEGER NOT NULL DEFAULT 0; -- calls of its newest tick that have failed and pause before the next attempt
ALTER TABLE contexts ADD COLUMN waiting_on TEXT;                     -- JSON: the first paths that a waiting run waits for, ["†input.receipt"]

CREATE INDEX contexts_retrying ON contexts (retrying) WHERE retrying > 0;
CREATE INDEX contexts_waiting ON contexts (updated) WHERE waiting_on IS NOT NULL;

-- What the journal says of waiting runs: the newest record of each call of their newest
-- ticks. Each journal is read once.
UPDATE contexts SET retrying = c.retrying FROM (
  SELECT context, count(*) AS retrying FROM (
    SELECT o.context AS context, max(j.n), j.data ->> '$.status' AS status, j.data ->> '$.rests' AS rests
    FROM contexts AS o CROSS JOIN spans AS s ON s.context = o.context CROSS JOIN journal AS j ON j.context = s.source AND j.n <= s.n
    WHERE o.status = 'waiting' AND j.call IS NOT NULL AND j.data ->> '$.tick' = o.tick
    GROUP BY o.context, j.call)
  WHERE rests AND status IN ('running', 'waiting') GROUP BY context) AS c
WHERE c.context = contexts.context;

UPDATE contexts SET waiting_on = c.paths FROM (
  SELECT context, json_group_array(path) AS paths FROM (
    SELECT o.context AS context, p.value AS path, row_number() OVER (PARTITION BY o.context ORDER BY p.value) AS place
    FROM contexts AS o CROSS JOIN calls AS c ON c.context = o.context AND c.tick = o.tick CROSS JOIN json_each(c.waiting_on) AS p
    WHERE o.status = 'waiting' AND c.status = 'waiting' GROUP BY o.context, p.value)
  WHERE place <= 32 GROUP BY context) AS c
WHERE c.context = contexts.context;
