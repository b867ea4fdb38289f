-- ORPHANS
SELECT run.number, run.thread
FROM run JOIN thread ON thread.number = run.thread
WHERE run.status = 'running' AND run.route IN (SELECT value
    FROM json_each(:routes)) = 1 AND (thread.owner IS NULL OR NOT (EXISTS (SELECT *
            FROM worker
            WHERE worker.worker_id = thread.owner AND worker.lease_until > CAST((julianday('now') - 2440587.5)
              * 86400000000.0 AS INTEGER)))) AND (:with_suspects = 1 OR NOT (run.orphaned >= :orphaned_1 AND
              NOT (EXISTS (SELECT *
                FROM entry
                WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN
                  ('run_started', 'turn_started', 'step_intended'))))))
ORDER BY run.number
LIMIT :count_max OFFSET :param_1;

-- DUE
SELECT run.number, run.thread
FROM run JOIN thread ON thread.number = run.thread
WHERE run.status = 'pending' AND run.due_at <= CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)
  AND run.hidden IS 0 AND thread.owner IS NULL AND NOT (EXISTS (SELECT *
        FROM run AS earlier
        WHERE earlier.thread = run.thread AND earlier.number < run.number AND earlier.status IN ('pending',
          'running') AND earlier.hidden IS 0)) AND run.route IN (SELECT value
    FROM json_each(:routes)) = 1
ORDER BY run.stamp, run.number
LIMIT :count_max OFFSET :param_1;

-- DUE_RUN
SELECT run.number, run.thread
FROM run JOIN thread ON thread.number = run.thread
WHERE run.status = 'pending' AND run.due_at <= CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)
  AND run.hidden IS 0 AND thread.owner IS NULL AND NOT (EXISTS (SELECT *
        FROM run AS earlier
        WHERE earlier.thread = run.thread AND earlier.number < run.number AND earlier.status IN ('pending',
          'running') AND earlier.hidden IS 0)) AND run.route IN (SELECT value
    FROM json_each(:routes)) = 1 AND run.run_id = :run_id
ORDER BY run.stamp, run.number
LIMIT :count_max OFFSET :param_1;

-- SUSPECTS
SELECT run.number, run.thread
FROM run JOIN thread ON thread.number = run.thread
WHERE run.status = 'running' AND run.route IN (SELECT value
    FROM json_each(:routes)) = 1 AND (thread.owner IS NULL OR NOT (EXISTS (SELECT *
            FROM worker
            WHERE worker.worker_id = thread.owner AND worker.lease_until > CAST((julianday('now') - 2440587.5)
              * 86400000000.0 AS INTEGER)))) AND run.orphaned >= :orphaned_1 AND NOT (EXISTS (SELECT *
        FROM entry
        WHERE entry.thread = run.thread AND entry.seq > run.orphan_seq AND (entry.kind NOT IN ('run_started',
          'turn_started', 'step_intended'))))
ORDER BY run.number
LIMIT :count_max OFFSET :param_1;

-- TAKE_THREADS
UPDATE thread
SET status=:status, updated_at=CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER),
  fence=(thread.fence + :fence_1), owner=:worker_id
WHERE thread.number IN (SELECT value
    FROM json_each(:threads)) = 1
RETURNING number, tenant_id, thread_id, status, metadata, error, created_at, updated_at, state_updated_at,
  expires_at, fence, owner, head_seq, head_digest, branch, branch_count, lineage, inbox, erasures;

-- TAKE_RUNS
UPDATE run
SET status=:status, updated_at=CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER),
  parked=:parked, attempts=(run.attempts + :attempts_1)
WHERE run.number IN (SELECT value
    FROM json_each(:runs)) = 1
RETURNING number, run_id, tenant_id, thread, execution_id, assistant, route, status, multitask, request,
  metadata, resumable, created_at, updated_at, due_at, stamp, parked, attempts, orphaned, orphan_seq, cancel,
  reason, error, hidden;

-- UNFOLDED
SELECT wait.wait_id, wait.tenant_id, wait.thread, wait.run, wait.execution_id, wait.step_key, wait.kind,
  wait.tool, wait.arguments, wait.shown_digest, wait.status, wait.opened_at, wait.answer, wait.answered_by,
  wait.answered_at, wait.effect, wait.folded
FROM wait
WHERE wait.thread IN (SELECT value
    FROM json_each(:threads)) = 1 AND wait.status = 'answered' AND wait.folded IS 0
ORDER BY wait.answered_at, wait.wait_id;
