-- LOCK
SELECT number
FROM thread
WHERE number = ANY (%s::bigint[])
ORDER BY number FOR UPDATE;

-- ADVANCE_AND_INSERT
WITH moved AS ( UPDATE thread AS t
    SET head_seq = a.head_seq, head_digest = a.head_digest
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[]) AS a (number, fence,
      expected_seq, head_seq, head_digest)
    WHERE t.number = a.number AND t.fence = a.fence AND t.head_seq = a.expected_seq
    RETURNING t.number, t.inbox ),
inserted AS ( INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest) SELECT r.*
    FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
      %s::text[], %s::bytea[], %s::bytea[], %s::bytea[]) AS r (thread, seq, branch, run, fence, at, kind,
      salt, payload, digest) JOIN moved ON moved.number = r.thread ) SELECT number, inbox
FROM moved;

-- ADVANCE_INSERT_AND_END
WITH asked AS ( SELECT a.*, EXISTS ( SELECT 1
        FROM run AS other
        WHERE other.thread = a.number AND other.number <> a.run AND other.status = 'pending' AND NOT
          other.hidden ) AS goes_on
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[], %s::bigint[], %s::text[],
      %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[]) AS a (number, fence, expected_seq,
      head_seq, head_digest, run, status, reason, error, thread_status, thread_error, now_us)
    WHERE NOT EXISTS (SELECT 1
        FROM run
        WHERE run.number = a.run AND run.cancel = 'rollback') ),
moved AS ( UPDATE thread AS t
    SET head_seq = a.head_seq, head_digest = a.head_digest, owner = CASE WHEN a.run IS NULL THEN t.owner END,
      status = CASE WHEN a.run IS NULL THEN t.status WHEN a.goes_on THEN 'busy' ELSE a.thread_status END,
      error = CASE WHEN a.run IS NULL THEN t.error WHEN NOT a.goes_on THEN a.thread_error END, updated_at =
      coalesce(a.now_us, t.updated_at), state_updated_at = coalesce(a.now_us, t.state_updated_at)
    FROM asked AS a
    WHERE t.number = a.number AND t.fence = a.fence AND t.head_seq = a.expected_seq
    RETURNING t.number, t.inbox ),
ended AS ( UPDATE run AS r
    SET status = a.status, reason = a.reason, error = a.error, updated_at = a.now_us, parked = NULL, due_at =
      0, hidden = FALSE
    FROM asked AS a JOIN moved ON moved.number = a.number
    WHERE r.number = a.run ),
inserted AS ( INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest) SELECT r.*
    FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
      %s::text[], %s::bytea[], %s::bytea[], %s::bytea[]) AS r (thread, seq, branch, run, fence, at, kind,
      salt, payload, digest) JOIN moved ON moved.number = r.thread ) SELECT number, inbox
FROM moved;

-- LANDED_POSTGRESQL
SELECT thread.inbox
FROM thread JOIN entry ON entry.thread = thread.number
WHERE thread.number = %s AND entry.seq = %s AND entry.digest = %s;

-- STANDS_POSTGRESQL
SELECT 1
FROM thread
WHERE number = %s AND fence = %s AND head_seq = %s;
