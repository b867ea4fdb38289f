"""A streamed reply, put together chunk by chunk. Pure but for the ids it is given.

Servers differ in small ways, and a thread must survive each of them: ids that are empty, repeated in one reply or
repeated from an earlier turn; several calls under one index; names that no later request may hold; a code point cut
in two. What cannot be repaired is refused or marked invalid, never passed on.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDeltaToolCall, ChoiceDeltaToolCallFunction

from threadmark.state.entries.message import ToolCall, Usage
from threadmark.workers.models.errors import ModelRefused, ModelUnavailable, ReplyTooLarge
from threadmark.workers.models.strict_json import NotAnObject, parse_object

__all__ = ["REPLY_SIZE_MAX", "TOOL_CALL_COUNT_MAX", "Assembly"]

REPLY_SIZE_MAX = 1024 * 1024  #: bytes of UTF-8: the text, and the names and arguments of all calls
TOOL_CALL_COUNT_MAX = 128  #: calls of one reply

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[!-~]{1,128}")
_NAME_LENGTH_MAX = 64
_MODEL_LENGTH_MAX = 200
_COUNT_MAX = 2**53
_SHOWN_LENGTH_MAX = 200
_HIGH_SURROGATES = ("\ud800", "\udbff")


@dataclass(slots=True)
class _Call:
    """A call as it comes in."""

    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Assembly:
    """Takes chunks, gives text deltas, and has the whole reply at the end."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.usage: Usage | None = None
        self._texts: list[str] = []
        self._half = ""
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._size = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The lengths of the text deltas so far, in code points."""
        return tuple(len(each) for each in self._texts)

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Name and arguments of each call so far, as the model wrote them."""
        return [(each.name, "".join(each.arguments)) for each in self._calls]

    def feed(self, chunk: ChatCompletionChunk) -> str:
        """Take one chunk and return the text that it adds, often none.

        Raises ReplyTooLarge past a bound, and ModelRefused for a chunk that is none.
        """
        try:
            return self._feed(chunk)
        except (AttributeError, TypeError) as error:
            # The client builds chunks from whatever the server sends, without a check of their types.
            raise ModelRefused("the model's server streams something that is no chat completion") from error

    def end(self) -> str:
        """Take the end of the stream and return the text that was held back, if any.

        Raises ModelUnavailable where the reply was cut short, and ModelRefused where it was withheld.
        """
        if self.finish_reason is None:
            raise ModelUnavailable("the model's reply was cut short before it was finished")
        rest = self._keep("\ufffd") if self._half else ""
        if self.finish_reason == "content_filter" and not self._texts and not self._calls:
            raise ModelRefused("the model's server withheld the reply (content_filter)")
        return rest

    def tool_calls(
        self, taken: Iterable[str], new_id: Callable[[], str]
    ) -> tuple[tuple[ToolCall, ...], dict[str, str]]:
        """The calls, and why some of them are invalid, by id. An id that is unfit or in `taken` is replaced."""
        used = set(taken)
        calls: list[ToolCall] = []
        invalid: dict[str, str] = {}
        for each in self._calls:
            call_id = each.id if _ID.fullmatch(each.id) and each.id not in used else new_id()
            used.add(call_id)
            name, arguments, why = _read(each)
            calls.append(ToolCall(id=call_id, name=name, arguments=arguments))
            if why is not None:
                invalid[call_id] = why
        return tuple(calls), invalid

    def _feed(self, chunk: ChatCompletionChunk) -> str:
        self.model = _whole(_text_of(chunk.model)[:_MODEL_LENGTH_MAX]) or self.model
        if chunk.usage is not None:
            self.usage = Usage(
                input_tokens=_count_of(chunk.usage.prompt_tokens),
                output_tokens=_count_of(chunk.usage.completion_tokens),
            )
        return "".join([self._feed_choice(each) for each in chunk.choices or () if each.index in (0, None)])

    def _feed_choice(self, choice: Choice) -> str:
        self.finish_reason = _whole(_text_of(choice.finish_reason)[:_NAME_LENGTH_MAX]) or self.finish_reason
        delta = choice.delta
        if not delta:
            return ""  # some servers leave it out of the last chunk
        for call in delta.tool_calls or ():
            self._feed_call(call)
        said = _text_of(delta.content) or _text_of(delta.refusal)
        return self._feed_text(said) if said else ""

    def _feed_text(self, delta: str) -> str:
        self._grow(delta)
        text, self._half = self._half + delta, ""
        if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            # Half a code point: the other half comes with the next delta.
            text, self._half = text[:-1], text[-1]
        return self._keep(_whole(text)) if text else ""

    def _keep(self, text: str) -> str:
        self._texts.append(text)
        return text

    def _feed_call(self, delta: ChoiceDeltaToolCall) -> None:
        index, call_id = delta.index or 0, _text_of(delta.id)
        name, arguments = ("", "") if not delta.function else _function_of(delta.function)
        call = self._by_index.get(index)
        # Some servers send whole calls that all have the index 0: another id with a name is another call.
        if call is None or (call_id and call.id and call_id != call.id and name):
            if len(self._calls) == TOOL_CALL_COUNT_MAX:
                raise ReplyTooLarge("tool calls", TOOL_CALL_COUNT_MAX)
            call = self._by_index[index] = _Call(id=call_id)
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        self._grow(name + arguments)
        call.arguments.append(arguments)

    def _grow(self, text: str) -> None:
        self._size += len(text.encode("utf-8", "surrogatepass"))
        if self._size > REPLY_SIZE_MAX:
            raise ReplyTooLarge("bytes", REPLY_SIZE_MAX)


def _text_of(value: object) -> str:
    """The value if it is text; anything else counts as left out."""
    return value if isinstance(value, str) else ""


def _count_of(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value <= _COUNT_MAX else 0


def _function_of(function: ChoiceDeltaToolCallFunction) -> tuple[str, str]:
    """Name and arguments; some servers send the arguments as an object and not as its text."""
    arguments: object = function.arguments
    written = json.dumps(arguments) if isinstance(arguments, dict) else _text_of(arguments)
    return _text_of(function.name), written


def _read(call: _Call) -> tuple[str, dict[str, object], str | None]:
    """Name, arguments, and why they cannot be used."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:_NAME_LENGTH_MAX] or "unnamed"
    if name != call.name:
        # The name goes back to the model in every later turn: one that its server refuses would end the thread.
        return name, {}, f"{_shown(call.name)} is no name of a tool"
    text = _whole("".join(call.arguments))
    try:
        return name, parse_object(text), None
    except NotAnObject as error:
        return name, {}, f"the arguments are {error}; they were {_shown(text)}"


def _shown(text: str) -> str:
    text = _whole(text)
    return repr(text if len(text) <= _SHOWN_LENGTH_MAX else text[:_SHOWN_LENGTH_MAX] + "…")


def _whole(text: str) -> str:
    """`text` with the halves of code points joined, and a half without its other half replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
