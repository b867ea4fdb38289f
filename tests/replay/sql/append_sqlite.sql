-- ADVANCE
UPDATE thread
SET head_seq = ?, head_digest = ?
WHERE number = ? AND fence = ? AND head_seq = ?
RETURNING inbox;

-- ADVANCE_AND_END
UPDATE thread
SET head_seq = ?1, head_digest = ?2, owner = NULL, updated_at = ?5, state_updated_at = ?5, status = CASE WHEN
  goes_on.it THEN 'busy' ELSE ?3 END, error = CASE WHEN goes_on.it THEN NULL ELSE ?4 END
FROM (SELECT EXISTS (SELECT 1
        FROM run AS other
        WHERE other.thread = ?7 AND other.number <> ?6 AND other.status = 'pending' AND NOT other.hidden) AS
          it) AS goes_on
WHERE number = ?7 AND fence = ?8 AND head_seq = ?9 AND NOT EXISTS (SELECT 1
    FROM run
    WHERE run.number = ?6 AND run.cancel = 'rollback')
RETURNING inbox;

-- INSERT
INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- END
UPDATE run
SET status = ?, reason = ?, error = ?, updated_at = ?, parked = NULL, due_at = 0, hidden = 0
WHERE number = ?;

-- LANDED_SQLITE
SELECT thread.inbox
FROM thread JOIN entry ON entry.thread = thread.number
WHERE thread.number = ? AND entry.seq = ? AND entry.digest = ?;

-- STANDS_SQLITE
SELECT 1
FROM thread
WHERE number = ? AND fence = ? AND head_seq = ?;
