-- What a new log is made by. It is written by go generate: what the migrations lead to.
CREATE TABLE contexts (
  context     TEXT NOT NULL PRIMARY KEY, -- its name
  parent      TEXT,                      -- the context whose call made it for a delegate
  parent_call TEXT,                      -- that call, such as '1.2'
  created     TEXT NOT NULL,             -- when it was made
  updated     TEXT NOT NULL              -- when it was appended to last, in microseconds: the order of contexts
, fork TEXT, fork_at INTEGER) WITHOUT ROWID;

CREATE TABLE messages (
  context     TEXT NOT NULL,             -- the context that it belongs to
  seq         INTEGER NOT NULL,          -- 1, 2, 3 … without gaps in its context
  date        TEXT NOT NULL,             -- when it was appended
  type        TEXT NOT NULL,             -- data, tool, plan, system or text
  kind        TEXT,                      -- of a data message: state, input, error …
  instance    TEXT NOT NULL DEFAULT '',  -- the instance that it belongs to; '' for all
  path        TEXT,                      -- where its call wrote: '†state.user.status'; NULL if no call wrote it
  method      TEXT,                      -- _outputMethod, if the call gave one: set, merge, assign, push, concat
  data        TEXT,                      -- JSON: what it says. For data, a value of the whole kind, {"user":{"status":…}}
  schema      TEXT,                      -- JSON: the JSON Schema that it declares for its kind
  description TEXT,                      -- of a data message
  mode        TEXT,                      -- of a plan: eager or lazy
  call        TEXT,                      -- the call that wrote it by its place in the context: tick.position, '1.2'
  producer    TEXT,                      -- JSON, _call: that call as issued, references unresolved
  written     TEXT,                      -- _date: when that call wrote it
  PRIMARY KEY (context, seq)
) WITHOUT ROWID;

CREATE INDEX messages_schema ON messages (context, kind, seq) WHERE schema IS NOT NULL;

CREATE INDEX messages_other ON messages (context, type, seq) WHERE type <> 'data';

CREATE TABLE writes (
  context  TEXT NOT NULL,                -- the message's context
  path     TEXT NOT NULL,                -- a path that it writes: where its call wrote, or each leaf of what is merged
  instance TEXT NOT NULL DEFAULT '',     -- the message's instance
  seq      INTEGER NOT NULL, form INTEGER,             -- the message
  PRIMARY KEY (context, path, instance, seq)
) WITHOUT ROWID;

CREATE TABLE journal (
  n       INTEGER NOT NULL PRIMARY KEY,  -- its position among the events of all contexts
  context TEXT NOT NULL,                 -- the context that it is about
  seq     INTEGER NOT NULL,              -- that context's newest message then, 0 if it had none
  date    TEXT NOT NULL,                 -- when it was written
  call    TEXT,                          -- the call that it is about, such as '1.2'
  event   TEXT NOT NULL,                 -- what happened
  data    TEXT                           -- JSON: more about it
);

CREATE INDEX journal_context ON journal (context);

CREATE INDEX journal_event ON journal (context, event) WHERE call IS NULL;

