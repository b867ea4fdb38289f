"""An agent on the real engine: journal, steps, retries, approvals and limits are those of a server; only the model is
scripted, and everything lies in a temporary folder.
"""

import asyncio
import dataclasses
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection

from threadmark.state import (
    SETTLED,
    Acceptance,
    Answer,
    Message,
    ParkReason,
    Run,
    RunRequest,
    RunSubmission,
    accept,
    answer_wait,
    find_run,
    fold,
    get_run,
    get_thread,
    lineage_of,
    new_id,
    read_entries,
    read_leaves,
    to_us,
    visible,
)
from threadmark.testing.scripted_model import ScriptedModel, ScriptExhausted
from threadmark.workers.agents.agent import ChatAgent, Registry, assistant_id_of
from threadmark.workers.agents.memory_tools import memory_tools
from threadmark.workers.agents.tools import Tool
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.migration import migrate_memory, migrate_state
from threadmark.workers.models.choice import offline_model
from threadmark.workers.models.errors import PromptInvalid
from threadmark.workers.models.script import PlannedReply
from threadmark.workers.pools import UPKEEP
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import Resources, now_utc, open_resources

__all__ = ["AgentSession", "Question", "Turn"]

_TENANT = "default"
_POLL_S = 0.5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked before a tool is called, or about a step in doubt. `kind`: `approval` or `in_doubt`."""

    wait_id: str
    kind: str
    tool: str
    arguments: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What became of a message, or of an answer to a question.

    Attributes:
        text: What the model said last.
        results: What each tool call of the run returned to the model, as text, in order; errors too.
        questions: What waits for a person now.
        failure: Why the run failed, a sentence; None where it did not.
    """

    text: str
    results: tuple[str, ...]
    questions: tuple[Question, ...]
    failure: str | None


