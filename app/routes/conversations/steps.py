"""Steps: what every step of an execution came to, and settling one in doubt."""

from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Listing
from threadmark.app.listing.pages import PAGE_SIZE_MAX, CursorText, PageSize, beyond, cut
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import once
from threadmark.app.resources import Resources
from threadmark.app.wire.conversations.step_schema import Resolution, ShownStep, StepTotals, resolution_of, step_to_wire
from threadmark.state import (
    Failure,
    NotInDoubt,
    Refused,
    Reply,
    Run,
    RunStatus,
    Step,
    Steps,
    Wait,
    get_run,
    get_thread,
    lineage_seeing,
    list_runs,
    list_waits,
    read_entries,
    read_leaves,
    resolve_doubt,
    steps_of,
    visible,
)
from threadmark.state.threads.receipts import look_up, record
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.turn.step_verification import Finding, verify_step

__all__ = ["ROUTES", "Settled", "StepPage"]


class StepPage(Struct):
    """The steps of the execution that the run belongs to, in the order in which they came up."""

    run_id: str
    thread_id: str
    execution_id: str
    items: list[ShownStep]
    next: str | None
    previous: str | None
    totals: StepTotals


class Settled(Struct):
    """What became of a step in doubt. `is_settled` is false where its verifier could not tell."""

    run_id: str
    step_key: str
    outcome: str
    is_settled: bool
    result: Any = None
    failure: Failure | None = None


@get("/runs/{run_id:str}/steps", opt=needs(Scope.READ))
async def list_steps(
    run_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE_MAX,
    cursor: CursorText = None,
) -> StepPage:
    """Every model call and tool call of the run's execution: attempts, who made them, tokens paid and saved."""
    wanted = uuid_of("run", run_id)
    listing = Listing(caller.tenant_id, "steps", {"run_id": wanted})
    place = None if cursor is None else signer.verify(cursor, listing)
    run, steps = await resources.database.read(
        lambda connection: _steps_of(connection, resources, caller.tenant_id, wanted)
    )
    rows = list(enumerate(steps.steps))
    page = cut(beyond(rows, limit, place, _place_of), limit, place, _place_of)
    agent = resources.wired.registry.find(run.assistant)
    model = (agent.model if agent else None) or resources.settings.model
    return StepPage(
        run_id=run.run_id,
        thread_id=run.thread_id,
        execution_id=run.execution_id,
        items=[step_to_wire(step, run.execution_id, model) for _, step in page.rows],
        next=None if page.next is None else signer.sign(page.next, listing),
        previous=None if page.previous is None else signer.sign(page.previous, listing),
        totals=StepTotals(
            step_count=len(steps.steps),
            attempt_count=sum(len(step.attempts) for step in steps.steps),
            tokens_paid=steps.tokens_paid,
            tokens_saved_by_replay=steps.tokens_saved,
        ),
    )


@post(
    "/runs/{run_id:str}/steps/{step_key:str}/resolve",
    opt=needs(Scope.APPROVE),
    status_code=200,
    responses={200: ResponseSpec(Settled, description="What became of the step.", generate_examples=False)},
)
async def resolve_step(
    run_id: FromPath[str],
    step_key: FromPath[str],
    data: JSONBody[Resolution],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Settle a step in doubt; its run then goes on by itself. `verify` asks the tool's verifier and reports."""
    wanted, now_us = uuid_of("run", run_id), resources.wired.now_us()
    value = resolution_of(data)
    about = None if data.wait_id is None else uuid_of("wait", data.wait_id)
    found = None
    if value is None:
        about, found = await _ask(resources, caller.tenant_id, wanted, step_key, about)
    if found is not None:
        value = found.resolution()
    receipt = None if request_key is None else request_key.receipt(lambda body: (200, body))

    def unit(connection: Connection) -> tuple[Reply | bytes, list[Run]]:
        if (reply := look_up(connection, caller.tenant_id, receipt, now_us=now_us)) is not None:
            return reply, []
        run = get_run(connection, caller.tenant_id, wanted)
        if value is not None:
            resolve_doubt(connection, run, step_key, value, f"key:{caller.key_id}", now_us, wait_id=about)
        elif found is None:
            raise NotInDoubt(step_key)
        body = msgspec.json.encode(_settled(wanted, step_key, value, found))
        record(connection, caller.tenant_id, receipt, body, thread=run.thread)
        return body, list_runs(connection, run.thread, status=RunStatus.PENDING)

    made, pending = await resources.database.write(unit)
    for each in pending:
        resources.wired.notifier.notify(each.run_id, each.attempts + 1)
    return once(made)


async def _ask(
    resources: Resources, tenant_id: str, run_id: str, step_key: str, about: str | None
) -> tuple[str, Finding] | tuple[None, None]:
    """The doubt about the step, and what the verifier of its tool finds; None where the step is not in doubt.

    `about` names the doubt that is meant. Raises Refused where this server does not have the assistant.
    """

    def unit(connection: Connection) -> tuple[Run, Wait | None, Step | None]:
        run, steps = _steps_of(connection, resources, tenant_id, run_id)
        step = next((each for each in steps.steps if each.key == step_key), None)
        waits = list_waits(connection, run.thread, status="open")
        return run, next((wait for wait in waits if _is_about(wait, run, step_key, about)), None), step

    run, wait, step = await resources.database.read(unit)
    agent = resources.wired.registry.find(run.assistant)
    if wait is None:
        return None, None
    if agent is None:
        raise Refused(f"This server has no assistant {run.assistant!r} to ask; say happened or did_not_happen.")
    attempt = 1 if step is None else max(step.attempts, default=1)
    finding = await verify_step(
        agent, run, wait, attempt, data_dir=resources.settings.data_dir, now=resources.wired.now
    )
    return wait.wait_id, finding


def _steps_of(connection: Connection, resources: Resources, tenant_id: str, run_id: str) -> tuple[Run, Steps]:
    run = get_run(connection, tenant_id, run_id)
    thread = get_thread(connection, tenant_id, run.thread_id)
    entries = read_entries(connection, thread.number)
    lineage = lineage_seeing(entries, read_leaves(connection, thread.number), thread.lineage, run.number)
    effect_of = _effects(resources.wired.registry.find(run.assistant))
    return run, steps_of(visible(entries, lineage), run.execution_id, effect_of, resources.wired.now_us())


def _effects(agent: ChatAgent | None) -> Callable[[str], str | None]:
    if agent is None:
        return lambda _name: None

    def effect_of(name: str) -> str | None:
        tool = agent.tool(name)
        return None if tool is None else str(tool.effect)

    return effect_of


def _is_about(wait: Wait, run: Run, step_key: str, about: str | None) -> bool:
    is_meant = about is None or wait.wait_id == about
    return is_meant and wait.kind == "in_doubt" and wait.execution_id == run.execution_id and wait.step_key == step_key


def _settled(run_id: str, step_key: str, value: dict[str, Any] | None, found: Finding | None) -> Settled:
    return Settled(
        run_id=run_id,
        step_key=step_key,
        outcome="unknown" if value is None else value["outcome"],
        is_settled=value is not None,
        result=None if value is None else value.get("result"),
        failure=None if found is None else found.failure,
    )


def _place_of(row: tuple[int, Step]) -> tuple[int | str, ...]:
    return (row[0],)


ROUTES = [list_steps, resolve_step]
