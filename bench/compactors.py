"""Orphans after a compaction, and what the summariser was shown: ours beside langmem and LangChain, same histories.

    python -m bench.compactors

All three get the same seeded histories and a model that records its prompts and answers from them. An orphan is a
result that the model would be sent without its call, a call without its result, or an open call that is gone; before a
compaction no history has one. What a summariser was shown is a share of the characters of what left the view.
"""

import asyncio
import json
import re
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol, cast

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langmem.short_term import SummarizationNode

from bench.parts.histories import HistoryMessage, Sent, history, orphans, share_shown, source_entries
from threadmark.compaction import (
    GENESIS,
    SECTIONS,
    Analyses,
    CompactionRequest,
    Plan,
    Policy,
    Proposal,
    Role,
    Situation,
    SummaryPrompt,
    SummaryReply,
    compact,
    first_view,
    plan_compaction,
    render,
)

#: Name, number of histories, tokens of each by estimate, lines of a tool's result at most.
KINDS = (("small (4,000 tokens)", 500, 4_000, 4), ("large (170,000 tokens)", 10, 170_000, 60))
LANGMEM_WINDOW = 8_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model would be sent, which messages left, and what the summariser was shown."""

    sent: Sequence[Sent]
    covered: Sequence[HistoryMessage]
    prompts: Sequence[str]


class Compactor(Protocol):
    """One way to compact a history. `name` is the row's title."""

    name: str

    async def compact(self, source: Sequence[HistoryMessage]) -> Outcome | None:
        """The outcome; None where it left the history as it was."""
        ...


class RecordingModel(BaseChatModel):
    """Answers everything with the same sentence, and keeps what it was sent, calls and all."""

    prompts: list[str]

    @property
    def _llm_type(self) -> str:
        return "recording"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.prompts.append("\n".join(_shown_of(message) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage("The talk was about orders."))])


def _shown_of(message: BaseMessage) -> str:
    text = str(message.text)
    if isinstance(message, AIMessage):
        text += "".join(f"\n{call['args'].get('query', '')}" for call in message.tool_calls)
    return text


class Langmem:
    """langmem's SummarizationNode; `max_tokens` has no default, all else has its own."""

    def __init__(self, window: int | None) -> None:
        window_text = "half of the history" if window is None else f"{window:,}"
        self.name = f"langmem {version('langmem')}, max_tokens {window_text}"
        self._window = window

    def window_exceeds(self, tokens: int) -> bool:
        """Whether a history of so many tokens would not fill the window."""
        return self._window is not None and self._window >= tokens

    async def compact(self, source: Sequence[HistoryMessage]) -> Outcome | None:
        """Run the node once on the whole history."""
        messages = _messages(source)
        model = RecordingModel(prompts=[])
        window = self._window or count_tokens_approximately(messages) // 2
        node = SummarizationNode(model=model, max_tokens=window)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that it shows more than fits: the figures say so
            update = await node.ainvoke({"messages": messages, "context": {}})
        after = cast(list[AnyMessage], update["summarized_messages"])
        return _outcome(source, after, model.prompts) if model.prompts else None


class Langchain:
    """LangChain's SummarizationMiddleware. Its `trigger` is off by default: here it always fires."""

    def __init__(self, **more: Any) -> None:
        settings = ", ".join(f"{name}={value}" for name, value in more.items()) or "defaults"
        self.name = f"LangChain {version('langchain')} SummarizationMiddleware, {settings}"
        self._more = more

    async def compact(self, source: Sequence[HistoryMessage]) -> Outcome | None:
        """Run the hook before a model call once."""
        model = RecordingModel(prompts=[])
        middleware: SummarizationMiddleware[Any, Any] = SummarizationMiddleware(
            model, trigger=("tokens", 1), **self._more
        )
        update = await middleware.abefore_model({"messages": _messages(source)}, cast(Any, None))
        if update is None:
            return None
        after = [each for each in update["messages"] if not isinstance(each, RemoveMessage)]
        return _outcome(source, after, model.prompts)


def _messages(source: Sequence[HistoryMessage]) -> list[AnyMessage]:
    """The history as LangChain has it: a message with several results becomes several."""
    made: list[AnyMessage] = []
    for message in source:
        if message.role is Role.TOOL:
            made.extend(
                ToolMessage(
                    text,
                    tool_call_id=call,
                    id=f"{message.number}.{at}",
                    status="error" if message.failed else "success",
                )
                for at, (call, text) in enumerate(zip(message.answers, message.texts, strict=True))
            )
        elif message.role is Role.AI:
            calls = [{"name": "lookup", "args": json.loads(arguments), "id": call} for call, arguments in message.calls]
            made.append(AIMessage("".join(message.texts), id=f"{message.number}.0", tool_calls=calls))
        else:
            made.append(HumanMessage("".join(message.texts), id=f"{message.number}.0"))
    return made


