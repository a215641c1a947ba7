-- Version 17: the row of a context says whether calls of its run pause before another
-- attempt, and what a waiting run waits for.
--   SELECT context, plan, retrying FROM contexts WHERE retrying > 0;
--   SELECT context, updated, waiting_on FROM contexts WHERE status = 'waiting' ORDER BY updated;
ALTER TABLE contexts ADD COLUMN retrying INTEGER NOT NULL DEFAULT 0; -- calls of its newest tick that have failed and pause before the next attempt
ALTER TABLE contexts ADD COLUMN waiting_on TEXT;                     -- JSON: the first paths that a waiting run waits for, ["†input.receipt"]

CREATE INDEX contexts_retrying ON contexts (retrying) WHERE retrying > 0;
CREATE INDEX contexts_waiting ON contexts (updated) WHERE waiting_on IS NOT NULL;

-- What the journal says of contexts whose runs have not ended.
UPDATE contexts SET retrying = c.retrying FROM (
  SELECT o.context AS context, count(*) AS retrying
  FROM contexts AS o CROSS JOIN calls AS c ON c.context = o.context AND c.tick = o.tick
  WHERE o.status IN ('running', 'waiting', 'interrupted') AND c.status IN ('running', 'waiting')
    AND (SELECT j.data ->> '$.rests' FROM spans AS s CROSS JOIN journal AS j ON j.context = s.source AND j.n <= s.n
      WHERE s.context = o.context AND j.call = c.call ORDER BY j.n DESC LIMIT 1)
  GROUP BY o.context) AS c
WHERE c.context = contexts.context;

UPDATE contexts SET waiting_on = c.paths FROM (
  SELECT context, json_group_array(path) AS paths FROM (
    SELECT o.context AS context, p.value AS path, row_number() OVER (PARTITION BY o.context ORDER BY p.value) AS place
    FROM contexts AS o CROSS JOIN calls AS c ON c.context = o.context AND c.tick = o.tick CROSS JOIN json_each(c.waiting_on) AS p
    WHERE o.status = 'waiting' AND c.status = 'waiting' GROUP BY o.context, p.value)
  WHERE place <= 8 GROUP BY context) AS c
WHERE c.context = contexts.context;
