"""Logs: JSON lines, one record a line whatever it holds, and no secret in any of them.

Code logs through the standard library (`logging.getLogger("threadmark.…")`, facts in `extra`); `configure` is called
once, by the command that runs, and makes the records of every library JSON lines too.
"""

import json
import logging
import re
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, TextIO

import structlog

__all__ = ["configure", "line_of", "mark_cut"]

#: Libraries that tell every request or migration at level info.
_TALKATIVE = ("alembic", "arq", "httpcore2", "httpx", "httpx2", "openai")
# A second net: nothing logs keys, but a traceback may quote whatever a library put into its message.
_SECRETS = re.compile(r"(tm_[0-9a-f]{16}_)[0-9a-f]{64}|(sk-)[A-Za-z0-9_-]{8,}|(://[^/\s:@\"]{0,64}:)[^/\s@\"]+(?=@)")


_is_cut: ContextVar[bool] = ContextVar("cut on purpose", default=False)


def mark_cut() -> None:
    """The answer of this task is not finished, and that is meant: its server need not complain."""
    _is_cut.set(True)


def _unless_cut(record: logging.LogRecord) -> bool:
    return not (_is_cut.get() and "without completing response" in record.msg)


def configure(level: str, stream: TextIO) -> None:
    """Write every log record of the process to `stream`, as JSON lines, from `level` up."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _render,
        ],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logging.getLogger("uvicorn.error").addFilter(_unless_cut)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def line_of(facts: MutableMapping[str, Any]) -> str:
    """One line of JSON, in printable ASCII alone.

    CR, LF, ESC, NUL, U+2028 and the marks that turn the direction of text are escaped: no value can begin a line of its
    own, or show a reader something else than it holds.
    """
    line = json.dumps(facts, ensure_ascii=True, default=str, separators=(",", ":"))
    return _SECRETS.sub(_masked, line.replace("\x7f", "\\u007f"))


def _masked(found: re.Match[str]) -> str:
    return "".join(part or "" for part in found.groups()) + "***"


def _render(_logger: Any, _method: str, facts: MutableMapping[str, Any]) -> str:
    # uvicorn says the same thing twice, once for terminals.
    facts.pop("color_message", None)
    return line_of(facts)
