"""Tools: typed async functions with a declared effect, and everything that a step needs to know about them.

    @tool(effect=Effect.ONCE, needs_approval=True)
    async def refund(order_id: str, amount_cents: int, context: ToolContext) -> dict[str, JSON]:
        \"""Pay money back to the customer.\"""

The name, the description and the JSON schema come from the function; `Args:` of its docstring describes the
parameters. A parameter annotated `ToolContext` is handed in and is no part of the schema. What is
wrong with a tool is said when it is defined, never in the middle of a run.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final, Literal, TypeAlias

from threadmark.workers.agents.definition_errors import ToolRefused
from threadmark.workers.agents.docstrings import documented
from threadmark.workers.agents.parameters import BadArguments, Parameters
from threadmark.workers.agents.tool_context import ToolContext

__all__ = [
    "DID_NOT_HAPPEN",
    "UNKNOWN",
    "BadArguments",
    "Effect",
    "NonRetryable",
    "RetryAfter",
    "RetryPolicy",
    "Tool",
    "ToolRefused",
    "ToolTimedOut",
    "Verdict",
    "tool",
]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Effect(StrEnum):
    """What a call does to the outside world, and so what may be done after a crash in the middle of it."""

    PURE = "pure"
    """It changes nothing: runs again."""

    IDEMPOTENT = "idempotent"
    """Doing it twice is doing it once: runs again."""

    KEYED = "keyed"
    """The other side knows an idempotency key again: runs again, with the same key."""

    ONCE = "once"
    """A second time would do harm unnoticed: never runs again by itself; the step is in doubt."""


class NonRetryable(Exception):
    """Raised by a tool: it failed permanently, nothing happened outside, and another attempt would fail as well."""


class RetryAfter(Exception):
    """Raised by a tool: nothing happened outside; try again, not before `delay_s` seconds have passed.

    The only failure after which a `once` tool is attempted again.
    """

    def __init__(self, delay_s: float, reason: str = "") -> None:
        super().__init__(reason or f"asked to come back in {delay_s:g} s")
        self.delay_s = delay_s


class ToolTimedOut(Exception):
    """The tool did not return in time; what it did outside is not known."""

    def __init__(self, name: str, timeout_s: float) -> None:
        super().__init__(f"tool {name!r} did not return within {timeout_s:g} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a failed tool is attempted again, and how long the run waits in between."""

    attempt_max: int | None = 4  #: attempts in all, the first included; None: without end
    first_delay_s: float = 1.0  #: seconds after the first attempt
    factor: float = 2.0  #: what each further delay is multiplied with
    delay_max_s: float = 60.0
    jitter: float = 0.2  #: the part of a delay that chance may take away, 0 to 1

    def __post_init__(self) -> None:
        if self.attempt_max is not None and self.attempt_max < 1:
            raise ValueError(f"attempt_max is {self.attempt_max}; it counts the first attempt, so it is 1 or more")
        if not (self.first_delay_s >= 0 and self.delay_max_s >= 0 and self.factor >= 1 and 0 <= self.jitter <= 1):
            raise ValueError("delays are 0 or more, factor is 1 or more, jitter is between 0 and 1")

    def allows(self, attempt: int) -> bool:
        """Whether there is an attempt with this number (the first is 1)."""
        return self.attempt_max is None or attempt <= self.attempt_max

    def delay_s(self, attempt: int, random: float) -> float:
        """Seconds to wait after the failed attempt with this number (the first is 1); `random` is in [0, 1)."""
        try:
            grown = self.first_delay_s * float(self.factor) ** (attempt - 1)
        except OverflowError:
            grown = self.delay_max_s
        return min(grown, self.delay_max_s) * (1 - self.jitter * random)


class Verdict(Enum):
    """What a verifier says when it has no result to show."""

    DID_NOT_HAPPEN = "did_not_happen"
    UNKNOWN = "unknown"


DID_NOT_HAPPEN: Final[Literal[Verdict.DID_NOT_HAPPEN]] = Verdict.DID_NOT_HAPPEN
UNKNOWN: Final[Literal[Verdict.UNKNOWN]] = Verdict.UNKNOWN

