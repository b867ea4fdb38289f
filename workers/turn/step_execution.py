"""Performing one step: a model call or a tool call, and the entries that say what it came to.

Nothing here writes: a step is performed outside any transaction, and its caller notes what it returns.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from threadmark.compaction import CompactionService
from threadmark.memory import Recollection
from threadmark.state import (
    Call,
    Claim,
    Entry,
    Execution,
    Failure,
    Message,
    ModelReplied,
    StepFailed,
    ThreadState,
    Usage,
    ValueRefused,
    idempotency_key_of,
    spell,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, NonRetryable, RetryAfter, RetryPolicy, Tool
from threadmark.workers.models import ChatModel
from threadmark.workers.models.errors import ModelRefused, ModelUnavailable, PromptInvalid
from threadmark.workers.models.exchange import ModelReply, ModelRequest
from threadmark.workers.turn.action import CallModel
from threadmark.workers.turn.calls import ask, bounded_failure, returned
from threadmark.workers.turn.memory_access import TurnMemory
from threadmark.workers.turn.memory_recall import instructions_of, recalled_block
from threadmark.workers.turn.prompt_view import RenderedPrompt
from threadmark.workers.turn.thread_drops import ThreadDrops
from threadmark.workers.turn.turn_journal import TurnJournal

__all__ = ["RESULT_BYTES_MAX", "ModelCall", "call_tool", "context_of", "failure_of"]

#: Longest result of a tool, as JSON in UTF-8; a longer one is the tool's error, and is not tried again.
RESULT_BYTES_MAX = 1024 * 1024
_MODEL_RETRY = RetryPolicy(attempt_max=None, first_delay_s=0.5, factor=2.0, delay_max_s=30.0)


class ModelCall:
    """One attempt to get a reply; `partial` is what has streamed so far."""

    def __init__(
        self,
        model: ChatModel,
        agent: ChatAgent,
        journal: TurnJournal,
        action: CallModel,
        seen: RenderedPrompt,
        *,
        now_us: Callable[[], int],
        chance: Callable[[], float],
    ) -> None:
        execution = _execution(journal.state)
        suffix = f"-{action.attempt}" if action.attempt > 1 else ""
        self._model = model
        self._now_us = now_us
        self._chance = chance
        self._agent = agent
        self._journal = journal
        self._action = action
        self._seen = seen
        self._execution_id = execution.execution_id
        self._message_id = f"msg-{execution.execution_id}-{action.step_key}{suffix}"
        self._pieces: list[str] = []
        self._began_us = now_us()

    async def perform(self) -> Sequence[Entry]:
        """The reply's entry, or the failure's."""
        request = ModelRequest(
            model=self._agent.model,
            instructions=instructions_of(self._agent),
            messages=self._seen.messages,
            recalled=recalled_block(self._journal.state),
            tools=self._agent.definitions,
            reply_token_count_max=self._agent.limits.reply_token_count_max,
            idempotency_key=idempotency_key_of(self._execution_id, self._action.step_key),
        )
        delay_s = _MODEL_RETRY.delay_s(self._action.attempt, self._chance())
        try:
            reply = await self._model.reply(request, self._on_delta)
        except ModelUnavailable as error:
            return [self._failed(error, max(delay_s, error.retry_after_s or 0))]
        except asyncio.CancelledError as error:
            if _is_stopped():
                raise
            return [self._failed(error, delay_s)]
        except (ModelRefused, PromptInvalid) as error:
            return [self._failed(error, None)]
        return [self._replied(reply)]

    def cut_short(self) -> list[Entry]:
        """What had streamed when the call was cancelled; nothing if nothing had."""
        text = "".join(self._pieces)
        if not text:
            return []
        message = Message(id=self._message_id, type="ai", content=text)
        return [
            ModelReplied(
                step_key=self._action.step_key,
                message=message,
                model=self._agent.model or "",
                usage=Usage(0, 0),
                attempt=self._action.attempt,
                finish_reason="cancelled",
                cuts=tuple(len(piece) for piece in self._pieces),
                duration_us=self._now_us() - self._began_us,
                view=self._seen.view,
            )
        ]

    def _on_delta(self, text: str) -> None:
        self._pieces.append(text)
        self._journal.delta(text, self._message_id)

    def _replied(self, reply: ModelReply) -> ModelReplied:
        message = Message(
            id=self._message_id,
            type="ai",
            content=reply.text,
            tool_calls=reply.tool_calls,
            usage=reply.usage,
        )
        return ModelReplied(
            step_key=self._action.step_key,
            message=message,
            model=reply.model,
            usage=reply.usage,
            attempt=self._action.attempt,
            finish_reason=reply.finish_reason,
            cuts=reply.cuts,
            invalid_calls=dict(reply.invalid_calls),
            duration_us=self._now_us() - self._began_us,
            view=self._seen.view,
        )

    def _failed(self, error: BaseException, delay_s: float | None) -> StepFailed:
        return StepFailed(
            step_key=self._action.step_key,
            attempt=self._action.attempt,
            failure=failure_of(error),
            retry_at_us=0 if delay_s is None else self._now_us() + round(delay_s * 1_000_000),
            final=delay_s is None,
        )


def context_of(
    claim: Claim,
    agent: ChatAgent,
    call: Call,
    journal: TurnJournal,
    *,
    data_dir: Path,
    now: Callable[[], datetime],
    recollection: Recollection | None,
    compaction: CompactionService | None,
) -> ToolContext:
    """The context of this call's tool; nothing is looked up before the tool asks for it."""
    execution = _execution(journal.state)
    return ToolContext(
        thread_id=claim.thread.thread_id,
        run_id=claim.run.run_id,
        step_key=call.step_key,
        idempotency_key=idempotency_key_of(execution.execution_id, call.step_key),
        attempt=call.attempt(execution.turn_count),
        data_dir=data_dir,
        emit=lambda data: journal.emit(_kept(data, "event")),
        now=now,
        dropped=None
        if compaction is None
        else ThreadDrops(compaction, claim.run.tenant_id, claim.thread.thread_id, agent.name),
        memory=None if agent.memory is None else TurnMemory(recollection, agent.memory, claim, journal.state, now()),
    )


