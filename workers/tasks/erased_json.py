"""What stays of a journal's JSON when words are erased: its shape, so that it still folds. Pure."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

__all__ = ["ERASED", "Erased"]

#: Stands where words stood.
ERASED = "[erased]"
#: Shorter words are erased where they stand alone, not inside other words.
LENGTH_MIN = 6
#: Fields of entries and requests in which people, models, tools and memory speak; everything else is how it folds.
_SPOKEN = frozenset(
    {"emitted", "question", "answers", "block", "value", "arguments", "invalid_calls", "failure", "kwargs"}
)
_MESSAGE_SPOKEN = frozenset({"content", "name"})
#: Columns that are JSON of somebody else's making, as a whole.
_ROWS = frozenset({"metadata", "error", "label", "arguments", "answer", "reply"})
#: What an answer of memory keeps: that there was one, when, and how it was found.
_OF_A_MEMORY = {"text": ERASED, "value": None, "subject": None, "attribute": None}


class Erased:
    """What is to go: memories by id, messages by id or by their entry's seq, and words wherever they stand."""

    def __init__(
        self,
        *,
        memory_ids: Collection[str] = (),
        texts: Iterable[str] = (),
        message_ids: Collection[str] = (),
        seqs: Collection[int] = (),
        whole: bool = False,
    ) -> None:
        self._memory_ids = frozenset(memory_ids)
        self._message_ids = frozenset(message_ids)
        self._seqs = frozenset(seqs)
        self._whole = whole  #: every message of the thread
        self._texts = frozenset(each.strip() for each in texts if each.strip())
        self._pattern = _pattern_of(self._texts)

    def also(self, other: "Erased") -> "Erased":
        """What either of the two takes out."""
        return Erased(
            memory_ids=self._memory_ids | other._memory_ids,
            texts=self._texts | other._texts,
            message_ids=self._message_ids | other._message_ids,
            seqs=self._seqs | other._seqs,
            whole=self._whole or other._whole,
        )

    def words_of(self, kind: str, seq: int, document: Any) -> list[str]:
        """The lines of those messages that are to go: others repeat them."""
        return [
            line
            for message in _messages(kind, document)
            if self._names(message, seq)
            for text in _texts(message.get("content"))
            for line in (text, *text.splitlines())
            if len(line.strip()) >= LENGTH_MIN and line.strip() != ERASED
        ]

    def __call__(self, kind: str, seq: int, document: Any) -> Any:
        """What stays; the same object when nothing is to go."""
        left = self._rest(document) if kind in _ROWS else self._document(document)
        if any(self._names(message, seq) for message in _messages(kind, document)):
            left = _without(kind, left, lambda message: self._names(message, seq))
        if kind == "tool_returned" and self._whole:
            left = {**left, "value": ERASED} if left.get("value") is not None else left
        if left == document:
            return document
        if kind == "model_replied" and isinstance(left["message"]["content"], str):
            # The pieces in which a reply was streamed join to its text.
            left = {**left, "cuts": [len(left["message"]["content"])]}
        return left

    def _names(self, message: Mapping[str, Any], seq: int) -> bool:
        return self._whole or message.get("id") in self._message_ids or seq in self._seqs

    def _document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        left = dict(document)
        for key, value in document.items():
            if key == "messages":
                left[key] = [self._message(each) for each in value]
            elif key == "message":
                left[key] = self._message(value)
            elif key == "block":
                left[key] = self._text(self._block(value))
            elif key in _SPOKEN:
                left[key] = self._rest(value)
        return left

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        left = {key: self._rest(each) if key in _MESSAGE_SPOKEN else each for key, each in message.items()}
        if message.get("tool_calls"):
            calls = message["tool_calls"]
            left["tool_calls"] = [{**call, "arguments": self._rest(call["arguments"])} for call in calls]
        return left

    def _rest(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._rest(each) for each in value]
        if not isinstance(value, dict):
            return value
        # The type of a part and the class of an error are words of the code.
        left = {key: each if key in ("type", "memory_id") else self._rest(each) for key, each in value.items()}
        if value.get("memory_id") in self._memory_ids:
            left |= {key: rest for key, rest in _OF_A_MEMORY.items() if key in value}
            left |= {"provenance": _sources(left["provenance"])} if "provenance" in left else {}
        return left

    def _text(self, text: str) -> str:
        if self._pattern is None or text == ERASED:
            return text
        return self._pattern.sub(ERASED, text)

    def _block(self, block: str) -> str:
        lines = [line for line in block.splitlines() if not any(each in line for each in self._memory_ids)]
        # A block of two lines has its beginning and its end, and nothing to tell.
        return "\n".join(lines) if lines[1:-1] else ""


def _messages(kind: str, document: Any) -> list[dict[str, Any]]:
    match kind:
        case "run_started" | "state_updated" | "request":
            return list(document.get("messages", ()))
        case "model_replied":
            return [document["message"]]
        case _:
            return []


def _without(kind: str, document: Any, names: Callable[[Mapping[str, Any]], bool]) -> Any:
    if kind == "model_replied":
        return {**document, "message": _blank(document["message"])}
    left = {**document, "messages": [_blank(each) if names(each) else each for each in document["messages"]]}
    if "kwargs" in left:
        # The request as it was written, for display: it repeats the messages.
        left["kwargs"] = {key: each for key, each in left["kwargs"].items() if key not in ("input", "command")}
    return left


def _blank(message: Mapping[str, Any]) -> dict[str, Any]:
    blank = {**message, "content": ERASED}
    if message.get("tool_calls"):
        blank["tool_calls"] = [{**call, "arguments": {}} for call in message["tool_calls"]]
    return blank


def _sources(sources: Iterable[Any]) -> list[Any]:
    # The hash of short words tells them to whoever tries.
    return [{**each, "content_hash": None, "actor": None} if isinstance(each, dict) else each for each in sources]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _pattern_of(texts: Iterable[str]) -> "re.Pattern[str] | None":
    """Finds the words as they stand, and as they stand inside JSON that is itself a text."""
    forms: set[str] = set()
    for text in texts:
        for form in {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}:
            bracketless = form
            for sign in "<>&":
                bracketless = bracketless.replace(sign, f"\\u{ord(sign):04x}")
            forms |= {form, bracketless}
    if not forms:
        return None
    # The longest first: of two words that begin alike, the whole of the longer one goes.
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(_alone(form) if len(form) < LENGTH_MIN else re.escape(form) for form in ordered))


def _alone(form: str) -> str:
    return rf"(?<!\w){re.escape(form)}(?!\w)"