#: Asks the outside world what became of a step in doubt: its result, `DID_NOT_HAPPEN` or `UNKNOWN`.
Verifier: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A function that a model may call."""

    name: str
    description: str
    effect: Effect
    timeout_s: float
    retry: RetryPolicy
    needs_approval: bool
    verify: Verifier | None
    aliases: tuple[str, ...] = ()  #: names that it had before: calls that wait under one of them are calls of it
    function: Callable[..., Awaitable[Any]] = field(repr=False)
    signature: Parameters = field(repr=False)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return self.signature.schema

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as chat completions describe it to a model."""
        described = {"description": self.description} if self.description else {}
        return {"type": "function", "function": {"name": self.name, **described, "parameters": self.parameters}}

    def arguments(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, validated, with defaults filled in.

        Raises BadArguments with a sentence that a model can act on: it names each parameter and what is wrong.
        """
        return self.signature.validate(self.name, raw)

    async def perform(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the function with validated arguments and return what it returns.

        Raises ToolTimedOut after `timeout_s`, and whatever the function raises; a cancellation passes through.
        """
        handed_in = {} if self.signature.context_name is None else {self.signature.context_name: context}
        try:
            async with asyncio.timeout(self.timeout_s) as bound:
                return await self.function(**arguments, **handed_in)
        except TimeoutError as error:
            # A time-out inside the tool (of a socket, say) is the tool's own failure, not ours.
            if bound.expired():
                raise ToolTimedOut(self.name, self.timeout_s) from error
            raise


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect | str | None = None,
    name: str | None = None,
    timeout_s: float = 30,
    retry: RetryPolicy | None = None,
    needs_approval: bool = False,
    verify: Verifier | None = None,
    aliases: Sequence[str] = (),
) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    """Make an async function a tool. `effect` is required; `name` is the function's name unless given.

    `aliases` are names that the tool had before: a call that waits for a person under one of them goes to this tool.

    Raises ToolRefused, where the tool is defined, with a sentence that says how to put it right.
    """
    if function is not None:
        raise ToolRefused(_name_of(function), f"has no effect: write @tool(effect=…) with one of {_EFFECTS}")

    def register(function: Callable[..., Awaitable[Any]]) -> Tool:
        own_name = name if name is not None else _name_of(function)
        read = documented(function)
        return Tool(
            name=_checked_name(own_name),
            description=read.description,
            effect=_checked_effect(own_name, effect),
            timeout_s=_checked_timeout_s(own_name, timeout_s),
            retry=retry or RetryPolicy(),
            needs_approval=needs_approval,
            verify=_checked_verifier(own_name, effect, verify),
            aliases=_checked_aliases(own_name, aliases),
            function=_checked_function(own_name, function),
            signature=Parameters.of(own_name, function, injected=ToolContext, described=read.parameters),
        )

    return register


_EFFECTS = ", ".join(repr(each.value) for each in Effect)


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ToolRefused(name, "has a name that models refuse: use 1 to 64 of A-Z, a-z, 0-9, _ and -")
    return name


def _checked_aliases(name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    if isinstance(aliases, str):
        raise ToolRefused(name, f"has the alias {aliases!r} as a text: write aliases=({aliases!r},)")
    for each in aliases:
        if not _NAME.fullmatch(each):
            raise ToolRefused(name, f"has the alias {each!r}, which no tool can have been named")
    return tuple(aliases)


def _checked_effect(name: str, effect: Effect | str | None) -> Effect:
    if effect is None:
        raise ToolRefused(name, f"declares no effect: write @tool(effect=…) with one of {_EFFECTS}")
    try:
        return Effect(effect)
    except ValueError as error:
        raise ToolRefused(name, f"has the effect {effect!r}; use one of {_EFFECTS}") from error


def _checked_timeout_s(name: str, timeout_s: float) -> float:
    if not timeout_s > 0:
        raise ToolRefused(name, f"has timeout_s={timeout_s!r}; it is a number of seconds above 0")
    return timeout_s


def _checked_function(name: str, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    if not inspect.iscoroutinefunction(function):
        raise ToolRefused(name, "is not an async function: write `async def`, and run what blocks in a thread")
    return function


def _checked_verifier(name: str, effect: Effect | str | None, verify: Verifier | None) -> Verifier | None:
    if verify is None:
        return None
    if effect != Effect.ONCE:
        raise ToolRefused(name, f"has a verifier, which only a 'once' tool needs: leave verify out for {effect!r}")
    if not inspect.iscoroutinefunction(verify):
        raise ToolRefused(name, "has a verifier that is not async: write `async def verify(arguments, context)`")
    return verify
