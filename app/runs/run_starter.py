"""Starting a run, and what its caller hears of it: the run at once, its events, or what it came to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
from litestar import Response
from sqlalchemy import Connection

from threadmark.app.access import Caller, KeyRing
from threadmark.app.access.seats import Seat
from threadmark.app.requests.answers import json_answer
from threadmark.app.requests.request_key import REPLAYED, RequestKey, replay
from threadmark.app.resources import Resources
from threadmark.app.runs.run_admission import announce, start_at, start_finder, submission_of
from threadmark.app.runs.run_outcome import is_over
from threadmark.app.runs.run_reader import Reader
from threadmark.app.wire.conversations.event_ids import START
from threadmark.app.wire.conversations.run_request import RunSpec, StatelessRunBody, read_run_spec
from threadmark.app.wire.conversations.run_schema import run_path, run_to_wire
from threadmark.state import (
    Acceptance,
    BoundReached,
    KeyInProgress,
    Receipt,
    Reply,
    Run,
    accept,
    get_run,
    new_id,
    served_routes,
    store_reply,
)
from threadmark.state.threads.receipts import replied

__all__ = ["Starter", "created"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """A request for a run: who asks, with which key of idempotency, and on which thread (None: on one of its own)."""

    resources: Resources
    keys: KeyRing
    caller: Caller
    request_key: RequestKey | None
    thread_id: str | None
    trace_parent: str | None

    async def create(self, body: StatelessRunBody) -> Response[bytes]:
        """Accept the run and show it."""
        served = await self.resources.database.read(served_routes)
        receipt = None if self.request_key is None else self.request_key.receipt(partial(created, served=served))
        _, acceptance = await self._accept(body, receipt)
        if acceptance.run is not None:
            shown = run_to_wire(acceptance.run, served)
            return json_answer(shown, headers={"content-location": run_path(acceptance.run)})
        return _replayed(acceptance)

    async def stream(self, body: StatelessRunBody) -> Response[None]:
        """Accept the run and stream its events. The same request again, once the run is over, streams them again."""
        with await self._seat() as seat:
            spec, acceptance = await self._accept(body, self._open_receipt())
            run, is_again = acceptance.run, acceptance.run is None
            if run is None:
                run = await self._run_again(acceptance.replay)
            reader = self._reader(run, seat.kept(), cancels=spec.cancel_on_disconnect and not is_again)
        return reader.stream(spec.modes, START, with_ids=run.resumable, headers=REPLAYED if is_again else None)

    async def wait(self, body: StatelessRunBody) -> Response[None] | Response[bytes]:
        """Accept the run and answer with what it came to, when it is over."""
        with await self._seat() as seat:
            spec, acceptance = await self._accept(body, self._open_receipt())
            if acceptance.run is not None:
                reader = self._reader(acceptance.run, seat.kept(), cancels=spec.cancel_on_disconnect)
                return reader.result(partial(self._finish, reader))
        again = acceptance.replay
        if again is not None and again.body is not None:
            return replay(again)
        run = await self._run_again(again)
        body_again = await self._finish(self._reader(run, None, cancels=False))
        return replay(Reply(status_code=200, body=body_again, run_id=run.run_id))

    async def _accept(self, body: StatelessRunBody, receipt: Receipt | None) -> tuple[RunSpec, Acceptance]:
        lock = None if self.thread_id is None else (self.caller.tenant_id, self.thread_id)
        async with self.resources.thread_locks.one_at_a_time(lock):
            spec, acceptance = await self._accept_next(body, receipt)
        announce(self.resources.wired, [acceptance])
        return spec, acceptance

    async def _accept_next(self, body: StatelessRunBody, receipt: Receipt | None) -> tuple[RunSpec, Acceptance]:
        database, now_us = self.resources.database, self.resources.wired.now_us()
        spec = read_run_spec(body, self.thread_id, lambda: new_id(now_us))
        find_start = None
        if self.thread_id is not None and spec.checkpoint_id is not None:
            # Not under the lock: reading where a long thread once stood takes its time.
            start = await database.read(
                partial(start_at, caller=self.caller, thread_id=self.thread_id, checkpoint_id=spec.checkpoint_id)
            )
            find_start = start_finder(self.caller, self.thread_id, start)
        submission = submission_of(
            spec,
            self.caller,
            self.resources.wired,
            self.thread_id,
            receipt,
            now_us,
            self.trace_parent,
            find_start,
        )
        return spec, await database.write(lambda connection: accept(connection, submission, now_us))

    def _open_receipt(self) -> Receipt | None:
        return None if self.request_key is None else self.request_key.receipt(None)

    async def _seat(self) -> Seat:
        """A seat for the answer, taken before the run is accepted. A repeated request needs none: its run is over.

        Raises BoundReached.
        """
        try:
            return self.resources.take_stream(self.caller.tenant_id)
        except BoundReached:
            receipt = self._open_receipt()
            if receipt is None:
                raise
            known = partial(replied, tenant_id=self.caller.tenant_id, receipt=receipt)
            if await self.resources.database.read(known) is None:
                raise
            return Seat.nowhere()

    def _reader(self, run: Run, seat: Seat | None, *, cancels: bool) -> Reader:
        return Reader(
            resources=self.resources,
            keys=self.keys,
            caller=self.caller,
            run=run,
            cancels_on_leaving=cancels,
            seat=seat,
        )

    async def _run_again(self, reply: Reply | None) -> Run:
        """The run of a repeated request. Raises KeyInProgress before it is over, NotFound when it is gone."""
        if reply is None or self.request_key is None:
            raise AssertionError("a request without a key is never a repeated one")
        run_id = reply.run_id or ""

        def unit(connection: Connection) -> Run:
            return get_run(connection, self.caller.tenant_id, run_id)

        run = await self.resources.database.read(unit)
        if not is_over(run):
            raise KeyInProgress(self.request_key.key)
        return run

    async def _finish(self, reader: Reader) -> bytes:
        """What the run came to; kept as the answer of the request's key, if it has one."""
        body = await reader.outcome()
        if self.request_key is not None:
            key, tenant_id = self.request_key.key, self.caller.tenant_id
            await self.resources.database.write(lambda connection: store_reply(connection, tenant_id, key, 200, body))
        return body


def created(run: Run, *, served: Collection[str]) -> tuple[int, bytes]:
    """The answer that creates a run; `served` are the routes of the live workers."""
    return 200, msgspec.json.encode(run_to_wire(run, served))


def _replayed(acceptance: Acceptance) -> Response[bytes]:
    if acceptance.replay is None:
        raise AssertionError("a run is accepted or replayed")
    answer = replay(acceptance.replay)
    run: Mapping[str, str] = msgspec.json.decode(answer.content)
    answer.headers["content-location"] = f"/threads/{run['thread_id']}/runs/{run['run_id']}"
    return answer
