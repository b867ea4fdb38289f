"""A tool's docstring: what the model reads of the tool, and of each parameter under `Args:`."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Documented", "documented"]

_ARGS = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_PARAMETER = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Documented:
    """The text without its `Args:`, and the text of each parameter by name, on one line."""

    description: str
    parameters: dict[str, str] = field(default_factory=dict)


def documented(function: Callable[..., Any]) -> Documented:
    """Read a docstring in the style of Google: below `Args:`, each parameter is `name: text` or `name (type): text`,
    and lines that are indented further belong to the one before.
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    start = next((number for number, line in enumerate(lines) if _ARGS.fullmatch(line)), None)
    if start is None:
        return Documented(description="\n".join(lines))
    end = next((number for number in range(start + 1, len(lines)) if _ends(lines[number])), len(lines))
    rest = "\n".join([*lines[:start], *lines[end:]])
    return Documented(description=re.sub(r"\n{3,}", "\n\n", rest).strip(), parameters=_read(lines[start + 1 : end]))


def _ends(line: str) -> bool:
    """Whether the section is over: the next heading, or text that is not indented."""
    return bool(line) and not line[0].isspace()


def _read(lines: list[str]) -> dict[str, str]:
    written = [line for line in lines if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in written), default=0)
    found: dict[str, str] = {}
    name = ""
    for line in written:
        is_new = len(line) - len(line.lstrip()) == indent
        match = _PARAMETER.fullmatch(line.strip()) if is_new else None
        if match is not None:
            name = match["name"]
            found[name] = match["text"].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return {each: text for each, text in found.items() if text}
