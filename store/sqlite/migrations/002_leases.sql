-- Version 2: who runs a context. A lease is no part of the log but a lock over
-- it: only the present holder matters, and it is renewed as long as a run
-- lasts. So this is the one table whose rows are written over, and no trigger
-- refuses that; epoch alone keeps growing.
--   SELECT context, host, pid FROM leases WHERE until > unixepoch('subsec') * 1000;

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