CREATE TRIGGER messages_update BEFORE UPDATE ON messages
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER journal_insert BEFORE INSERT ON journal
WHEN EXISTS (SELECT 1 FROM journal WHERE n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: there is an event of that n'); END;

CREATE TRIGGER journal_update BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER contexts_insert BEFORE INSERT ON contexts
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = NEW.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: there is a context of that name'); END;

CREATE TABLE leases (
  context TEXT NOT NULL PRIMARY KEY,     -- the context that is held
  epoch   INTEGER NOT NULL,              -- 1, 2, 3 …: which holding of the context it is
  host    TEXT NOT NULL,                 -- the name of the holder's machine
  boot    TEXT NOT NULL,                 -- the machine's boot id, '' where there is none
  namespace TEXT NOT NULL,               -- within which the pid counts, '' where there are no such
  pid     INTEGER NOT NULL,              -- the holder's process
  started TEXT NOT NULL,                 -- when that began, in ticks after the boot, '' where that can't be told
  until   INTEGER NOT NULL               -- when the lease lapses, in milliseconds since 1970; 0 once it has been given back
) WITHOUT ROWID;

CREATE TABLE scripts (
  sha256 TEXT NOT NULL,                  -- of its bytes, in hex
  path   TEXT NOT NULL,                  -- where it lay, below the project
  source TEXT NOT NULL,
  PRIMARY KEY (sha256, path)
);

CREATE TABLE generations (
  generation TEXT NOT NULL,              -- the digest of a whole set of scripts
  path       TEXT NOT NULL,              -- a script of it
  sha256     TEXT NOT NULL,              -- and its version
  PRIMARY KEY (generation, path)
) WITHOUT ROWID;

CREATE TRIGGER scripts_update BEFORE UPDATE ON scripts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER scripts_delete BEFORE DELETE ON scripts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER generations_update BEFORE UPDATE ON generations
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER generations_delete BEFORE DELETE ON generations
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TABLE lineage (
  context  TEXT NOT NULL,                -- a fork
  ancestor TEXT NOT NULL,                -- a context of whose messages it holds some
  upto     INTEGER NOT NULL,             -- those up to this seq
  n        INTEGER NOT NULL,             -- and the events up to this position
  PRIMARY KEY (context, ancestor)
) WITHOUT ROWID;

CREATE INDEX lineage_ancestor ON lineage (ancestor);

CREATE TRIGGER lineage_update BEFORE UPDATE ON lineage
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER contexts_update BEFORE UPDATE OF context, parent, parent_call, created, fork, fork_at ON contexts
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER messages_insert BEFORE INSERT ON messages
WHEN NEW.seq IS NOT 1 + COALESCE(
  (SELECT MAX(seq) FROM messages WHERE context = NEW.context), (SELECT MAX(upto) FROM lineage WHERE context = NEW.context), 0)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: seq must follow the newest of its context'); END;

CREATE TABLE pruning (
  context TEXT NOT NULL PRIMARY KEY      -- what is being removed; empty at all other times
) WITHOUT ROWID;

CREATE TRIGGER contexts_delete BEFORE DELETE ON contexts
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER messages_delete BEFORE DELETE ON messages
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER writes_delete BEFORE DELETE ON writes
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER journal_delete BEFORE DELETE ON journal
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER lineage_delete BEFORE DELETE ON lineage
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER pruning_insert BEFORE INSERT ON pruning
WHEN EXISTS (SELECT 1 FROM lineage WHERE ancestor = NEW.context)
BEGIN SELECT RAISE(ABORT, 'a fork needs this context'); END;

CREATE VIEW spans (context, source, upto, n) AS
SELECT context, context, 9223372036854775807, 9223372036854775807 FROM contexts
UNION ALL SELECT context, ancestor, upto, n FROM lineage;

CREATE VIEW log (context, seq, date, type, kind, instance, path, method, data, schema, description, mode, call, producer, written, source) AS
SELECT s.context, m.seq, m.date, m.type, m.kind, m.instance, m.path, m.method, m.data, m.schema, m.description, m.mode, m.call, m.producer, m.written, s.source
FROM spans AS s CROSS JOIN messages AS m ON m.context = s.source AND m.seq <= s.upto;

CREATE VIEW history (context, path, instance, seq, date, value, method, call, tool, producer) AS
SELECT context, path, instance, seq, date,
  COALESCE(data -> place, (
    SELECT data -> fullkey FROM json_tree(data)
    WHERE replace(replace(replace(fullkey, '[', '.'), ']', ''), '"', '') = replace(place, '"', ''))),
  method, call, producer ->> '$._tool', producer
FROM (
  SELECT s.context, w.path, w.instance, w.seq, m.date, m.data, m.call, m.producer,
    CASE WHEN m.kind = 'error' THEN 'set' WHEN m.producer IS NULL THEN 'merge' ELSE COALESCE(m.method, 'set') END AS method,
    '$' || replace(replace(replace(replace(replace(replace(
      substr(w.path, length(m.kind) + 2),
      '\\', char(1)), '\"', char(2)), '["', '."'), '"]', '"'), char(2), '\"'), char(1), '\\') AS place
  FROM spans AS s CROSS JOIN writes AS w ON w.context = s.source AND w.seq <= s.upto
    CROSS JOIN messages AS m ON m.context = w.context AND m.seq = w.seq);

CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation) AS
SELECT context, call, data ->> '$.tick', data ->> '$.position', data ->> '$.tool', data ->> '$.status', data ->> '$.instance',
  data ->> '$.attempts', data ->> '$.started', data ->> '$.duration_ms', date, data ->> '$.script', data ->> '$.script_sha256',
  data -> '$.reads', data -> '$.writes', data -> '$.error', data ->> '$.reason', data -> '$.waiting_on', data ->> '$.generation'
FROM (
  SELECT s.context AS context, j.call AS call, j.date AS date, j.data AS data, max(j.n)
  FROM spans AS s CROSS JOIN journal AS j ON j.context = s.source AND j.n <= s.n
  WHERE j.call IS NOT NULL GROUP BY s.context, j.call);

