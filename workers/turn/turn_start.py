"""The beginning of a turn: bring the journal to where the run can act."""

from typing import Literal

from threadmark.state import (
    Claim,
    Execution,
    ExecutionId,
    Fork,
    Journal,
    RunStarted,
    Stretch,
    ThreadState,
    TurnStarted,
    WaitAnswered,
    fold,
    fork_lineage,
    to_us,
    visible,
)
from threadmark.state import Wait as AnsweredWait
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.telemetry.tracing import Tracer
from threadmark.workers.turn.calls import close_calls
from threadmark.workers.turn.turn_journal import TurnJournal

__all__ = ["begin", "fold_answers", "fork_at"]


async def begin(
    journal: TurnJournal, claim: Claim, agent: ChatAgent, *, stored: Journal, tracer: Tracer | None
) -> None:
    """Note what starts the run, or the turn, or both."""
    if tracer is not None and claim.was_orphan:
        # The dead may have taken along what was on disk and not sent yet.
        entries = await stored.read(claim.thread.number, after_seq=journal.first_seq - 1)
        tracer.recorded(claim.run, [each for each in entries if each.run == claim.run.number])
    if not journal.run_index.has_started(claim.run.number):
        await _start(journal, claim, agent, stored)
    journal.stage(TurnStarted(worker_id=str(claim.thread.owner), attempt=claim.run.attempts))
    fold_answers(journal, claim.answers)


def fold_answers(journal: TurnJournal, answers: tuple[AnsweredWait, ...]) -> None:
    """Note the answers to waits that are open; one to a wait that fell away meanwhile is marked as read."""
    for wait in answers:
        call = journal.state.calls.get(wait.step_key)
        if call is None or call.wait_id != wait.wait_id or not call.wait_open:
            journal.read_away(wait.wait_id)
            continue
        journal.stage(
            WaitAnswered(
                wait_id=wait.wait_id,
                step_key=wait.step_key,
                value=wait.answer,
                answered_by=wait.answered_by or "",
                answered_at_us=to_us(wait.answered_at or wait.opened_at),
            )
        )


async def fork_at(stored: Journal, claim: Claim, seq: int) -> tuple[Fork, ThreadState]:
    """The fork that leaves after the entry at `seq` (0: before the first), and the state there."""
    entries = await stored.read(claim.thread.number)
    leaves = await stored.read_leaves(claim.thread.number)
    parent = next((each.branch for each in entries if each.seq == seq), 0)
    new_branch = 1 + max(leaves, default=0)
    lineage = fork_lineage(leaves, Stretch(parent, seq), new_branch)
    fork = Fork(branch=new_branch, parent=parent, fork_seq=seq, lineage=lineage)
    return fork, fold(visible(entries, lineage))


async def _start(journal: TurnJournal, claim: Claim, agent: ChatAgent, stored: Journal) -> None:
    run, request, left = claim.run, claim.run.request, journal.state
    if request.from_seq is not None:
        journal.fork(*await fork_at(stored, claim, request.from_seq))
    execution_id = _execution_id(claim, journal)
    if execution_id != run.execution_id:
        journal.begin_execution(execution_id)
    if journal.state is not left or not _is_at(left, execution_id):
        for call in left.open_waits:
            journal.leave(str(call.wait_id))
    if request.messages:
        why = "the conversation went on without it"
        for entry in close_calls(journal.state, _execution(journal, claim), why, agent):
            journal.stage(entry)
    journal.stage(
        RunStarted(
            run_id=run.run_id,
            execution_id=execution_id,
            assistant=run.assistant,
            version=agent.version,
            source=_source(claim),
            messages=request.messages,
            from_seq=request.from_seq,
        )
    )


def _execution_id(claim: Claim, journal: TurnJournal) -> ExecutionId:
    """The execution that the run was accepted for, or one of its own where the thread has left that one behind.

    It did steps on a branch that was left (a fork, a rollback), or another execution came after it: its keys are taken,
    and an outside system that knows them would take the new steps for repetitions.
    """
    run, execution_id, run_index = claim.run, claim.run.execution_id, journal.run_index
    is_whole = run_index.is_whole(execution_id, claim.thread.lineage)
    if not run_index.has_begun(execution_id) or (is_whole and _is_at(journal.state, execution_id)):
        return execution_id
    return ExecutionId(run.run_id)


def _is_at(state: ThreadState, execution_id: ExecutionId) -> bool:
    return state.execution is not None and state.execution.execution_id == execution_id


def _execution(journal: TurnJournal, claim: Claim) -> Execution:
    """The execution that asked for the open calls; the run's own where they were written from outside."""
    run = claim.run
    return journal.state.execution or Execution(
        execution_id=run.execution_id,
        run=run.number,
        run_id=run.run_id,
        assistant=run.assistant,
        run_started_at_us=0,
    )


def _source(claim: Claim) -> Literal["input", "fork", "resume", "continue"]:
    request = claim.run.request
    if request.resumes:
        return "resume"
    if request.messages:
        return "input"
    return "continue" if request.from_seq is None else "fork"
