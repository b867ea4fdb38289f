-- CLAIM
WITH orphan AS (SELECT run.number AS number, run.thread AS thread
    FROM run JOIN thread ON thread.number = run.thread
    WHERE run.status = 'running' AND run.route = ANY (%(routes)s::VARCHAR[]) AND (thread.owner IS NULL OR NOT
      (EXISTS (SELECT *
                FROM worker
                WHERE worker.worker_id = thread.owner AND worker.lease_until > CAST(EXTRACT(EPOCH
                        FROM clock_timestamp()) * 1000000 AS BIGINT)))) AND (%(with_suspects)s OR NOT
                          (run.orphaned >= %(orphaned_1)s::INTEGER AND NOT (EXISTS (SELECT *
                    FROM entry
                    WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN
                      ('run_started', 'turn_started', 'step_intended'))))))
    ORDER BY run.number
    LIMIT %(orphan_count_max)s::BIGINT
    FOR UPDATE OF thread, run SKIP LOCKED),
due AS (SELECT run.number AS number, run.thread AS thread
    FROM run JOIN thread ON thread.number = run.thread
    WHERE run.status = 'pending' AND run.due_at <= CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT) AND run.hidden IS false AND thread.owner IS NULL AND
              NOT (EXISTS (SELECT *
            FROM run AS earlier
            WHERE earlier.thread = run.thread AND earlier.number < run.number AND earlier.status IN
              ('pending', 'running') AND earlier.hidden IS false)) AND run.route = ANY (%(routes)s::VARCHAR[])
    ORDER BY run.stamp, run.number
    LIMIT %(count_max)s::BIGINT - (SELECT count(*) AS count_1
        FROM orphan)
    FOR UPDATE OF thread, run SKIP LOCKED),
taken AS (UPDATE run
    SET status=%(param_1)s::VARCHAR, updated_at=CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT), parked=%(param_2)s::VARCHAR, attempts=(run.attempts
              + %(attempts_1)s::INTEGER), orphaned=CASE WHEN (run.number = ANY (array((SELECT orphan.number
                    FROM orphan)))) THEN CASE WHEN (EXISTS (SELECT *
            FROM entry
            WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN
              ('run_started', 'turn_started', 'step_intended')))) THEN %(param_3)s::INTEGER ELSE run.orphaned
              + %(orphaned_2)s::INTEGER END ELSE run.orphaned END, orphan_seq=CASE WHEN (run.number = ANY
              (array((SELECT orphan.number
                    FROM orphan)))) THEN (SELECT thread.head_seq
        FROM thread
        WHERE thread.number = run.thread) ELSE run.orphan_seq END
    WHERE run.number = ANY (array((SELECT orphan.number
                FROM orphan
                UNION ALL SELECT due.number
                FROM due)))
    RETURNING run.number, run.run_id, run.tenant_id, run.thread, run.execution_id, run.assistant, run.route,
      run.status, run.multitask, run.request, run.metadata, run.resumable, run.created_at, run.updated_at,
      run.due_at, run.stamp, run.parked, run.attempts, run.orphaned, run.orphan_seq, run.cancel, run.reason,
      run.error, run.hidden, run.number = ANY (array((SELECT orphan.number
                FROM orphan))) AS was_orphan),
held AS (UPDATE thread
    SET status=%(param_4)s::VARCHAR, updated_at=CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT), fence=(thread.fence + %(fence_2)s::BIGINT),
              owner=%(worker_id)s::VARCHAR
    WHERE thread.number = ANY (array((SELECT orphan.thread
                FROM orphan
                UNION ALL SELECT due.thread
                FROM due)))
    RETURNING thread.number, thread.tenant_id, thread.thread_id, thread.status, thread.metadata, thread.error,
      thread.created_at, thread.updated_at, thread.state_updated_at, thread.expires_at, thread.fence,
      thread.owner, thread.head_seq, thread.head_digest, thread.branch, thread.branch_count, thread.lineage,
      thread.inbox, thread.erasures) SELECT taken.*, held.*, before.fence != held.fence - %(fence_1)s::BIGINT
      OR (EXISTS (SELECT *
        FROM wait
        WHERE wait.thread = held.number)) AS may_lack
FROM taken JOIN held ON held.number = taken.thread JOIN thread AS before ON before.number = held.number
ORDER BY taken.was_orphan DESC, CASE WHEN taken.was_orphan THEN %(param_5)s::INTEGER ELSE taken.stamp END,
  taken.number;

