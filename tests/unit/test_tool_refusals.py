"""What cannot be a tool is refused where it is defined."""

from collections.abc import Awaitable, Callable
from typing import Any

import pydantic
import pytest

from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import ToolRefused, tool


async def _fine(order_id: str) -> str:
    return order_id


def _not_async(order_id: str) -> str:
    return order_id


async def _untyped(order_id) -> str:  # type: ignore[no-untyped-def]
    return str(order_id)


async def _any(order_id: Any) -> str:
    return str(order_id)


async def _star(*order_ids: str) -> str:
    return "".join(order_ids)


async def _stars(**order_ids: str) -> str:
    return "".join(order_ids)


async def _positional(order_id: str, /) -> str:
    return order_id


async def _twice(one: ToolContext, two: ToolContext) -> str:
    return one.run_id + two.run_id


async def _unresolved(order_id: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
    return str(order_id)


async def _callable(order_id: Callable[[], None]) -> str:
    return str(order_id)


async def _unspeakable_default(order_id: Any | int | str = object) -> str:
    return str(order_id)


async def _field_default(order_id: str = pydantic.Field(default="x")) -> str:
    return order_id


class Opaque:
    pass


async def _opaque(order_id: Opaque) -> str:
    return str(order_id)


@pytest.mark.parametrize(
    ("function", "settings", "sentence"),
    [
        (_fine, {}, "declares no effect: write @tool"),
        (_fine, {"effect": "twice"}, "has the effect 'twice'; use one of 'pure', 'idempotent', 'keyed', 'once'"),
        (_fine, {"effect": "pure", "name": "a b"}, "name that models refuse: use 1 to 64"),
        (_fine, {"effect": "pure", "name": "a" * 65}, "name that models refuse"),
        (_fine, {"effect": "pure", "name": ""}, "name that models refuse"),
        (_fine, {"effect": "pure", "timeout_s": 0}, "timeout_s=0; it is a number of seconds above 0"),
        (_fine, {"effect": "keyed", "verify": _fine}, "leave verify out for 'keyed'"),
        (_fine, {"effect": "once", "verify": _not_async}, "verifier that is not async"),
        (_not_async, {"effect": "pure"}, "not an async function: write `async def`"),
        (_untyped, {"effect": "pure"}, "untyped parameter 'order_id': annotate it"),
        (_any, {"effect": "pure"}, "takes anything as 'order_id'"),
        (_star, {"effect": "pure"}, r"parameter \*order_ids: str: name each parameter"),
        (_stars, {"effect": "pure"}, r"parameter \*\*order_ids: str: name each parameter"),
        (_positional, {"effect": "pure"}, "name each parameter"),
        (_twice, {"effect": "pure"}, "asks for its context twice: drop 'two'"),
        (_unresolved, {"effect": "pure"}, "cannot be resolved .*Nowhere"),
        (_callable, {"effect": "pure"}, "no JSON schema can say"),
        (_opaque, {"effect": "pure"}, "JSON cannot carry: .*Opaque"),
        (_unspeakable_default, {"effect": "pure"}, "no JSON schema can say"),
        (_field_default, {"effect": "pure"}, r"write Annotated\[type, Field\(…\)\]"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_where_it_is_defined(
    function: Callable[..., Awaitable[Any]], settings: dict[str, Any], sentence: str
) -> None:
    """The refusal names the tool and says how to put it right."""
    with pytest.raises(ToolRefused, match=sentence):
        tool(**settings)(function)


def test_a_bare_decorator_is_refused() -> None:
    """`@tool` without parentheses says that the effect is missing."""
    with pytest.raises(ToolRefused, match="tool '_fine' has no effect: write @tool"):
        tool(_fine)