async def call_tool(
    tool: Tool,
    call: Call,
    context: ToolContext,
    state: ThreadState,
    *,
    now_us: Callable[[], int],
    chance: Callable[[], float],
) -> Sequence[Entry]:
    """Call a tool whose intent is on disk if it needs one; the entries that say what it came to."""
    execution = _execution(state)
    began_us = now_us()
    try:
        value = await tool.perform(tool.arguments(call.call.arguments), context)
    except (Exception, asyncio.CancelledError) as error:
        if _is_stopped():
            raise
        return [_tool_failed(tool, call, execution, error, began_us, now_us(), chance)]
    duration_us = now_us() - began_us
    try:
        kept = _kept(value, "result")
    except ValueRefused as error:
        failure = bounded_failure("ResultRefused", f"Tool {tool.name!r} (step {call.step_key}) ran, but {error}.")
        return [returned(call, execution, "error", failure=failure, duration_us=duration_us)]
    return [returned(call, execution, "ok", value=kept, duration_us=duration_us)]


def _tool_failed(
    tool: Tool,
    call: Call,
    execution: Execution,
    error: BaseException,
    began_us: int,
    now_us: int,
    chance: Callable[[], float],
) -> Entry:
    attempt = call.attempt(execution.turn_count)
    failure = failure_of(error)
    if tool.effect is Effect.ONCE and not isinstance(error, (NonRetryable, RetryAfter)):
        # The tool did not say that nothing happened: a second call could do it twice.
        return ask(call, execution, "in_doubt")
    if isinstance(error, NonRetryable) or not tool.retry.allows(attempt + 1):
        return returned(call, execution, "error", failure=failure, duration_us=now_us - began_us)
    delay_s = tool.retry.delay_s(attempt, chance())
    if isinstance(error, RetryAfter):
        delay_s = max(delay_s, error.delay_s)
    return StepFailed(
        step_key=call.step_key,
        attempt=attempt,
        failure=failure,
        retry_at_us=now_us + round(timedelta(seconds=delay_s).total_seconds() * 1_000_000),
    )


def _is_stopped() -> bool:
    """Whether the caller cancelled this step; any other cancellation came from inside the step."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failure_of(error: BaseException) -> Failure:
    """What went wrong as it is kept: a sentence of a bounded length that any store can hold."""
    name = type(error).__name__
    return bounded_failure(name, str(error) or name)


def _kept(value: object, path: str) -> Any:
    """The value as the journal keeps it. Raises ValueRefused for what it cannot keep."""
    spelled = spell(value, path)
    size = len(json.dumps(spelled, ensure_ascii=False, separators=(",", ":")).encode())
    if size > RESULT_BYTES_MAX:
        raise ValueRefused(path, f"has {size} bytes, over the limit of {RESULT_BYTES_MAX} (payload_too_large)")
    return spelled


def _execution(state: ThreadState) -> Execution:
    if state.execution is None:
        raise ValueError("a step is performed inside an execution")
    return state.execution
