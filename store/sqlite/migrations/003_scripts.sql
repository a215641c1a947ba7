-- Version 3: the code that ran. A call's record names its script by path and
-- sha256, and the generation of scripts that it was one of.
--   SELECT s.source FROM calls AS c JOIN scripts AS s ON s.sha256 = c.script_sha256 AND s.path = c.script
--   WHERE c.context = 'order-7' AND c.call = '1.2';

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

-- The views as before, calls with the generation.
DROP VIEW failures;
DROP VIEW calls;

CREATE VIEW calls (context, call, tick, position, tool, status, instance, attempts, started, duration_ms, changed, script,
  script_sha256, reads, writes, error, reason, waiting_on, generation) AS
SELECT context, call, data ->> '$.tick', data ->> '$.position', data ->> '$.tool', data ->> '$.status', data ->> '$.instance',
  data ->> '$.attempts', data ->> '$.started', data ->> '$.duration_ms', date, data ->> '$.script', data ->> '$.script_sha256',
  data -> '$.reads', data -> '$.writes', data -> '$.error', data ->> '$.reason', data -> '$.waiting_on', data ->> '$.generation'
FROM (SELECT context, call, date, data, max(n) FROM journal WHERE call IS NOT NULL GROUP BY context, call);

CREATE VIEW failures (context, call, tool, date, message, error, script) AS
SELECT context, call, tool, changed, error ->> '$.message', error, script FROM calls WHERE status = 'failed';
