"""Server-sent events: frames that a strict reader takes apart into what was put in, and the ids they carry."""

import itertools
import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.app.http.path_ids import BadEventId
from threadmark.app.sse.framing import HEARTBEAT, frame
from threadmark.app.wire.conversations.event_ids import FLASH_SLOT, START, Place, flash_slot, read_place
from threadmark.app.wire.event_json import join_values, spell_event
from threadmark.state import plain, spell


@dataclass
class Read:
    """An event as a reader sees it."""

    event: str
    data: str
    event_id: str


def read_strictly(stream: bytes) -> list[Read]:
    """What the HTML standard says (section 9.2.6) that a stream means."""
    text = stream.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    found: list[Read] = []
    name, lines, last_id = "", list[str](), ""
    for line in text.split("\n"):
        if not line:
            if lines:
                found.append(Read(name, "\n".join(lines), last_id))
            name, lines = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            lines.append(value)
        elif field == "id" and "\x00" not in value:
            last_id = value
    return found


@given(st.text())
def test_any_text_arrives_as_it_was(text: str) -> None:
    """One event with the identical text; no field of it is the text's."""
    stream = frame("custom", spell_event({"said": text}), "3-4") + HEARTBEAT

    (read,) = read_strictly(stream)

    assert (read.event, read.event_id) == ("custom", "3-4")
    assert json.loads(read.data) == {"said": text}


def test_a_heartbeat_is_no_event() -> None:
    """It is a comment, between events and alone."""
    assert read_strictly(HEARTBEAT + frame("values", b"{}", None) + HEARTBEAT) == [Read("values", "{}", "")]


@pytest.mark.parametrize(
    ("name", "data", "event_id"),
    [
        ("values", b"{}\n", "1-1"),
        ("values", b"{}\rid: 3", "1-1"),
        ("values\nid: 3", b"{}", "1-1"),
        ("values", b"{}", "1-1\r\n"),
        ("", b"{}", None),
    ],
)
def test_a_field_with_a_line_end_is_not_sent(name: str, data: bytes, event_id: str | None) -> None:
    """Such a frame is a defect of its caller, which must not reach a reader."""
    with pytest.raises(ValueError, match="line end"):
        frame(name, data, event_id)


def test_a_place_is_its_id() -> None:
    """Spelled and read back it is the same place."""
    assert read_place([str(Place(4_294_967_295, 12))]) == Place(4_294_967_295, 12)


@pytest.mark.parametrize("text", ["-1", "0"])
def test_two_ids_mean_everything(text: str) -> None:
    """What clients of the dialect send to stream a run from its start."""
    assert read_place([text]) == START
    assert Place(0, 0) > START


@pytest.mark.parametrize("values", [[], [""]])
def test_no_id_is_no_place(values: list[str]) -> None:
    """Without one a reader receives what comes."""
    assert read_place(values) is None


@pytest.mark.parametrize(
    "values",
    [
        ["x"],
        ["1"],
        ["1-"],
        ["-5"],
        ["1-2-3"],
        ["1-2\n"],
        ["1-2\r\nid: 3"],
        ["1-2 "],
        ["\x00"],
        ["1\u0661-2"],
        ["99999999999-1"],
        ["1-1", "1-2"],
    ],
)
def test_any_other_text_is_no_place(values: list[str]) -> None:
    """Control characters, foreign digits, two headers: refused before anything is streamed."""
    with pytest.raises(BadEventId):
        read_place(values)


def test_flashes_stand_between_the_entries_events_and_the_next_entry() -> None:
    """Each has room for the events of all modes, and they never meet."""
    slots = [flash_slot(ordinal) for ordinal in range(1, 50)]

    assert min(slots) == FLASH_SLOT
    assert {later - earlier for earlier, later in itertools.pairwise(slots)} == {4}


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3), st.lists, max_leaves=5))
def test_plain_values_stay_plain(value: object) -> None:
    """Most of what a tool sends is JSON as it is."""
    assert plain(spell(value)) == value


def test_a_key_that_looks_spelled_comes_back() -> None:
    """The journal escapes it; readers see what the tool sent."""
    assert plain(spell({"$float": "NaN", "x": [{"$a": {"$b": 1}}]})) == {"$float": "NaN", "x": [{"$a": {"$b": 1}}]}
    assert plain(spell({"$ref": 1})) == {"$ref": 1}


def test_values_are_joined_from_what_was_spelled() -> None:
    """The same JSON as spelled at once; interrupts only where there are some."""
    messages = [spell_event({"content": "a\u2028"}), spell_event({"content": "b"})]

    assert json.loads(join_values(messages, [])) == {"messages": [{"content": "a\u2028"}, {"content": "b"}]}
    assert json.loads(join_values([], [{"id": "w"}])) == {"messages": [], "__interrupt__": [{"id": "w"}]}
