"""A state database as the conformance specs speak to it: short forms of the units, and a worker that holds threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection

from tests.support.factories import TENANT, a_submission, asked, replied
from threadmark.state import (
    Acceptance,
    Claim,
    Database,
    Entry,
    Journal,
    JournalWriter,
    Receipt,
    Recorded,
    Reply,
    Run,
    RunChanges,
    RunOutcome,
    RunStarted,
    RunStatus,
    RunSubmission,
    StepKey,
    Thread,
    ThreadStatus,
    TurnStarted,
    Wait,
    WaitOpened,
    accept,
    claim,
    copy_thread,
    delete_thread,
    expire,
    finish_deletions,
    get_run,
    get_thread,
    list_runs,
    list_waits,
    list_workers,
    open_thread,
    register,
    to_us,
    wait_id_of,
)

__all__ = ["ROUTES", "Store", "a_receipt", "real_now_us"]

T = TypeVar("T")
ROUTES = ("chat",)
WORKER = "worker-1"
LEASE_S = 600.0


def real_now_us() -> int:
    """The clock: due times and leases are judged by the database's own, so a made-up one would not do."""
    return to_us(datetime.now(UTC))


def a_receipt(key: str = "key-1", digest: str = "digest", *, is_open: bool = False) -> Receipt:
    """A key, and the answer that its first use stores: the id of the run that was made."""
    answer = None if is_open else lambda made: (200, str(getattr(made, "run_id", None)).encode())
    return Receipt(key=key, request_digest=digest, answer=answer)