def _outcome(source: Sequence[HistoryMessage], after: Sequence[AnyMessage], prompts: Sequence[str]) -> Outcome:
    kept = {message.id for message in after}
    covered = []
    for message in source:
        gone = [at for at in range(len(message.answers) or 1) if f"{message.number}.{at}" not in kept]
        if gone:
            texts = tuple(message.texts[at] for at in gone) if message.answers else message.texts
            covered.append(HistoryMessage(message.number, message.role, texts, message.calls))
    return Outcome(_sent(after), covered, prompts)


def _sent(messages: Sequence[AnyMessage]) -> list[Sent]:
    return [
        Sent(answer=message.tool_call_id)
        if isinstance(message, ToolMessage)
        else Sent(calls=tuple(str(call["id"]) for call in getattr(message, "tool_calls", ())))
        for message in messages
    ]


class Ours:
    """Threadmark's compaction with a model; the policy is the default one but for the turns that stay."""

    def __init__(self, policy: Policy) -> None:
        self.name = f"Threadmark, keep_last_turns={policy.keep_last_turns}"
        self._policy = policy

    async def compact(self, source: Sequence[HistoryMessage]) -> Outcome | None:
        """Plan, summarise and account; the outcome is the view as it is rendered."""
        entries = source_entries(source)
        situation = Situation(view=first_view("v1"), entries=entries, segments={})
        plan = plan_compaction(situation, self._policy)
        if not isinstance(plan, Plan):
            return None
        summariser = Quoting()
        proposal = await compact(
            CompactionRequest(
                compaction_id="c",
                thread_ref="t",
                segment_id="s",
                view_id="v2",
                situation=situation,
                plan=plan,
                policy=self._policy,
                secret=b"s" * 32,
                previous_root=GENESIS,
            ),
            Analyses(),
            summariser,
        )
        if not isinstance(proposal, Proposal) or proposal.segment is None:
            return None
        sent = [
            Sent(calls=tuple(call.id for call in part.calls), answer=part.call_id if part.role is Role.TOOL else None)
            for part in render(proposal.view, entries, {"s": proposal.segment}).parts
        ]
        leaving = set(plan.covered)
        return Outcome(sent, [message for message in source if message.number in leaving], summariser.prompts)


@dataclass
class Quoting:
    """A summariser that quotes some of the lines it is shown, under the headings it is asked for."""

    prompts: list[str] = field(default_factory=list)

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """Six lines, from the beginning to the end."""
        self.prompts.append(prompt.user)
        lines = re.findall(r"^\[(\d+)\] \w+ \(\w+\): (.+)$", prompt.user, re.MULTILINE)
        chosen = lines[:: max(1, len(lines) // len(SECTIONS))]
        quoted = [f"- [{seq}] {text[:160]}" for seq, text in chosen]
        sections = [
            f"## {name}\n" + ("\n".join(quoted[at :: len(SECTIONS)]) or "- none") for at, name in enumerate(SECTIONS)
        ]
        return SummaryReply(text="\n".join(sections), prompt_tokens=prompt.prompt_tokens)


async def measure(compactor: Compactor, histories: Sequence[Sequence[HistoryMessage]]) -> str:
    """One row: how many were compacted, orphans, how often no model was asked, what was shown, CPU."""
    faulty = count = compacted = silent = 0
    shares: list[float] = []
    spent = 0.0
    for source in histories:
        start = time.process_time()
        outcome = await compactor.compact(source)
        spent += time.process_time() - start
        if outcome is None:
            continue
        compacted += 1
        silent += not outcome.prompts
        open_calls = {call for each in source if each.is_open for call, _ in each.calls}
        answered = {call for each in source for call in each.answers}
        found = orphans(outcome.sent, frozenset(open_calls - answered))
        count += found
        faulty += found > 0
        shares.append(share_shown(outcome.covered, outcome.prompts))
    return (
        f"| {compactor.name} | {compacted:,} of {len(histories):,} | {faulty / compacted:.1%} | {count:,} "
        f"| {silent} | {statistics.mean(shares):.1%} | {min(shares):.1%} | {spent / len(histories) * 1000:,.0f} ms |"
    )


async def main() -> None:
    """Measure and print."""
    compactors: Sequence[Compactor] = (
        Ours(Policy()),
        Ours(Policy(keep_last_turns=1)),
        Langmem(None),
        Langmem(LANGMEM_WINDOW),
        Langchain(),
        Langchain(trim_tokens_to_summarize=None),
    )
    for kind, count, tokens, lines in KINDS:
        histories = [history(seed, tokens, lines) for seed in range(count)]
        calls = sum(len(message.calls) for source in histories for message in source)
        for source in histories:
            open_calls = frozenset(call for message in source if message.is_open for call, _ in message.calls)
            assert orphans(_sent(_messages(source)), open_calls) == 0
        print(f"\n{kind}: {count:,} histories, {sum(map(len, histories)):,} messages, {calls:,} calls\n")
        print("| compactor | compacted | with orphans | orphans | not asked | shown, mean | shown, least | CPU each |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for compactor in compactors:
            if isinstance(compactor, Langmem) and compactor.window_exceeds(tokens):
                continue
            print(await measure(compactor, histories), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
