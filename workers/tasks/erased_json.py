"""What stays of a journal's JSON when words are erased: its shape, so that it still folds. Pure."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from threadmark.workers.tasks.erased_spans import ERASED, Span, erase_spans, said_span, span_now

__all__ = ["ERASED", "MARKS", "Erased", "QuotedSpan"]

#: The key of a message under which it keeps the spans that are gone, in code points of what was said.
MARKS = "erased_spans"
#: So many words are a sentence of its own: it is erased wherever it stands. Fewer may be anybody's.
SENTENCE_WORD_COUNT = 4
#: Shorter words are erased where they stand alone, not inside other words.
LENGTH_MIN = 6
#: Fields of entries and requests in which people, models, tools and memory speak; everything else is how it folds.
_SPOKEN = frozenset(
    {"emitted", "question", "answers", "block", "value", "arguments", "invalid_calls", "failure", "kwargs"}
)
_MESSAGE_SPOKEN = frozenset({"content", "name"})
#: Columns whose JSON has no fixed schema, as a whole.
_ROWS = frozenset({"metadata", "error", "label", "arguments", "answer", "reply"})
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: What an answer of memory keeps: that there was one, when, and how it was found.
_OF_A_MEMORY = {"text": ERASED, "value": None, "subject": None, "attribute": None}


@dataclass(frozen=True, slots=True, order=True)
class QuotedSpan:
    """A part of a message, in code points; `digest` is the SHA-256 of its words where the source has it."""

    start: int
    end: int
    digest: str | None = None


class Erased:
    """What is to go: memories by id, messages by id or by their entry's seq, spans of those, and words.

    Sentences go wherever they stand. Shorter words may be anybody's: a person's message loses them where it is named,
    and what models, tools and memory said loses them in the entries with `told_seqs` (None for all).
    """

    def __init__(
        self,
        *,
        memory_ids: Collection[str] = (),
        texts: Iterable[str] = (),
        message_ids: Collection[str] = (),
        seqs: Collection[int] = (),
        spans: Mapping[str | int, Collection[QuotedSpan]] | None = None,
        told_seqs: Collection[int] | None = None,
        whole: bool = False,
    ) -> None:
        self._memory_ids = frozenset(memory_ids)
        self._message_ids = frozenset(message_ids)
        self._seqs = frozenset(seqs)
        self._whole = whole  #: every message of the thread
        self._texts = frozenset(each.strip() for each in texts if each.strip())
        self._spans = {key: frozenset(each) for key, each in (spans or {}).items()}
        self._told_seqs = None if told_seqs is None else frozenset(told_seqs)
        self._everywhere = _pattern_of(each for each in self._texts if _is_sentence(each))
        self._where_told = _pattern_of(self._texts)

    def also(self, other: "Erased") -> "Erased":
        """What either of the two takes out."""
        return Erased(
            memory_ids=self._memory_ids | other._memory_ids,
            texts=self._texts | other._texts,
            message_ids=self._message_ids | other._message_ids,
            seqs=self._seqs | other._seqs,
            spans={
                key: self._spans.get(key, frozenset()) | other._spans.get(key, frozenset())
                for key in self._spans.keys() | other._spans.keys()
            },
            told_seqs=None
            if self._told_seqs is None or other._told_seqs is None
            else self._told_seqs | other._told_seqs,
            whole=self._whole or other._whole,
        )

    def words_of(self, kind: str, seq: int, document: Any) -> list[str]:
        """The lines of those messages that are to go: others repeat them."""
        return [
            line
            for message in _messages(kind, document)
            for text in self._said(message, seq)
            for line in (text, *text.splitlines())
            if len(line.strip()) >= LENGTH_MIN and line.strip() != ERASED
        ]

    def is_about(self, kind: str, seq: int, document: Any) -> bool:
        """Whether the entry is a moment that is to go, or contains one of the memories."""
        return any(self._names(each, seq) or self._spans_of(each, seq) for each in _messages(kind, document)) or (
            bool(self._memory_ids) and not self._memory_ids.isdisjoint(_ids_in(document))
        )

    def __call__(self, kind: str, seq: int, document: Any) -> Any:
        """What stays; the same object when nothing is to go."""
        # A row (seq 0) repeats what its run said; whose words they are, its messages say.
        is_told = self._told_seqs is None or seq == 0 or seq in self._told_seqs
        pattern = self._where_told if is_told else self._everywhere
        left = self._rest(document, pattern) if kind in _ROWS else self._document(document, seq, pattern)
        if any(self._names(message, seq) for message in _messages(kind, document)):
            left = _without(kind, left, lambda message: self._names(message, seq))
        if "kwargs" in left and any(self._spans_of(each, seq) for each in _messages(kind, document)):
            left = _without_input(left)
        if kind == "tool_returned" and self._whole:
            left = {**left, "value": ERASED} if left.get("value") is not None else left
        if left == document:
            return document
        if kind == "model_replied" and isinstance(left["message"]["content"], str):
            # The pieces in which a reply was streamed join to its text.
            left = {**left, "cuts": [len(left["message"]["content"])]}
        return left

    def _names(self, message: Mapping[str, Any], seq: int) -> bool:
        if self._whole or message.get("id") in self._message_ids or seq in self._seqs:
            return True
        # Parts have no code points of the whole: the message goes as one.
        return not isinstance(message.get("content"), str) and bool(self._spans_of(message, seq))

    def _spans_of(self, message: Mapping[str, Any], seq: int) -> frozenset[QuotedSpan]:
        return self._spans.get(str(message.get("id")), frozenset()) | self._spans.get(seq, frozenset())

    def _said(self, message: Mapping[str, Any], seq: int) -> list[str]:
        """The words of a message that are to go by its name or by their span."""
        content = message.get("content")
        if self._names(message, seq):
            return _texts(content)
        marks, now = _marks(message), []
        if isinstance(content, str):
            gone = [_said_by(content, marks, each) for each in self._spans_of(message, seq)]
            now = [content[at[0] : at[1]] for each in gone if (at := span_now(marks, *each)) is not None]
        return now

    def _document(self, document: Mapping[str, Any], seq: int, pattern: "re.Pattern[str] | None") -> dict[str, Any]:
        left = dict(document)
        for key, value in document.items():
            if key == "messages":
                left[key] = [self._message(each, seq, pattern) for each in value]
            elif key == "message":
                left[key] = self._message(value, seq, pattern)
            elif key == "block":
                left[key] = _text(self._block(value), pattern)
            elif key in _SPOKEN:
                left[key] = self._rest(value, pattern)
        return left

    def _message(self, message: Mapping[str, Any], seq: int, pattern: "re.Pattern[str] | None") -> dict[str, Any]:
        if message.get("type") == "human":
            pattern = self._everywhere
        left = {key: self._rest(each, pattern) if key in _MESSAGE_SPOKEN else each for key, each in message.items()}
        if isinstance(text := message.get("content"), str) and text != ERASED:
            marks = _marks(message)
            spans = [_said_by(text, marks, each) for each in self._spans_of(message, seq)]
            found = () if pattern is None else pattern.finditer(text)
            spans += [said_span(marks, *each.span()) for each in found]
            left["content"], gone = erase_spans(text, marks, spans)
            if gone:
                left[MARKS] = [list(each) for each in gone]
        if message.get("tool_calls"):
            calls = message["tool_calls"]
            left["tool_calls"] = [{**call, "arguments": self._rest(call["arguments"], pattern)} for call in calls]
        return left

    def _rest(self, value: Any, pattern: "re.Pattern[str] | None") -> Any:
        if isinstance(value, str):
            return _text(value, pattern)
        if isinstance(value, list):
            return [self._rest(each, pattern) for each in value]
        if not isinstance(value, dict):
            return value
        if "human" in (value.get("type"), value.get("role")) or value.get("role") == "user":
            pattern = self._everywhere
        # The type of a part and the class of an error are words of the code.
        left = {key: each if key in ("type", "memory_id") else self._rest(each, pattern) for key, each in value.items()}
        if value.get("memory_id") in self._memory_ids:
            left |= {key: rest for key, rest in _OF_A_MEMORY.items() if key in value}
            left |= {"provenance": _sources(left["provenance"])} if "provenance" in left else {}
        return left

    def _block(self, block: str) -> str:
        lines = [line for line in block.splitlines() if not any(each in line for each in self._memory_ids)]
        # A block of two lines has its beginning and its end, and nothing to tell.
        return "\n".join(lines) if lines[1:-1] else ""


def _text(text: str, pattern: "re.Pattern[str] | None") -> str:
    return text if pattern is None or text == ERASED else pattern.sub(ERASED, text)


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= SENTENCE_WORD_COUNT


def _marks(message: Mapping[str, Any]) -> list[Span]:
    return [(start, end) for start, end in message.get(MARKS, ())]


def _said_by(text: str, marks: list[Span], span: QuotedSpan) -> Span:
    """The span in code points of what was said: a source may have counted in what is left of it."""
    if marks and span.digest is not None:
        now = text[span.start : span.end]
        if hashlib.sha256(now.encode()).hexdigest() == span.digest:
            return said_span(marks, span.start, span.end)
    return span.start, span.end


def _ids_in(document: Any) -> Iterable[str]:
    """The ids of memories that something tells."""
    if isinstance(document, dict):
        if isinstance(known := document.get("memory_id"), str):
            yield known
        for each in document.values():
            yield from _ids_in(each)
    elif isinstance(document, list):
        for each in document:
            yield from _ids_in(each)
    elif isinstance(document, str):
        yield from _ID.findall(document)


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
    return _without_input(left) if "kwargs" in left else left


def _without_input(document: Mapping[str, Any]) -> dict[str, Any]:
    """The request as it was written, for display: it repeats the messages."""
    kept = {key: each for key, each in document["kwargs"].items() if key not in ("input", "command")}
    return {**document, "kwargs": kept}


def _blank(message: Mapping[str, Any]) -> dict[str, Any]:
    blank = {key: each for key, each in message.items() if key != MARKS} | {"content": ERASED}
    if message.get("tool_calls"):
        blank["tool_calls"] = [{**call, "arguments": {}} for call in message["tool_calls"]]
    return blank


def _sources(sources: Iterable[Any]) -> list[Any]:
    # The hash of short words can be reversed by trying.
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