-- CLAIM_RUN
WITH orphan AS (SELECT run.number AS number, run.thread AS thread
    FROM run JOIN thread ON thread.number = run.thread
    WHERE run.status = 'running' AND run.route = ANY (%(routes)s::VARCHAR[]) AND (thread.owner IS NULL OR NOT
      (EXISTS (SELECT *
                FROM worker
                WHERE worker.worker_id = thread.owner AND worker.lease_until > CAST(EXTRACT(EPOCH
                        FROM clock_timestamp()) * 1000000 AS BIGINT))))
    ORDER BY run.number
    LIMIT %(param_3)s::INTEGER
    FOR UPDATE OF thread, run SKIP LOCKED),
due AS (SELECT run.number AS number, run.thread AS thread
    FROM run JOIN thread ON thread.number = run.thread
    WHERE run.status = 'pending' AND run.due_at <= CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT) AND run.hidden IS false AND thread.owner IS NULL AND
              NOT (EXISTS (SELECT *
            FROM run AS earlier
            WHERE earlier.thread = run.thread AND earlier.number < run.number AND earlier.status IN
              ('pending', 'running') AND earlier.hidden IS false)) AND run.route = ANY (%(routes)s::VARCHAR[])
              AND run.run_id = %(run_id)s::VARCHAR
    ORDER BY run.stamp, run.number
    LIMIT %(count_max)s::BIGINT
    FOR UPDATE OF thread, run SKIP LOCKED),
taken AS (UPDATE run
    SET status=%(param_1)s::VARCHAR, updated_at=CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT), parked=%(param_2)s::VARCHAR, attempts=(run.attempts
              + %(attempts_1)s::INTEGER), orphaned=CASE WHEN (run.number = ANY (array((SELECT orphan.number
                    FROM orphan)))) THEN CASE WHEN (EXISTS (SELECT *
            FROM entry
            WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN
              ('run_started', 'turn_started', 'step_intended')))) THEN %(param_4)s::INTEGER ELSE run.orphaned
              + %(orphaned_1)s::INTEGER END ELSE run.orphaned END, orphan_seq=CASE WHEN (run.number = ANY
              (array((SELECT orphan.number
                    FROM orphan)))) THEN (SELECT thread.head_seq
        FROM thread
        WHERE thread.number = run.thread) ELSE run.orphan_seq END
    WHERE run.number = ANY (array((SELECT orphan.number
                FROM orphan
                UNION ALL SELECT due.number
                FROM due)))
    RETURNING run.number, run.run_id, run.tenant_id, run.thread, run.execution_id, run.assistant, run.route,
      run.status, run.multitask, run.request, run.metadata, run.resumable, run.created_at, run.updated_at,
      run.due_at, run.stamp, run.parked, run.attempts, run.orphaned, run.orphan_seq, run.cancel, run.reason,
      run.error, run.hidden, run.number = ANY (array((SELECT orphan.number
                FROM orphan))) AS was_orphan),
held AS (UPDATE thread
    SET status=%(param_5)s::VARCHAR, updated_at=CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT), fence=(thread.fence + %(fence_2)s::BIGINT),
              owner=%(worker_id)s::VARCHAR
    WHERE thread.number = ANY (array((SELECT orphan.thread
                FROM orphan
                UNION ALL SELECT due.thread
                FROM due)))
    RETURNING thread.number, thread.tenant_id, thread.thread_id, thread.status, thread.metadata, thread.error,
      thread.created_at, thread.updated_at, thread.state_updated_at, thread.expires_at, thread.fence,
      thread.owner, thread.head_seq, thread.head_digest, thread.branch, thread.branch_count, thread.lineage,
      thread.inbox, thread.erasures) SELECT taken.*, held.*, before.fence != held.fence - %(fence_1)s::BIGINT
      OR (EXISTS (SELECT *
        FROM wait
        WHERE wait.thread = held.number)) AS may_lack
FROM taken JOIN held ON held.number = taken.thread JOIN thread AS before ON before.number = held.number
ORDER BY taken.was_orphan DESC, CASE WHEN taken.was_orphan THEN %(param_6)s::INTEGER ELSE taken.stamp END,
  taken.number;

