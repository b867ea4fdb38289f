"""Waits: which questions a thread has put to people, and answers to them."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Struct
from sqlalchemy import Connection

from threadmark.app.access import Caller, Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize, beyond, cut
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import once
from threadmark.app.requests.request_key import RequestKey
from threadmark.app.wire.conversations.interrupt_schema import read_approval
from threadmark.app.wire.conversations.wait_schema import ShownWait, wait_to_wire
from threadmark.state import (
    Acceptance,
    Answer,
    Reply,
    Run,
    RunRequest,
    RunStatus,
    RunSubmission,
    Wait,
    answer_wait,
    get_thread,
    get_wait,
    list_open_waits,
    list_runs,
    list_waits,
    run_by_number,
    run_names,
    to_us,
)
from threadmark.workers.agents.agent import assistant_id_of
from threadmark.workers.agents.call_fit import answer_check, misfit_of_wait

__all__ = ["ROUTES", "Answered", "NewAnswer", "WaitPage"]

Status = Annotated[
    Literal["open", "answered", "superseded"] | None, QueryParameter(name="status", description="Only such waits.")
]


#: Open questions of a thread whose calls are looked at.
OPEN_COUNT_MAX = 1_000


class WaitPage(Struct):
    """Waits in the order in which they were opened, and the cursors to the pages beside."""

    items: list[ShownWait]
    next: str | None
    previous: str | None


class NewAnswer(Struct, forbid_unknown_fields=True):
    """The answer to an approval: `true`, `false`, `{"approve": …, "reason"?: …}`, or `{"result": …}`."""

    answer: Any


class Answered(Struct):
    """The answer stands; `run_id` is the run that carries the execution on."""

    wait_id: str
    thread_id: str
    run_id: str
    execution_id: str
    status: Literal["answered"] = "answered"


@get("/threads/{thread_id:str}/waits", opt=needs(Scope.READ))
async def list_thread_waits(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
    status: Status = None,
) -> WaitPage:
    """The questions that runs of the thread have put to people: what was shown, who answered, and when."""
    wanted = uuid_of("thread", thread_id)
    listing = Listing(caller.tenant_id, "waits", {"thread_id": wanted, "status": status})
    place = None if cursor is None else signer.verify(cursor, listing)

    def unit(connection: Connection) -> tuple[list[Wait], dict[int, Any], dict[str, str]]:
        thread = get_thread(connection, caller.tenant_id, wanted)
        asked = list_open_waits(connection, thread=thread.number, count_max=OPEN_COUNT_MAX)
        misfits = {each.wait.wait_id: misfit_of_wait(resources.wired.registry, each) for each in asked}
        outdated = {wait_id: misfit.why for wait_id, misfit in misfits.items() if misfit is not None}
        return (
            list_waits(connection, thread.number, status=status),
            dict(run_names(connection, thread.number)),
            outdated,
        )

    waits, names, outdated = await resources.database.read(unit)
    page = cut(beyond(waits, limit, place, _place_of), limit, place, _place_of)
    return WaitPage(
        items=[wait_to_wire(wait, names, outdated) for wait in page.rows],
        next=_sealed(page.next, signer, listing),
        previous=_sealed(page.previous, signer, listing),
    )


@post(
    "/waits/{wait_id:str}/answer",
    opt=needs(Scope.APPROVE),
    status_code=200,
    responses={200: ResponseSpec(Answered, description="The answer stands.", generate_examples=False)},
)
async def answer(
    wait_id: FromPath[str],
    data: JSONBody[NewAnswer],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
    trace_parent: dependencies.TraceParent,
) -> Response[bytes]:
    """Answer an approval. The first answer wins and brings the run about that goes on; a later one is 409."""
    wanted, value = uuid_of("wait", wait_id), read_approval(data.answer, "$.answer")

    def unit(connection: Connection) -> tuple[Reply | bytes, Run | None, tuple[str, ...]]:
        asked = get_wait(connection, caller.tenant_id, wanted)
        answered = Answer(
            wait_id=wanted,
            value=value,
            actor=f"key:{caller.key_id}",
            submission=replace(
                _submission(connection, asked, caller, request_key, trace_parent),
                check_answer=answer_check(resources.wired.registry),
            ),
        )
        made = answer_wait(connection, caller.tenant_id, answered, resources.wired.now_us())
        if made.run is None:
            return _replayed(made), None, ()
        running = list_runs(connection, asked.thread, status=RunStatus.RUNNING)
        return _answered(wanted, made.run)[1], made.run, tuple(run.run_id for run in running)

    made, continuing, running = await resources.database.write(unit)
    # A run that moves the thread now folds the answer in at once.
    resources.wired.notifier.notice(running)
    if continuing is not None:
        resources.wired.notifier.notify(continuing.run_id, continuing.attempts + 1)
    return once(made)


def _submission(
    connection: Connection, asked: Wait, caller: Caller, request_key: RequestKey | None, trace_parent: str | None
) -> RunSubmission:
    """The run that goes on: of the assistant, and on the route, of the run that asked."""
    before = run_by_number(connection, asked.run)
    return RunSubmission(
        tenant_id=caller.tenant_id,
        thread_id=asked.thread_id,
        assistant=before.assistant,
        assistant_id=assistant_id_of(before.assistant),
        route=before.route,
        request=RunRequest(resumes=True, trace_parent=trace_parent),
        metadata={},
        receipt=None if request_key is None else request_key.receipt(lambda run: _answered(asked.wait_id, run)),
    )


def _replayed(acceptance: Acceptance) -> Reply:
    if acceptance.replay is None:
        raise AssertionError("an answer is accepted or replayed")
    return acceptance.replay


def _answered(wait_id: str, run: Run) -> tuple[int, bytes]:
    shown = Answered(wait_id=wait_id, thread_id=run.thread_id, run_id=run.run_id, execution_id=run.execution_id)
    return 200, msgspec.json.encode(shown)


def _place_of(wait: Wait) -> tuple[int | str, ...]:
    return to_us(wait.opened_at), wait.wait_id


def _sealed(cursor: Cursor | None, signer: dependencies.CursorSigner, listing: Listing) -> str | None:
    return None if cursor is None else signer.sign(cursor, listing)


ROUTES = [list_thread_waits, answer]
