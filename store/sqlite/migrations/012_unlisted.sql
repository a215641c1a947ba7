-- Version 12: an object of more than 256 leaves has one row in writes and none in leaves,
-- lest one message of many keys hold up all that is written beside it. What is merged has
-- its row at the deepest path that all its leaves have in common. Its form is 10 where it
-- took the place of all that was there, 11 where it joined an object (merge, assign).
-- history has one row for it too, with all of its value. What was written before keeps
-- its rows.
CREATE INDEX writes_unlisted ON writes (context, path, instance, seq, form) WHERE form > 9;

-- The current value of every path, to plain sqlite3.
--   SELECT value FROM current_values WHERE context = 'order-7' AND path = '†state.user.status';
-- value is JSON; read a string or a number out of it with value ->> '$'.
DROP VIEW current_values;

-- The current value of every leaf of what the context holds: of each scalar,
-- array and {}. It is the newest that was written there, if nothing was written
-- above it or below it since; for push and concat, all since the last value.
-- Rows of an instance are those to which it wrote itself; where it has none, it
-- sees those of instance ''.
--
-- Left out: what was written inside an array has no rows, and the array's value
-- is NULL then, for all of it (obelus get knows both). Inside is what was written
-- from below the array: an object that was written at it or above took its place,
-- whatever its keys. Where that was merged onto the array, what was written below it
-- since may have no rows either, as {} has none that was merged onto such an array,
-- and what an instance wrote where a global message made an array. A key with a " in it has a value only in
-- SQLites that find such keys (3.40 does not).
--
-- An object of more than 256 leaves has one row, with all of its value. That is NULL
-- once something was written below it, which has rows of its own then, and where it
-- joined an object with something in it; what was written below it before has no rows.
-- What was written inside of what may be an array in it has none either.
--
-- In the parts below, src is where a context's messages are; seen is whose
-- messages count for an instance, whose own come after those for all; up cuts
-- the path wherever . or [ stands, which inside a quoted key gives no path.
CREATE VIEW current_values (context, path, instance, value, seq, date, call, tool) AS
SELECT context, path, instance, CASE
  WHEN form IN (2, 7, 8) AND EXISTS ( -- something was written inside the array
    WITH RECURSIVE src (source, upto) AS (SELECT v.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = v.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT v.instance, iif(v.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(v.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0)
    SELECT 1 FROM src CROSS JOIN seen WHERE EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > v.path || '.' AND b.path < v.path || '/'
      AND b.instance = inst AND b.seq <= upto AND first + b.seq > iif(v.form = 2, v.seq + iif(v.instance = '', 0, 1125899906842624), COALESCE((
        SELECT max(first + (
          SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(v.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
          AND first + a.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) AND iif(a.path = v.path, a.form NOT IN (7, 8, 9), a.form NOT IN (5, 6)) ORDER BY a.seq DESC LIMIT 1))
        FROM up CROSS JOIN src CROSS JOIN seen WHERE n > 0), 0))
      AND substr(b.path, length(v.path) + 1 + 1, 1) BETWEEN '0' AND '9' AND substr(ltrim(substr(b.path, length(v.path) + 1 + 1), '0123456789') || '.', 1, 1) IN ('.', '[')
      AND (SELECT COALESCE(length(iif(kind = 'error', NULL, path)), length(kind) + 1) FROM messages AS o WHERE o.context = b.context AND o.seq = b.seq) > length(v.path))) THEN NULL
  WHEN form > 9 AND EXISTS ( -- something was written below the object since
    WITH src (source, upto) AS (SELECT v.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = v.context)
    SELECT 1 FROM src WHERE EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > v.path || '.' AND b.path < v.path || '/'
      AND b.instance = v.instance AND b.seq > v.seq AND b.seq <= upto)
    OR EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > v.path || '[' AND b.path < v.path || '\'
      AND b.instance = v.instance AND b.seq > v.seq AND b.seq <= upto)) THEN NULL
  WHEN form = 11 AND EXISTS ( -- it joined an object with something in it
    WITH RECURSIVE src (source, upto) AS (SELECT v.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = v.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT v.instance, iif(v.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(v.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0),
      settled (r) AS (SELECT COALESCE(max(first + (
          SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(v.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
          AND first + a.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) AND a.form NOT IN (5, 6) ORDER BY a.seq DESC LIMIT 1)), 0)
        FROM up CROSS JOIN src CROSS JOIN seen WHERE n > 0)
    SELECT 1 FROM settled CROSS JOIN src CROSS JOIN seen WHERE EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > v.path || '.' AND b.path < v.path || '/'
      AND b.instance = inst AND b.seq <= upto AND first + b.seq >= settled.r AND first + b.seq < v.seq + iif(v.instance = '', 0, 1125899906842624))
    OR EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > v.path || '[' AND b.path < v.path || '\'
      AND b.instance = inst AND b.seq <= upto AND first + b.seq >= settled.r AND first + b.seq < v.seq + iif(v.instance = '', 0, 1125899906842624))
    OR settled.r > 0 AND EXISTS (
      SELECT 1 FROM up CROSS JOIN writes AS a ON a.context = source AND a.path = substr(v.path, 1, n - 1) AND a.instance = inst
      AND a.seq <= upto AND a.seq = settled.r - first AND a.form > 9 WHERE n > 0)) THEN NULL
  WHEN form NOT IN (7, 8, 9) THEN COALESCE(data -> place, (
    SELECT data -> fullkey FROM json_tree(data)
    WHERE replace(replace(replace(fullkey, '[', '.'), ']', ''), '"', '') = replace(place, '"', '')))
  ELSE ( -- all that was pushed and appended since the last value of another kind
    WITH RECURSIVE src (source, upto) AS (SELECT v.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = v.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT v.instance, iif(v.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(v.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0),
      settled (r, place) AS MATERIALIZED (SELECT COALESCE(max(max(
          COALESCE(first + (
            SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(v.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
            AND first + a.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) AND iif(a.path = v.path, a.form NOT IN (7, 8, 9), a.form NOT IN (5, 6)) ORDER BY a.seq DESC LIMIT 1), 0),
          COALESCE(first + (
            SELECT b.seq FROM marks AS b WHERE n > length(v.path) AND b.context = source AND b.path > v.path || '.' AND b.path < v.path || '/' AND b.instance = inst
            AND b.seq <= upto AND first + b.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) ORDER BY b.seq DESC LIMIT 1), 0),
          COALESCE(first + (
            SELECT b.seq FROM marks AS b WHERE n > length(v.path) AND b.context = source AND b.path > v.path || '[' AND b.path < v.path || '\' AND b.instance = inst
            AND b.seq <= upto AND first + b.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) ORDER BY b.seq DESC LIMIT 1), 0))), 0), v.place
        FROM up CROSS JOIN src CROSS JOIN seen WHERE n > 0),
      steps (r, form, value) AS (
        SELECT first + w.seq, w.form, m.data -> settled.place FROM settled CROSS JOIN src CROSS JOIN seen
          CROSS JOIN writes AS w ON w.context = source AND w.path = v.path AND w.instance = inst AND w.seq <= upto AND w.seq >= settled.r - first
          CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq WHERE first + w.seq <= v.seq + iif(v.instance = '', 0, 1125899906842624)
        UNION ALL SELECT settled.r, w.form, m.data -> settled.place FROM settled CROSS JOIN src CROSS JOIN seen
          CROSS JOIN leaves AS w ON w.context = source AND w.path = v.path AND w.instance = inst AND w.seq <= upto AND w.seq = settled.r - first
          CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq),
      joined (r, form, value, joins) AS MATERIALIZED (
        SELECT r, form, value, COALESCE(iif(form = 9, before IN (1, 9), form IN (7, 8) AND before IN (2, 7, 8)), 0)
        FROM (SELECT r, form, value, lag(form) OVER (ORDER BY r) AS before FROM steps)),
      start (at) AS (SELECT max(r) FROM joined WHERE NOT joins),
      last (form, value) AS (SELECT form, value FROM start CROSS JOIN joined WHERE r >= at ORDER BY r)
    SELECT CASE WHEN count(*) > count(value) OR EXISTS ( -- it joined what stands in an object without leaves
        SELECT 1 FROM settled CROSS JOIN up CROSS JOIN src CROSS JOIN seen
          CROSS JOIN writes AS a ON a.context = source AND a.path = substr(v.path, 1, n - 1) AND a.instance = inst
          AND a.seq <= upto AND a.seq = settled.r - first AND a.form > 9 WHERE n > 0 AND n <= length(v.path)) THEN NULL WHEN v.form = 9 THEN json_quote(group_concat(value ->> '$', ''))
      ELSE '[' || COALESCE(group_concat(iif(form = 7, value, nullif(substr(value, 2, length(value) - 2), '')), ','), '') || ']' END FROM last) END,
  seq, date, call, producer ->> '$._tool'