-- CLAIM_SUSPECT
WITH orphan AS (SELECT run.number AS number, run.thread AS thread
    FROM run JOIN thread ON thread.number = run.thread
    WHERE run.status = 'running' AND run.route = ANY (%(routes)s::VARCHAR[]) AND (thread.owner IS NULL OR NOT
      (EXISTS (SELECT *
                FROM worker
                WHERE worker.worker_id = thread.owner AND worker.lease_until > CAST(EXTRACT(EPOCH
                        FROM clock_timestamp()) * 1000000 AS BIGINT)))) AND run.orphaned >=
                          %(orphaned_1)s::INTEGER AND NOT (EXISTS (SELECT *
            FROM entry
            WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN
              ('run_started', 'turn_started', 'step_intended'))))
    ORDER BY run.number
    LIMIT %(param_3)s::INTEGER
    FOR UPDATE OF thread, run SKIP LOCKED),
due AS (SELECT run.number AS number, run.thread AS thread
    FROM run JOIN thread ON thread.number = run.thread
    WHERE run.status = 'pending' AND run.due_at <= CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT) AND run.hidden IS false AND thread.owner IS NULL AND
              NOT (EXISTS (SELECT *
            FROM run AS earlier
            WHERE earlier.thread = run.thread AND earlier.number < run.number AND earlier.status IN
              ('pending', 'running') AND earlier.hidden IS false)) AND run.route = ANY (%(routes)s::VARCHAR[])
    ORDER BY run.stamp, run.number
    LIMIT %(param_5)s::INTEGER
    FOR UPDATE OF thread, run SKIP LOCKED),
taken AS (UPDATE run
    SET status=%(param_1)s::VARCHAR, updated_at=CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT), parked=%(param_2)s::VARCHAR, attempts=(run.attempts
              + %(attempts_1)s::INTEGER), orphaned=CASE WHEN (run.number = ANY (array((SELECT orphan.number
                    FROM orphan)))) THEN CASE WHEN (EXISTS (SELECT *
            FROM entry
            WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN
              ('run_started', 'turn_started', 'step_intended')))) THEN %(param_4)s::INTEGER ELSE run.orphaned
              + %(orphaned_2)s::INTEGER END ELSE run.orphaned END, orphan_seq=CASE WHEN (run.number = ANY
              (array((SELECT orphan.number
                    FROM orphan)))) THEN (SELECT thread.head_seq
        FROM thread
        WHERE thread.number = run.thread) ELSE run.orphan_seq END
    WHERE run.number = ANY (array((SELECT orphan.number
                FROM orphan
                UNION ALL SELECT due.number
                FROM due)))
    RETURNING run.number, run.run_id, run.tenant_id, run.thread, run.execution_id, run.assistant, run.route,
      run.status, run.multitask, run.request, run.metadata, run.resumable, run.created_at, run.updated_at,
      run.due_at, run.stamp, run.parked, run.attempts, run.orphaned, run.orphan_seq, run.cancel, run.reason,
      run.error, run.hidden, run.number = ANY (array((SELECT orphan.number
                FROM orphan))) AS was_orphan),
held AS (UPDATE thread
    SET status=%(param_6)s::VARCHAR, updated_at=CAST(EXTRACT(EPOCH
            FROM clock_timestamp()) * 1000000 AS BIGINT), fence=(thread.fence + %(fence_2)s::BIGINT),
              owner=%(worker_id)s::VARCHAR
    WHERE thread.number = ANY (array((SELECT orphan.thread
                FROM orphan
                UNION ALL SELECT due.thread
                FROM due)))
    RETURNING thread.number, thread.tenant_id, thread.thread_id, thread.status, thread.metadata, thread.error,
      thread.created_at, thread.updated_at, thread.state_updated_at, thread.expires_at, thread.fence,
      thread.owner, thread.head_seq, thread.head_digest, thread.branch, thread.branch_count, thread.lineage,
      thread.inbox, thread.erasures) SELECT taken.*, held.*, before.fence != held.fence - %(fence_1)s::BIGINT
      OR (EXISTS (SELECT *
        FROM wait
        WHERE wait.thread = held.number)) AS may_lack
FROM taken JOIN held ON held.number = taken.thread JOIN thread AS before ON before.number = held.number
ORDER BY taken.was_orphan DESC, CASE WHEN taken.was_orphan THEN %(param_7)s::INTEGER ELSE taken.stamp END,
  taken.number;

-- UNFOLDED
SELECT wait.wait_id, wait.tenant_id, wait.thread, wait.run, wait.execution_id, wait.step_key, wait.kind,
  wait.tool, wait.arguments, wait.shown_digest, wait.status, wait.opened_at, wait.answer, wait.answered_by,
  wait.answered_at, wait.effect, wait.folded
FROM wait
WHERE wait.thread = ANY (%(threads)s::BIGINT[]) AND wait.status = 'answered' AND wait.folded IS false
ORDER BY wait.answered_at, wait.wait_id;
