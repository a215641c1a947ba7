-- Version 19: nobody is asked about the calls of a run that was cancelled.
UPDATE contexts SET held = 0 WHERE status = 'cancelled';