FROM (
  SELECT c.context, c.path, c.instance, c.seq, c.form, m.date, m.data, m.call, m.producer,
    '$' || replace(replace(replace(replace(replace(replace(
      substr(c.path, length(m.kind) + 2),
      '\\', char(1)), '\"', char(2)), '["', '."'), '"]', '"'), char(2), '\"'), char(1), '\\') AS place
  FROM ( -- the newest at each path, in the context itself and in each that it shares
    SELECT context, path, instance, max(seq) AS seq, form, context AS source FROM writes GROUP BY context, path, instance HAVING form < 10
    UNION ALL SELECT context, path, instance, max(seq), form, context FROM leaves GROUP BY context, path, instance
    UNION ALL SELECT l.context, w.path, w.instance, max(w.seq), w.form, l.ancestor
      FROM lineage AS l CROSS JOIN writes AS w ON w.context = l.ancestor AND w.seq <= l.upto GROUP BY l.context, w.path, w.instance, l.ancestor HAVING w.form < 10
    UNION ALL SELECT l.context, w.path, w.instance, max(w.seq), w.form, l.ancestor
      FROM lineage AS l CROSS JOIN leaves AS w ON w.context = l.ancestor AND w.seq <= l.upto GROUP BY l.context, w.path, w.instance, l.ancestor
    -- and the newest object without leaves, which what joins it at its path does not replace
    UNION ALL SELECT context, path, instance, max(seq), form, context FROM writes WHERE form > 9 GROUP BY context, path, instance
    UNION ALL SELECT l.context, w.path, w.instance, max(w.seq), w.form, l.ancestor
      FROM lineage AS l CROSS JOIN writes AS w ON w.context = l.ancestor AND w.seq <= l.upto WHERE w.form > 9 GROUP BY l.context, w.path, w.instance, l.ancestor
  ) AS c CROSS JOIN messages AS m ON m.context = c.source AND m.seq = c.seq
  WHERE c.form NOT IN (4, 6)
  AND NOT EXISTS ( -- replaced at it or above it since
    WITH RECURSIVE src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context),
      up (n, rest) AS (SELECT 0, replace(c.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0)
    SELECT 1 FROM up CROSS JOIN src WHERE n > 0 AND EXISTS (
      SELECT 1 FROM marks AS a WHERE a.context = source AND a.path = substr(c.path, 1, n - 1)
      AND a.instance = c.instance AND a.seq > c.seq AND a.seq <= upto AND (a.form NOT IN (5, 6) OR a.path = c.path AND c.form < 10)))
  AND (c.form > 9 OR NOT EXISTS ( -- made an object by what was written below it since
    WITH src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context)
    SELECT 1 FROM src WHERE EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > c.path || '.' AND b.path < c.path || '/'
      AND b.instance = c.instance AND b.seq > c.seq AND b.seq <= upto AND NOT (c.form IN (2, 7, 8) AND substr(b.path, length(c.path) + 1 + 1, 1) BETWEEN '0' AND '9' AND substr(ltrim(substr(b.path, length(c.path) + 1 + 1), '0123456789') || '.', 1, 1) IN ('.', '[')
        AND (SELECT COALESCE(length(iif(kind = 'error', NULL, path)), length(kind) + 1) FROM messages AS o WHERE o.context = b.context AND o.seq = b.seq) > length(c.path)))
    OR EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > c.path || '[' AND b.path < c.path || '\'
      AND b.instance = c.instance AND b.seq > c.seq AND b.seq <= upto)))
  AND NOT (c.form = 5 AND EXISTS ( -- an object with something in it that {} joined, or one without leaves
    WITH RECURSIVE src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT c.instance, iif(c.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(c.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0),
      settled (r) AS (SELECT COALESCE(max(first + (
          SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(c.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
          AND first + a.seq < c.seq + iif(c.instance = '', 0, 1125899906842624) AND a.form NOT IN (5, 6) ORDER BY a.seq DESC LIMIT 1)), 0)
        FROM up CROSS JOIN src CROSS JOIN seen WHERE n > 0)
    SELECT 1 FROM settled CROSS JOIN src CROSS JOIN seen WHERE EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > c.path || '.' AND b.path < c.path || '/'
      AND b.instance = inst AND b.seq <= upto AND first + b.seq >= settled.r)
    OR EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > c.path || '[' AND b.path < c.path || '\'
      AND b.instance = inst AND b.seq <= upto AND first + b.seq >= settled.r)
    OR EXISTS (
      SELECT 1 FROM up CROSS JOIN writes AS a ON a.context = source AND a.path = substr(c.path, 1, n - 1) AND a.instance = inst
      AND a.seq <= upto AND a.seq = settled.r - first AND a.form > 9 WHERE n > 0)))
  AND NOT (c.path GLOB '*.[0-9]*' AND EXISTS ( -- inside what was an array then, or may have been one in an object without leaves
    WITH RECURSIVE src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT c.instance, iif(c.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(c.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0),
      newest (path, r) AS MATERIALIZED (SELECT substr(c.path, 1, n - 1), (
          SELECT max(first + (
            SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(c.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
            AND first + a.seq < c.seq + iif(c.instance = '', 0, 1125899906842624) ORDER BY a.seq DESC LIMIT 1))
          FROM src CROSS JOIN seen)
        FROM up WHERE n > 0 AND n < length(c.path) AND n <= COALESCE(length(iif(m.kind = 'error', NULL, m.path)), length(m.kind) + 1) AND substr(c.path, n + 1, 1) BETWEEN '0' AND '9' AND substr(ltrim(substr(c.path, n + 1), '0123456789') || '.', 1, 1) IN ('.', '[')),
      arrays (path, r) AS MATERIALIZED (SELECT newest.path, newest.r FROM newest CROSS JOIN src CROSS JOIN seen WHERE EXISTS (
          SELECT 1 FROM marks AS a WHERE a.context = source AND a.path = newest.path AND a.instance = inst AND a.seq = newest.r - first
          AND a.seq <= upto AND a.form IN (2, 7, 8))
        UNION ALL SELECT newest.path, first + a.seq FROM newest CROSS JOIN up CROSS JOIN src CROSS JOIN seen
          CROSS JOIN writes AS a ON a.context = source AND a.path = substr(c.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
          AND first + a.seq < c.seq + iif(c.instance = '', 0, 1125899906842624) AND a.form > 9 WHERE n > 0 AND n <= length(newest.path))
    SELECT 1 FROM arrays WHERE NOT EXISTS ( -- replaced above it before
      SELECT 1 FROM up CROSS JOIN src CROSS JOIN seen WHERE n > 0 AND n <= length(arrays.path) AND EXISTS (
        SELECT 1 FROM marks AS a WHERE a.context = source AND a.path = substr(c.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
        AND first + a.seq > arrays.r AND first + a.seq < c.seq + iif(c.instance = '', 0, 1125899906842624) AND a.form NOT IN (5, 6)))))
) AS v;
