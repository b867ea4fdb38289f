"""The SQL of an append, for each database."""

__all__ = [
    "ADVANCE",
    "ADVANCE_AND_END",
    "ADVANCE_AND_INSERT",
    "ADVANCE_INSERT_AND_END",
    "END",
    "INSERT",
    "LANDED_POSTGRESQL",
    "LANDED_SQLITE",
    "LOCK",
    "STANDS_POSTGRESQL",
    "STANDS_SQLITE",
]

#: SQLite: advance a thread whose fence and head match.
ADVANCE = (
    "UPDATE thread SET head_seq = ?, head_digest = ? WHERE number = ? AND fence = ? AND head_seq = ? RETURNING inbox"
)
#: SQLite: the same, and release the thread, unless its run has to roll back.
ADVANCE_AND_END = """
UPDATE thread SET head_seq = ?1, head_digest = ?2, owner = NULL, updated_at = ?5, state_updated_at = ?5,
    status = CASE WHEN goes_on.it THEN 'busy' ELSE ?3 END, error = CASE WHEN goes_on.it THEN NULL ELSE ?4 END
FROM (SELECT EXISTS (SELECT 1 FROM run AS other WHERE other.thread = ?7 AND other.number <> ?6
                     AND other.status = 'pending' AND NOT other.hidden) AS it) AS goes_on
WHERE number = ?7 AND fence = ?8 AND head_seq = ?9
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.number = ?6 AND run.cancel = 'rollback')
RETURNING inbox
"""
INSERT = (
    "INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
#: SQLite: settle the run.
END = (
    "UPDATE run SET status = ?, reason = ?, error = ?, updated_at = ?, parked = NULL, due_at = 0, hidden = 0"
    " WHERE number = ?"
)
#: PostgreSQL: advance the threads whose fence and head match, and insert their entries.
ADVANCE_AND_INSERT = """
WITH moved AS (
    UPDATE thread AS t SET head_seq = a.head_seq, head_digest = a.head_digest
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[])
        AS a (number, fence, expected_seq, head_seq, head_digest)
    WHERE t.number = a.number AND t.fence = a.fence AND t.head_seq = a.expected_seq
    RETURNING t.number, t.inbox
), inserted AS (
    INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
    SELECT r.* FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
                           %s::text[], %s::bytea[], %s::bytea[], %s::bytea[])
        AS r (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
    JOIN moved ON moved.number = r.thread
)
SELECT number, inbox FROM moved
"""
#: PostgreSQL: lock the threads whose runs are to end, in one order, so that no two batches deadlock.
LOCK = "SELECT number FROM thread WHERE number = ANY (%s::bigint[]) ORDER BY number FOR UPDATE"
#: PostgreSQL: the same as ADVANCE_AND_INSERT; where a run is given, also settle it and release its thread, unless it
#: has to roll back.
ADVANCE_INSERT_AND_END = """
WITH asked AS (
    SELECT a.*, EXISTS (
        SELECT 1 FROM run AS other
        WHERE other.thread = a.number AND other.number <> a.run AND other.status = 'pending' AND NOT other.hidden
    ) AS goes_on
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[],
                %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])
        AS a (number, fence, expected_seq, head_seq, head_digest,
              run, status, reason, error, thread_status, thread_error, now_us)
    WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.number = a.run AND run.cancel = 'rollback')
), moved AS (
    UPDATE thread AS t SET
        head_seq = a.head_seq,
        head_digest = a.head_digest,
        owner = CASE WHEN a.run IS NULL THEN t.owner END,
        status = CASE WHEN a.run IS NULL THEN t.status WHEN a.goes_on THEN 'busy' ELSE a.thread_status END,
        error = CASE WHEN a.run IS NULL THEN t.error WHEN NOT a.goes_on THEN a.thread_error END,
        updated_at = coalesce(a.now_us, t.updated_at),
        state_updated_at = coalesce(a.now_us, t.state_updated_at)
    FROM asked AS a
    WHERE t.number = a.number AND t.fence = a.fence AND t.head_seq = a.expected_seq
    RETURNING t.number, t.inbox
), ended AS (
    UPDATE run AS r SET
        status = a.status, reason = a.reason, error = a.error, updated_at = a.now_us,
        parked = NULL, due_at = 0, hidden = FALSE
    FROM asked AS a JOIN moved ON moved.number = a.number
    WHERE r.number = a.run
), inserted AS (
    INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
    SELECT r.* FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
                           %s::text[], %s::bytea[], %s::bytea[], %s::bytea[])
        AS r (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
    JOIN moved ON moved.number = r.thread
)
SELECT number, inbox FROM moved
"""
#: Whether the append is already there, because an earlier commit succeeded and its reply was lost.
LANDED_SQLITE = (
    "SELECT thread.inbox FROM thread JOIN entry ON entry.thread = thread.number"
    " WHERE thread.number = ? AND entry.seq = ? AND entry.digest = ?"
)
LANDED_POSTGRESQL = (
    "SELECT thread.inbox FROM thread JOIN entry ON entry.thread = thread.number"
    " WHERE thread.number = %s AND entry.seq = %s AND entry.digest = %s"
)
#: Whether the holder is not stale; if so, its run was not allowed to end.
STANDS_SQLITE = "SELECT 1 FROM thread WHERE number = ? AND fence = ? AND head_seq = ?"
STANDS_POSTGRESQL = "SELECT 1 FROM thread WHERE number = %s AND fence = %s AND head_seq = %s"