class AgentSession:
    """One conversation with an agent. Use it in an `async with`.

    >>> import asyncio
    >>> from threadmark import ChatAgent, Effect, tool
    >>> from threadmark.testing import ScriptedModel, call
    >>> @tool(effect=Effect.PURE)
    ... async def add(a: int, b: int) -> int:
    ...     return a + b
    >>> async def talk() -> str:
    ...     model = ScriptedModel(call("add", a=1, b=2), "That makes 3.")
    ...     async with AgentSession(ChatAgent(name="adder", tools=[add]), model) as session:
    ...         turn = await session.say("What is 1 + 2?")
    ...         return f"{turn.results[0]}: {turn.text}"
    >>> asyncio.run(talk())
    '3: That makes 3.'

    Failed tools are attempted again without a delay, as often as their policies say; what a `RetryAfter` asks for is
    waited for.
    """

    def __init__(
        self,
        agent: ChatAgent,
        model: ScriptedModel,
        *,
        metadata: Mapping[str, Any] | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """`metadata` is the thread's; `timeout_s` is how long a turn may take before TimeoutError is raised."""
        own = memory_tools(agent.memory)
        tools = [each if each in own else _without_delay(each) for each in agent.tools]
        self._agent = dataclasses.replace(agent, tools=tools)
        self._model = model
        self._metadata = dict(metadata or {})
        self._timeout_s = timeout_s
        self._thread_id = new_id(to_us(now_utc()))
        self._stack = AsyncExitStack()
        self._resources: Resources | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threadmark-agent-")))
            settings = Settings.from_environment(
                {"THREADMARK_DATA_DIR": str(data_dir), "THREADMARK_MEMORY_INDEX": "memory"}
            )
            await UPKEEP.run(partial(_prepare, settings))
            self._resources = await stack.enter_async_context(
                open_resources(
                    settings,
                    with_worker=True,
                    registry=Registry([self._agent]),
                    model=offline_model(answer=self._answer_of_model),
                )
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources = None
        await self._stack.aclose()

    async def say(self, text: str) -> Turn:
        """Send a person's message, and return when the run has ended or waits for a person.

        Raises ScriptExhausted where the model was asked for more than its script has, and TimeoutError.
        """
        request = RunRequest(messages=(Message(id=new_id(self._open.now_us()), type="human", content=text),))
        submission = dataclasses.replace(
            self._submission(request), create_missing=True, thread_metadata=self._metadata or None
        )
        now_us = self._open.now_us()
        return await self._turn(
            await self._open.database.write(lambda connection: accept(connection, submission, now_us))
        )

    async def approve(self, question: Question) -> Turn:
        """Let the call be made, and go on. Raises Conflict for a step in doubt."""
        return await self._answer(question, True)

    async def refuse(self, question: Question, reason: str | None = None) -> Turn:
        """Refuse the call; the model reads the reason. Raises Conflict for a step in doubt."""
        return await self._answer(question, False if reason is None else {"approve": False, "reason": reason})

    @property
    def data_dir(self) -> Path:
        """The folder that tools see as `context.data_dir`."""
        return self._open.settings.data_dir

    @property
    def _open(self) -> Resources:
        if self._resources is None:
            raise RuntimeError("the session is not open: use it in `async with AgentSession(…) as session`")
        return self._resources

    async def _answer(self, question: Question, value: Any) -> Turn:
        answer = Answer(
            wait_id=question.wait_id,
            value=value,
            actor="test",
            submission=self._submission(RunRequest(resumes=True)),
        )
        now_us = self._open.now_us()
        return await self._turn(
            await self._open.database.write(lambda connection: answer_wait(connection, _TENANT, answer, now_us))
        )

    def _answer_of_model(self, body: Mapping[str, Any]) -> PlannedReply:
        try:
            return self._model.answer(body)
        except ScriptExhausted as error:
            # A refusal, so that the model is not asked again; `_turn` raises the error to the test.
            raise PromptInvalid(str(error)) from error

    def _submission(self, request: RunRequest) -> RunSubmission:
        return RunSubmission(
            tenant_id=_TENANT,
            thread_id=self._thread_id,
            assistant=self._agent.name,
            assistant_id=assistant_id_of(self._agent.name),
            route=self._agent.route,
            request=request,
            metadata={},
        )

    async def _turn(self, accepted: Acceptance) -> Turn:
        run = accepted.run
        if run is None:
            raise AssertionError("a run without a receipt is always new")
        self._open.notifier.notify(run.run_id, run.attempts + 1)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._until_over(run)
        except TimeoutError:
            raise TimeoutError(f"the run did not end within {self._timeout_s:g} s") from None
        if self._model.was_exhausted:
            raise ScriptExhausted(self._model.reply_count)
        return await self._open.database.read(lambda connection: _turn_of(connection, run))

    async def _until_over(self, run: Run) -> None:
        with self._open.feed.watch(_TENANT, run.run_id) as watch:
            while True:
                found = await self._open.database.read(lambda connection: find_run(connection, _TENANT, run.run_id))
                if found is None or found.status in SETTLED or found.parked is ParkReason.IN_DOUBT:
                    return
                await watch.changed(_POLL_S)


def _prepare(settings: Settings) -> None:
    make_data_dir(settings.data_dir)
    migrate_state(settings)
    migrate_memory(settings)


def _without_delay(tool: Tool) -> Tool:
    return dataclasses.replace(tool, retry=dataclasses.replace(tool.retry, first_delay_s=0, delay_max_s=0))


def _turn_of(connection: Connection, started: Run) -> Turn:
    run = get_run(connection, _TENANT, started.run_id)
    thread = get_thread(connection, _TENANT, run.thread_id)
    entries = read_entries(connection, thread.number)
    own = {each.seq for each in entries if each.run == run.number}
    state = fold(visible(entries, lineage_of(read_leaves(connection, thread.number), thread.branch)))
    said = [each for each in state.messages if each.id in state.said and state.said[each.id].seq in own]
    texts = [each.text for each in said if each.type == "ai"]
    return Turn(
        text=texts[-1] if texts else "",
        results=tuple(each.text for each in said if each.type == "tool"),
        questions=tuple(
            Question(
                wait_id=each.wait_id or "",
                kind=each.wait_kind or "",
                tool=each.call.name,
                arguments=each.call.arguments,
            )
            for each in state.open_waits
        ),
        failure=None if run.failure is None else run.failure.message,
    )
