-- Version 16: the lines that scripts print and log while calls run. They are no part of the
-- log that nothing changes: of each call the newest are kept, as the setting logs.keep bounds
-- them, and a crash may lose the last second.
--   SELECT call, tool, level, text FROM logs WHERE context = 'order-7' ORDER BY n;
CREATE TABLE logs (
  n       INTEGER PRIMARY KEY AUTOINCREMENT,  -- its position among the lines of all contexts, never that of another
  context TEXT NOT NULL,                 -- the context of the call
  call    TEXT NOT NULL,                 -- the call in it, such as '1.2'
  line    INTEGER NOT NULL,              -- 1, 2, 3 … in the call; those that are missing were dropped
  tool    TEXT NOT NULL,                 -- the call's tool
  attempt INTEGER NOT NULL,              -- the attempt of the call, from 1
  date    TEXT NOT NULL,                 -- when it was printed or logged
  level   TEXT NOT NULL,                 -- debug, info, warn or error
  printed INTEGER NOT NULL,              -- 1 if it was printed, 0 if it was logged
  text    TEXT NOT NULL,                 -- what was printed, or the message
  fields  TEXT                           -- JSON: what was logged with it
);

CREATE INDEX logs_context ON logs (context);  -- with n, by which they are read
CREATE INDEX logs_call ON logs (context, call, line);

CREATE INDEX contexts_fork ON contexts (fork) WHERE fork IS NOT NULL; -- the forks of a context

CREATE TRIGGER contexts_pruned_logs AFTER DELETE ON contexts
BEGIN DELETE FROM logs WHERE context = OLD.context; END;
