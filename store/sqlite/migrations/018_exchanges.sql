-- Version 18: requests to models and their answers, of the models whose setting keep says so.
-- A row comes with the event that has the request's usage, and goes with its context.
--   SELECT call, request ->> '$.system' AS system, answer FROM exchanges WHERE context = 'order-7' ORDER BY n, position;
CREATE TABLE exchanges (
  n             INTEGER NOT NULL,        -- the event of the journal that has its usage
  position      INTEGER NOT NULL,        -- 1, 2, 3 … of those of the event: later ones repair the answer to the first
  context       TEXT NOT NULL,           -- the context of the event
  call          TEXT,                    -- the call that it is about, such as '1.2'; NULL for a plan
  hash          TEXT NOT NULL,           -- the SHA-256 of the request, in hex
  request       TEXT,                    -- JSON: purpose, model, system, blocks, schema, params; NULL above 4 MB, and where it is no UTF-8
  request_bytes INTEGER NOT NULL,        -- its size
  answer        TEXT,                    -- the text as it came; NULL if there was none, above 4 MB, and where it is no UTF-8
  answer_bytes  INTEGER NOT NULL,        -- its size
  error         TEXT,                    -- why no answer came
  usage         TEXT,                    -- JSON: served, finish, mode, input and output tokens, ms …
  PRIMARY KEY (n, position)
);

CREATE INDEX exchanges_context ON exchanges (context);

CREATE TRIGGER exchanges_insert BEFORE INSERT ON exchanges
WHEN EXISTS (SELECT 1 FROM exchanges WHERE n = NEW.n AND position = NEW.position OR rowid = NEW.rowid)
  OR NOT EXISTS (SELECT 1 FROM journal WHERE n = NEW.n AND context = NEW.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only: an exchange is new, and of an event'); END;

CREATE TRIGGER exchanges_rowid AFTER INSERT ON exchanges WHEN NEW.rowid < 1
BEGIN SELECT RAISE(ABORT, 'the log is append-only: a rowid must be above 0'); END;

CREATE TRIGGER exchanges_update BEFORE UPDATE ON exchanges
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER exchanges_delete BEFORE DELETE ON exchanges
WHEN EXISTS (SELECT 1 FROM contexts WHERE context = OLD.context)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER contexts_pruned_exchanges AFTER DELETE ON contexts
BEGIN DELETE FROM exchanges WHERE context = OLD.context; END;