CREATE VIEW failures (context, call, tool, date, message, error, script) AS
SELECT context, call, tool, changed, error ->> '$.message', error, script FROM calls WHERE status = 'failed';

CREATE VIEW runs (context, tick, plan, started, ended, status, output, error) AS
SELECT context, tick, plan, started, iif(data ->> '$.status' = 'running', NULL, ended), COALESCE(data ->> '$.status', 'running'), data -> '$.output', data ->> '$.error'
FROM (
  SELECT s.context AS context, p.data ->> '$.tick' AS tick, p.data ->> '$.plan' AS plan, p.date AS started, r.date AS ended, r.data AS data
  FROM spans AS s CROSS JOIN journal AS p ON p.context = s.source AND p.n <= s.n LEFT JOIN journal AS r ON r.n = (
    SELECT max(e.n) FROM spans AS t CROSS JOIN journal AS e ON e.context = t.source AND e.n <= t.n
    WHERE t.context = s.context AND e.event = 'run' AND e.call IS NULL AND e.data ->> '$.tick' = p.data ->> '$.tick')
  WHERE p.event = 'plan' AND p.call IS NULL);

CREATE TRIGGER writes_update BEFORE UPDATE ON writes WHEN OLD.form IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TABLE leaves (
  context  TEXT NOT NULL,                -- the message's context
  path     TEXT NOT NULL,                -- where the value stands
  instance TEXT NOT NULL DEFAULT '',     -- the message's instance
  seq      INTEGER NOT NULL,             -- the message
  form     INTEGER,                      -- what it leaves there, as in writes
  PRIMARY KEY (context, path, instance, seq)
) WITHOUT ROWID;