@dataclass
class Store:
    """One migrated database."""

    url: str
    database: Database
    journal: Journal
    now_us: Callable[[], int] = real_now_us
    _workers: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, url: str) -> "Store":
        """Open the database behind `url` as one more process would."""
        # What a power cut leaves is for the crash tests; here nothing waits for the disk.
        database = Database.open(url, synchronous="NORMAL")
        return cls(url=url, database=database, journal=Journal(database))

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit."""
        return await self.database.write(unit)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Ask a query."""
        return await self.database.read(query)

    async def delete(self, thread_id: str, tenant_id: str = TENANT) -> None:
        """Delete a thread, with every row of state about it."""
        deletion = await self.write(partial(delete_thread, tenant_id=tenant_id, thread_id=thread_id))
        await finish_deletions(self.database, [deletion])

    async def thread(self, thread_id: str | None = None, tenant_id: str = TENANT, **metadata: Any) -> Thread:
        """A new thread, or the one that has the id."""
        made = await self.write(
            lambda connection: open_thread(
                connection,
                tenant_id=tenant_id,
                thread_id=thread_id,
                metadata=metadata,
                keep_existing=True,
                receipt=None,
                now_us=self.now_us(),
            )
        )
        assert isinstance(made, Thread)
        return made

    async def copied(self, thread_id: str, receipt: Receipt | None = None) -> Thread | Reply:
        """A copy of the thread, or the reply of the key."""
        made = await copy_thread(
            self.database, TENANT, thread_id, now_us=self.now_us, look=lambda *_: None, receipt=lambda _: receipt
        )
        return made if isinstance(made, Reply) else made[0]

    async def copy(self, thread_id: str) -> Thread:
        """A copy of the thread."""
        made = await self.copied(thread_id)
        assert isinstance(made, Thread)
        return made

    async def seen(self, thread: Thread) -> Thread:
        """The thread as it is now."""
        return await self.read(lambda connection: get_thread(connection, thread.tenant_id, thread.thread_id))

    async def submission(self, submission: RunSubmission) -> Acceptance:
        """Offer a run."""
        return await self.write(lambda connection: accept(connection, submission, self.now_us()))

    async def accept(self, *texts: str, **changes: Any) -> Run:
        """Have a run accepted that says `texts`, on a thread of its own unless `thread_id` names one."""
        run = (await self.submission(a_submission(*texts, **changes))).run
        assert run is not None
        return run

    async def run(self, run: Run) -> Run:
        """The run as it is now."""
        return await self.read(lambda connection: get_run(connection, run.tenant_id, run.run_id))

    async def runs(self, thread: int) -> list[Run]:
        """The runs of a thread, newest first."""
        return await self.read(lambda connection: list_runs(connection, thread, limit=100))

    async def waits(self, run: Run, status: str | None = None) -> list[Wait]:
        """The waits of the run's thread."""
        return await self.read(lambda connection: list_waits(connection, run.thread, status=status))

    async def register(self, worker_id: str = WORKER, ttl_s: float = LEASE_S) -> None:
        """Begin the lease of a worker; one of a negative `ttl_s` has ended already."""
        await self.write(lambda connection: register(connection, worker_id, ttl_s, "{}"))
        self._workers.add(worker_id)

    async def alive(self, worker_id: str = WORKER) -> None:
        """Begin the lease of a worker unless it has begun."""
        if worker_id not in self._workers:
            await self.register(worker_id)

    async def bury_all(self) -> None:
        """End the leases of all workers, as after their death: what they held is claimable."""
        seen = await self.read(list_workers)
        await self.write(lambda connection: expire(connection, [each.worker_id for each in seen]))
        self._workers.clear()

    async def claim(
        self, worker_id: str = WORKER, *, routes: Sequence[str] = ROUTES, count_max: int = 100, **options: Any
    ) -> list[Claim]:
        """Claim runs for a worker, which is enrolled if it was not."""
        await self.alive(worker_id)
        return await self.write(lambda connection: claim(connection, worker_id, routes, count_max, **options))

    async def hold(self, run: Run, worker_id: str = WORKER) -> tuple[Claim, JournalWriter]:
        """Claim this run and nothing else; its hand on the journal. The run has to be the first one that is due."""
        (claimed,) = await self.claim(worker_id, count_max=1)
        assert claimed.run.run_id == run.run_id
        return claimed, self.writer(claimed)

    async def begun(self, *texts: str, **changes: Any) -> tuple[Claim, JournalWriter]:
        """An accepted run that a worker has begun, with the first two entries on disk."""
        claimed, writer = await self.hold(await self.accept(*(texts or ("hello",)), **changes))
        await self.begin(claimed, writer)
        return claimed, writer

    async def begun_on(self, before: Run, **changes: Any) -> tuple[Claim, JournalWriter]:
        """A run that a worker has begun on the thread of another one."""
        claimed, writer = await self.hold(await self.accept(thread_id=before.thread_id, **changes))
        await self.begin(claimed, writer)
        return claimed, writer

    async def begin(self, claimed: Claim, writer: JournalWriter) -> None:
        """Put the two entries on disk with which a run begins."""
        run = claimed.run
        writer.append(
            RunStarted(
                run_id=run.run_id,
                execution_id=run.execution_id,
                assistant=run.assistant,
                source="input" if run.request.messages else "continue",
                messages=run.request.messages,
            )
        )
        writer.append(TurnStarted(worker_id=str(claimed.thread.owner), attempt=run.attempts))
        await writer.flush()

    async def asking(self, *names: str, **changes: Any) -> tuple[Claim, tuple[WaitOpened, ...]]:
        """A run that has ended to wait for a person: one approval for each tool named."""
        claimed, writer = await self.begun(**changes)
        calls = [asked(name, f"call-{index}") for index, name in enumerate(names)]
        waits = tuple(self.question(claimed, index, name) for index, name in enumerate(names))
        ending = RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.INTERRUPTED)
        move = RunChanges(ending=ending, execution_id=claimed.run.execution_id, opened=waits)
        await self.put(writer, replied(*calls), *waits, move=move)
        return claimed, waits

    def question(
        self, claimed: Claim, index: int = 0, tool: str = "pay", kind: Literal["approval", "in_doubt"] = "approval"
    ) -> WaitOpened:
        """The entry that asks about a call of the first reply."""
        key = StepKey(f"tool-1-{index}")
        return WaitOpened(
            wait_id=wait_id_of(claimed.run.execution_id, key, kind),
            step_key=key,
            kind=kind,
            tool=tool,
            arguments={},
            shown_digest="digest",
            effect="once",
        )

    def writer(self, claimed: Claim) -> JournalWriter:
        """A hand on the journal of a claimed thread."""
        return JournalWriter(self.database, claimed.thread, run=claimed.run.number, now_us=self.now_us)

    async def put(self, writer: JournalWriter, *entries: Entry, move: RunChanges | None = None) -> None:
        """Note entries and put them on disk in one commit."""
        for entry in entries:
            writer.append(entry)
        await writer.flush(move)

    async def entries(self, thread: int) -> list[Recorded]:
        """The journal of a thread."""
        return await self.journal.read(thread)
