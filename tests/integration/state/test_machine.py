"""A machine that does to threads whatever may be done to them, in any order, with workers that die at any point.

After each move the rules of the journal must hold (I1 to I8); in the end everything must come to rest.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.conformance.store import Store
from tests.integration.state.mortality import Death, Fate, mortal
from tests.integration.state.rules import Rules
from tests.integration.state.stage import Clock, Stage
from tests.integration.state.world import LETTERS, Obedient, World
from tests.support.factories import a_submission, human
from threadmark.state import (
    SETTLED,
    CancelAction,
    Multitask,
    NothingToCancel,
    Run,
    RunRequest,
    StateUpdated,
    Thread,
    ThreadBusy,
    Update,
    Wait,
    cancel_runs,
    fold,
    idempotency_key_of,
    list_waits,
    migrate,
    open_engine,
    read_history,
    update_state,
    visible,
)
from threadmark.workers.agents.agent import ChatAgent, Limits
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.turn.turn_parts import TurnParts

T = TypeVar("T")
LETTER = st.sampled_from(sorted(LETTERS))
SAID = st.text(LETTER, min_size=0, max_size=3)
ANY = st.integers(0, 10**6)
REST_COUNT_MAX = 400


@cache
def template() -> Path:
    """A migrated database, to be copied."""
    path = Path(tempfile.mkdtemp()) / "state.db"
    engine = open_engine(f"sqlite:///{path}", write=True)
    migrate(engine)
    engine.dispose()
    return path


class Machine(RuleBasedStateMachine):
    """A store, a world outside, and what is known of both."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        shutil.copyfile(template(), self.folder / "state.db")
        self.world, self.fate = World(), Fate()
        self.threads: list[str] = []
        self.said_count = self.worker_count = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in this machine's own event loop."""
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        """Open everything; the first thread is there."""
        self.do(self._open())
        self.accept("", 0, Multitask.ENQUEUE)

    async def _open(self) -> None:
        self.store = Store.open(f"sqlite:///{self.folder / 'state.db'}")
        self.held_to = Rules(self.store)
        clock = Clock()
        agent = ChatAgent(name="chat", tools=self.world.tools, limits=Limits())
        parts = TurnParts(
            database=self.store.database,
            journal=self.store.journal,
            model=Obedient(()),
            feed=LocalFeed(),
            data_dir=self.folder,
            now=clock.now,
        )
        stage = Stage(store=self.store, parts=parts, agent=agent, model=parts.model, clock=clock)  # type: ignore[arg-type]
        self.stage = mortal(stage, self.fate, self.world.tools)

    def teardown(self) -> None:
        """Bring everything to rest, look once more, and close."""
        if hasattr(self, "store"):
            try:
                self.do(self._rest())
                self.the_rules_hold()
            finally:
                self.do(self.store.database.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    # What may be done.

    @rule(said=SAID, which=ANY, strategy=st.sampled_from(Multitask))
    def accept(self, said: str, which: int, strategy: Multitask) -> None:
        """A person says something, on a new thread or on one that is there."""
        self.said_count += 1
        message = human(said, f"human-{self.said_count}")
        thread_id = ([*self.threads, None])[which % (len(self.threads) + 1)]
        submission = a_submission(thread_id=thread_id, multitask=strategy, request=RunRequest(messages=(message,)))
        self.submission(submission)

    @rule(which=ANY, strategy=st.sampled_from(Multitask))
    def go_on(self, which: int, strategy: Multitask) -> None:
        """A run without input."""
        self.submission(a_submission(thread_id=self.pick(self.threads, which), multitask=strategy))

    @rule(which=ANY, place=ANY)
    def fork(self, which: int, place: int) -> None:
        """A run from an earlier position."""
        thread = self.do(self.thread(self.pick(self.threads, which)))
        positions = self.do(self._positions(thread))
        if positions:
            self.submission(
                a_submission(thread_id=thread.thread_id, request=RunRequest(from_seq=self.pick(positions, place)))
            )

    def submission(self, submission: Any) -> None:
        try:
            run = self.do(self.store.submission(submission)).run
        except ThreadBusy:
            assert submission.multitask is Multitask.REJECT
            return
        if run is not None and run.thread_id not in self.threads:
            self.threads.append(run.thread_id)

    @rule(at=st.none() | st.integers(1, 40))
    def turn(self, at: int | None) -> None:
        """A worker takes a turn of what is due, and dies at some point of it, or not."""
        self.do(self._turn(at))

    @rule(which=ANY, action=st.sampled_from(CancelAction))
    def cancel(self, which: int, action: CancelAction) -> None:
        """Somebody asks the runs of a thread to stop."""
        thread = self.do(self.thread(self.pick(self.threads, which)))
        try:
            self.do(self.store.write(partial(cancel_runs, thread=thread.number, action=action, now_us=0)))
        except NothingToCancel:
            assert self.do(self._unfinished(thread)) == []

    @rule(which=ANY, value=st.booleans())
    def answer(self, which: int, value: bool) -> None:
        """A person answers a question."""
        waits = [wait for wait in self.do(self._open_waits()) if wait.kind == "approval"]
        if waits:
            wait = self.pick(waits, which)
            self.do(self.stage.answer(wait, value))
            self.held_to.answered[wait.wait_id] = value

    @rule(which=ANY)
    def resolve(self, which: int) -> None:
        """A person finds out what became of a step, and says so."""
        waits = [wait for wait in self.do(self._open_waits()) if wait.kind == "in_doubt"]
        if waits:
            self.do(self._resolve(self.pick(waits, which)))

    @rule(which=ANY)
    def update(self, which: int) -> None:
        """Write into an idle thread from outside."""
        self.do(self._update(self.pick(self.threads, which)))

    @rule(which=ANY)
    def delete(self, which: int) -> None:
        """Delete a thread, held or not; at least one stays."""
        if len(self.threads) > 1:
            thread_id = self.pick(self.threads, which)
            self.do(self.store.delete(thread_id))
            self.threads.remove(thread_id)

    # What must hold.

    @invariant()
    def the_rules_hold(self) -> None:
        """Whatever was done."""
        if hasattr(self, "store"):
            assert self.world.collisions == []
            assert all(count == 1 for key, count in self.world.count.items() if self.world.reached[key][0] != "mail")
            for thread_id in self.threads:
                self.do(self._check(thread_id))

    async def _check(self, thread_id: str) -> None:
        await self.held_to.check(await self.thread(thread_id), self.stage.parts.journal.fold_cache)

    # How it is done.

    @staticmethod
    def pick(things: list[T], which: int) -> T:
        """One of them."""
        return things[which % len(things)]

    async def thread(self, thread_id: str) -> Thread:
        """A thread as it is now."""
        return await self.store.thread(thread_id)

    async def _turn(self, at: int | None) -> bool:
        await self.store.bury_all()
        self.worker_count += 1
        claims = await self.store.claim(f"worker-{self.worker_count}", count_max=1)
        self.fate.at, self.fate.count, self.fate.is_dead = at, 0, False
        for claimed in claims:
            try:
                await self.stage.turn_of(claimed).take()
            except Death:
                continue
        return bool(claims)

    async def _positions(self, thread: Thread) -> list[int]:
        entries = await self.store.entries(thread.number)
        return list(read_history(entries, await self.store.journal.read_leaves(thread.number)).positions)

    async def _unfinished(self, thread: Thread) -> list[Run]:
        return [run for run in await self.store.runs(thread.number) if run.status not in SETTLED]

    async def _open_waits(self) -> list[Wait]:
        found = []
        for thread_id in self.threads:
            thread = await self.thread(thread_id)
            found += await self.store.read(partial(list_waits, thread=thread.number, status="open"))
        return found

    async def _resolve(self, wait: Wait) -> None:
        thread = await self.thread(wait.thread_id)
        (run,) = [each for each in await self._unfinished(thread) if each.execution_id == wait.execution_id]
        key = idempotency_key_of(run.execution_id, wait.step_key)
        happened = {"outcome": "happened", "result": "found out"}
        value = happened if key in self.world.reached else {"outcome": "did_not_happen"}
        await self.stage.settle(run, wait.step_key, value)

    async def _update(self, thread_id: str) -> None:
        thread = await self.thread(thread_id)
        state = fold(visible(await self.store.entries(thread.number), thread.lineage))
        if state.open_calls or await self._unfinished(thread):
            return
        self.said_count += 1
        entry = StateUpdated(messages=(human("l", f"human-{self.said_count}"),))
        change = Update(thread=thread, entry=entry, expected_seq=thread.head_seq)
        await self.store.write(partial(update_state, change=change, now_us=self.store.now_us()))

    async def _rest(self) -> None:
        """Answer, resolve and take turns until nothing is left to do (I6)."""
        for _ in range(REST_COUNT_MAX):
            for wait in await self._open_waits():
                if wait.kind == "in_doubt":
                    await self._resolve(wait)
            if await self._turn(None):
                continue
            questions = [wait for wait in await self._open_waits() if wait.kind == "approval"]
            if not questions:
                break
            await self.stage.answer(questions[0], True)
            self.held_to.answered[questions[0].wait_id] = True
        for thread_id in self.threads:
            left = await self._unfinished(await self.thread(thread_id))
            assert left == [], f"{left} of {await self.thread(thread_id)}"


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
