"""What is remembered of a run after it: the words of its people first, then what they state.

A task that is committed with the end of its run. It names the run and holds no words, so that erasing them in the
journal is enough; done twice, it remembers once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from threadmark.memory import Draft, Forget, Recollection, Scope, Selector, extract
from threadmark.state import Database, Journal, Message, NotFound, RolledBack, Run, RunStarted, Said, Thread, get_thread
from threadmark.state.tasks.tasks import NewTask, Task
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.memory_policy import MemoryPolicy, NoScope, scope_of
from threadmark.workers.agents.moments import moment_at
from threadmark.workers.agents.tools import NonRetryable
from threadmark.workers.models import ChatModel
from threadmark.workers.models.extractor import ModelExtractor
from threadmark.workers.tasks.erased_json import ERASED
from threadmark.workers.tasks.task_context import TaskContext

__all__ = ["EXTRACT_MEMORY", "ExtractionIncomplete", "MemoryExtraction", "extraction_of"]

EXTRACT_MEMORY = "extract_memory"
#: Code points of one raw turn: a longer message is kept in pieces of this length.
PIECE_LENGTH = 30_000


class ExtractionIncomplete(Exception):
    """The model's statements are missing; the raw words and what the rules found are kept. It can be tried again."""


def extraction_of(agent: ChatAgent, run: Run) -> NewTask | None:
    """The task that a run leaves when it ends; None where there is nothing to remember."""
    if agent.memory is None or agent.memory.extract == "off":
        return None
    if not any(each.type == "human" and each.text.strip() for each in run.request.messages):
        return None
    payload = {"run_id": run.run_id, "thread_id": run.thread_id, "assistant": run.assistant}
    return NewTask(tenant_id=run.tenant_id, kind=EXTRACT_MEMORY, key=run.run_id, payload=payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryExtraction:
    """What those tasks go through: from the journal to `recollection` (None: no memory here), read by `model`."""

    database: Database
    journal: Journal
    registry: Registry
    recollection: Recollection | None
    model: ChatModel
    now: Callable[[], datetime]

    async def extract(self, task: Task, _: TaskContext) -> dict[str, Any]:
        """The handler of EXTRACT_MEMORY."""
        if self.recollection is None:
            raise NonRetryable("this server has no memory")
        return await _Run(self, self.recollection, task).remember()


class _Run:
    """One run that is remembered."""

    def __init__(self, parts: MemoryExtraction, memory: Recollection, task: Task) -> None:
        self._parts = parts
        self._memory = memory
        self._task = task
        self._run_id = str(task.payload["run_id"])
        self._assistant = str(task.payload["assistant"])

    async def remember(self) -> dict[str, Any]:
        """The ids of what was kept. Raises ExtractionIncomplete behind everything that could be kept."""
        agent = self._parts.registry.find(self._assistant)
        if agent is None or agent.memory is None or agent.memory.extract == "off":
            return {"skipped": "the agent extracts nothing any more"}
        try:
            thread = await self._thread()
            scope = self._scope(agent.memory, thread)
        except (NotFound, NoScope) as error:
            return {"skipped": str(error)}
        extractor = (
            None
            if agent.memory.extract == "rules"
            else ModelExtractor(self._parts.model, agent.model, self._task.task_id)
        )
        kept = [
            await extract(self._memory, draft, scope=scope, now=self._parts.now(), extractor=extractor)
            for draft in await self._drafts(agent.memory, thread, scope)
        ]
        await self._forget_again(thread)
        if failures := [each.failure for each in kept if each.failure is not None]:
            raise ExtractionIncomplete(failures[0])
        return {
            "turns": [each.turn.assertion_id for each in kept],
            "statements": [verdict.assertion_id for each in kept for verdict in each.statements],
            "extractor": "rules" if extractor is None else extractor.name,
        }

    async def _thread(self) -> Thread:
        thread_id = str(self._task.payload["thread_id"])
        return await self._parts.database.read(
            lambda connection: get_thread(connection, self._task.tenant_id, thread_id)
        )

    def _scope(self, policy: MemoryPolicy, thread: Thread) -> Scope:
        return scope_of(
            policy,
            tenant_id=self._task.tenant_id,
            assistant=self._assistant,
            thread_id=thread.thread_id,
            metadata=thread.metadata,
        )

    async def _said(self, thread: Thread) -> list[tuple[Message, Said]]:
        """What people said to the run, with where it stands; nothing of a run that was rolled back."""
        entries = await self._parts.journal.read(thread.number)
        if any(isinstance(each.entry, RolledBack) and each.entry.run_id == self._run_id for each in entries):
            return []
        return [
            (message, Said(each.seq, each.entry.run_id, each.at_us))
            for each in entries
            if isinstance(each.entry, RunStarted) and each.entry.run_id == self._run_id
            for message in each.entry.messages
            if message.type == "human"
        ]

    async def _drafts(self, policy: MemoryPolicy, thread: Thread, scope: Scope) -> list[Draft]:
        return [
            _draft(message, said, span, thread, scope, policy)
            for message, said in await self._said(thread)
            if not _is_erased(message)
            for span in _pieces(message.text)
        ]

    async def _forget_again(self, thread: Thread) -> None:
        """What was erased in the journal while it was remembered goes from memory too."""
        for message, said in await self._said(thread):
            if _is_erased(message):
                source = Selector(thread_ref=thread.thread_id, run_ref=self._run_id, seq=said.seq)
                what = Forget(source=source)
                await self._memory.erase(what, tenant_id=self._task.tenant_id, now=self._parts.now())


def _is_erased(message: Message) -> bool:
    return message.content == ERASED


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where the pieces of a message stand that memory takes: all of it, and nothing blank."""
    for start in range(0, len(text), PIECE_LENGTH):
        end = min(start + PIECE_LENGTH, len(text))
        if text[start:end].strip():
            yield start, end


def _draft(
    message: Message, said: Said, span: tuple[int, int], thread: Thread, scope: Scope, policy: MemoryPolicy
) -> Draft:
    moment = moment_at(message, said, thread_id=thread.thread_id, trust=policy.trust, span=span)
    return Draft(
        namespace=scope.namespace,
        text=message.text[slice(*span)],
        observed_at=moment.observed_at,
        trust=moment.trust,
        origin=moment.origin,
        asserted_by=moment.asserted_by,
    )
