"""What an agent does with memory: data, like the agent. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from threadmark.memory import Refused, Scope, Trust

__all__ = ["MEMORY_TOOLS", "Extract", "MemoryPolicy", "NoScope", "PolicyRefused", "scope_of"]

Extract = Literal["off", "rules", "model"]
#: The tools of memory, in the order in which they are offered.
MEMORY_TOOLS = ("remember", "recall", "timeline", "why")

_PLACEHOLDER = re.compile(r"\{(?:assistant|thread|metadata\.(?P<key>[^{}]+))\}")
_COUNT_MAX = 50


class PolicyRefused(ValueError):
    """A policy that could not be followed; said where it is defined."""


class NoScope(Exception):
    """This thread has no namespace of its own, so it has no memory either: it is never given a wider one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """How far an agent remembers, and what it may do with it.

    `namespace` is a list of labels, below the tenant of the caller's key. A label is a text, or one of `{assistant}`,
    `{thread}` and `{metadata.KEY}` (a text in the thread's metadata). Nothing that a model says is part of it.
    """

    namespace: Sequence[str] = ("assistants", "{assistant}")
    recall: bool = True  #: ask memory once for each message of a person, before the model answers it
    limit: int = 8  #: answers of one recall
    token_count_max: int = 1_000  #: tokens of their texts, about
    timeout_s: float = 2.0  #: seconds that a run waits for memory
    tools: Sequence[str] = MEMORY_TOOLS  #: which of them the model is offered
    extract: Extract = "rules"  #: what is remembered of a person's words after a run, by whom
    trust: Trust = Trust.USER  #: of what a person says to this agent

    def __post_init__(self) -> None:
        if isinstance(self.namespace, str):
            raise PolicyRefused("namespace is a text; write a list of labels")
        object.__setattr__(self, "namespace", tuple(self.namespace))
        object.__setattr__(self, "tools", tuple(self.tools))
        for label in self.namespace:
            if ("{" in label or "}" in label) and not _PLACEHOLDER.fullmatch(label):
                raise PolicyRefused(
                    f"the label {label!r} is none of {{assistant}}, {{thread}}, {{metadata.KEY}} and has a brace"
                )
        if unknown := [each for each in self.tools if each not in MEMORY_TOOLS]:
            raise PolicyRefused(f"there is no memory tool {unknown[0]!r}; there are {', '.join(MEMORY_TOOLS)}")
        if self.extract not in get_args(Extract):
            raise PolicyRefused(f"extract is {self.extract!r}; use one of {', '.join(get_args(Extract))}")
        if not 1 <= self.limit <= _COUNT_MAX or self.token_count_max < 1 or not self.timeout_s > 0:
            raise PolicyRefused(f"limit is from 1 to {_COUNT_MAX}; token_count_max and timeout_s are above 0")
        if self.trust.is_untrusted:
            raise PolicyRefused(f"trust is {self.trust.value!r}; a person is user or operator")


def scope_of(
    policy: MemoryPolicy, *, tenant_id: str, assistant: str, thread_id: str, metadata: Mapping[str, Any]
) -> Scope:
    """The one scope that a run of this thread reads and writes. Raises NoScope, naming what is missing."""
    known = {"{assistant}": assistant, "{thread}": thread_id}
    labels = [known[label] if label in known else _filled(label, metadata) for label in policy.namespace]
    try:
        return Scope(tenant_id=tenant_id, namespace=tuple(labels))
    except Refused as error:
        raise NoScope(str(error)) from error


def _filled(label: str, metadata: Mapping[str, Any]) -> str:
    found = _PLACEHOLDER.fullmatch(label)
    if found is None:
        return label
    key = found["key"]
    value = metadata.get(key)
    # 1 and "1" would be one label for two users.
    if not isinstance(value, str) or not value:
        raise NoScope(f"the thread's metadata has no text under {key!r}, which the agent's memory is kept by")
    return value