CREATE TRIGGER leaves_update BEFORE UPDATE ON leaves
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER leaves_delete BEFORE DELETE ON leaves
WHEN NOT EXISTS (SELECT 1 FROM pruning WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE VIEW marks (context, path, instance, seq, form) AS
SELECT context, path, instance, seq, form FROM writes UNION ALL SELECT context, path, instance, seq, form FROM leaves;

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
          AND first + a.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) AND iif(a.path = v.path, a.form < 7, a.form NOT IN (5, 6)) ORDER BY a.seq DESC LIMIT 1))
        FROM up CROSS JOIN src CROSS JOIN seen WHERE n > 0), 0))
      AND substr(b.path, length(v.path) + 1 + 1, 1) BETWEEN '0' AND '9' AND substr(ltrim(substr(b.path, length(v.path) + 1 + 1), '0123456789') || '.', 1, 1) IN ('.', '['))) THEN NULL
  WHEN form < 7 THEN COALESCE(data -> place, (
    SELECT data -> fullkey FROM json_tree(data)
    WHERE replace(replace(replace(fullkey, '[', '.'), ']', ''), '"', '') = replace(place, '"', '')))
  ELSE ( -- all that was pushed and appended since the last value of another kind
    WITH RECURSIVE src (source, upto) AS (SELECT v.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = v.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT v.instance, iif(v.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(v.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0),
      settled (r, place) AS MATERIALIZED (SELECT COALESCE(max(max(
          COALESCE(first + (
            SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(v.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
            AND first + a.seq < v.seq + iif(v.instance = '', 0, 1125899906842624) AND iif(a.path = v.path, a.form < 7, a.form NOT IN (5, 6)) ORDER BY a.seq DESC LIMIT 1), 0),
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
        SELECT r, form, value, COALESCE(iif(form = 9, before IN (1, 9), form > 6 AND before IN (2, 7, 8)), 0)
        FROM (SELECT r, form, value, lag(form) OVER (ORDER BY r) AS before FROM steps)),
      start (at) AS (SELECT max(r) FROM joined WHERE NOT joins),
      last (form, value) AS (SELECT form, value FROM start CROSS JOIN joined WHERE r >= at ORDER BY r)
    SELECT CASE WHEN count(*) > count(value) THEN NULL WHEN v.form = 9 THEN json_quote(group_concat(value ->> '$', ''))
      ELSE '[' || COALESCE(group_concat(iif(form = 7, value, nullif(substr(value, 2, length(value) - 2), '')), ','), '') || ']' END FROM last) END,
  seq, date, call, producer ->> '$._tool'
FROM (
  SELECT c.context, c.path, c.instance, c.seq, c.form, m.date, m.data, m.call, m.producer,
    '$' || replace(replace(replace(replace(replace(replace(
      substr(c.path, length(m.kind) + 2),
      '\\', char(1)), '\"', char(2)), '["', '."'), '"]', '"'), char(2), '\"'), char(1), '\\') AS place
  FROM ( -- the newest at each path, in the context itself and in each that it shares
    SELECT context, path, instance, max(seq) AS seq, form, context AS source FROM writes GROUP BY context, path, instance
    UNION ALL SELECT context, path, instance, max(seq), form, context FROM leaves GROUP BY context, path, instance
    UNION ALL SELECT l.context, w.path, w.instance, max(w.seq), w.form, l.ancestor
      FROM lineage AS l CROSS JOIN writes AS w ON w.context = l.ancestor AND w.seq <= l.upto GROUP BY l.context, w.path, w.instance, l.ancestor
    UNION ALL SELECT l.context, w.path, w.instance, max(w.seq), w.form, l.ancestor
      FROM lineage AS l CROSS JOIN leaves AS w ON w.context = l.ancestor AND w.seq <= l.upto GROUP BY l.context, w.path, w.instance, l.ancestor
  ) AS c CROSS JOIN messages AS m ON m.context = c.source AND m.seq = c.seq
  WHERE c.form NOT IN (4, 6)
  AND NOT EXISTS ( -- replaced at it or above it since
    WITH RECURSIVE src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context),
      up (n, rest) AS (SELECT 0, replace(c.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0)
    SELECT 1 FROM up CROSS JOIN src WHERE n > 0 AND EXISTS (
      SELECT 1 FROM marks AS a WHERE a.context = source AND a.path = substr(c.path, 1, n - 1)
      AND a.instance = c.instance AND a.seq > c.seq AND a.seq <= upto AND (a.form NOT IN (5, 6) OR a.path = c.path)))
  AND NOT EXISTS ( -- made an object by what was written below it since
    WITH src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context)
    SELECT 1 FROM src WHERE EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > c.path || '.' AND b.path < c.path || '/'
      AND b.instance = c.instance AND b.seq > c.seq AND b.seq <= upto AND NOT (c.form IN (2, 7, 8) AND substr(b.path, length(c.path) + 1 + 1, 1) BETWEEN '0' AND '9' AND substr(ltrim(substr(b.path, length(c.path) + 1 + 1), '0123456789') || '.', 1, 1) IN ('.', '[')))
    OR EXISTS (
      SELECT 1 FROM marks AS b WHERE b.context = source AND b.path > c.path || '[' AND b.path < c.path || '\'
      AND b.instance = c.instance AND b.seq > c.seq AND b.seq <= upto))
  AND NOT (c.form = 5 AND EXISTS ( -- an object with something in it that {} joined
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
      AND b.instance = inst AND b.seq <= upto AND first + b.seq >= settled.r)))
  AND NOT (c.path GLOB '*.[0-9]*' AND EXISTS ( -- inside what was an array then
    WITH RECURSIVE src (source, upto) AS (SELECT c.context, 9223372036854775807 UNION ALL SELECT ancestor, upto FROM lineage WHERE context = c.context),
      seen (inst, first) AS (SELECT '', 0 UNION SELECT c.instance, iif(c.instance = '', 0, 1125899906842624)),
      up (n, rest) AS (SELECT 0, replace(c.path, '[', '.') || '.' UNION ALL SELECT n + instr(rest, '.'), substr(rest, instr(rest, '.') + 1) FROM up WHERE instr(rest, '.') > 0),
      newest (path, r) AS MATERIALIZED (SELECT substr(c.path, 1, n - 1), (
          SELECT max(first + (
            SELECT a.seq FROM marks AS a WHERE a.context = source AND a.path = substr(c.path, 1, n - 1) AND a.instance = inst AND a.seq <= upto
            AND first + a.seq < c.seq + iif(c.instance = '', 0, 1125899906842624) ORDER BY a.seq DESC LIMIT 1))
          FROM src CROSS JOIN seen)
        FROM up WHERE n > 0 AND n < length(c.path) AND substr(c.path, n + 1, 1) BETWEEN '0' AND '9' AND substr(ltrim(substr(c.path, n + 1), '0123456789') || '.', 1, 1) IN ('.', '['))
    SELECT 1 FROM newest CROSS JOIN src CROSS JOIN seen WHERE EXISTS (
      SELECT 1 FROM marks AS a WHERE a.context = source AND a.path = newest.path AND a.instance = inst AND a.seq = newest.r - first
      AND a.seq <= upto AND a.form IN (2, 7, 8))))
) AS v;

PRAGMA application_id = 1331848556;
PRAGMA user_version = 5;
