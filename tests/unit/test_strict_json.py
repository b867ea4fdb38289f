"""What a model writes as arguments is read strictly."""

import pytest

from threadmark.workers.models.strict_json import NotAnObject, parse_object


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": [1, 2.5, null, true, "x\\u0000\\ud83d\\ude00"]}', {"a": [1, 2.5, None, True, "x\x00😀"]}),
        ('{"n": [9007199254740991, -9007199254740991]}', {"n": [2**53 - 1, -(2**53 - 1)]}),
    ],
)
def test_objects_are_read(text: str, value: dict[str, object]) -> None:
    """Every JSON object that a journal can keep is read as it is; nothing written means no arguments."""
    assert parse_object(text) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": ', "no valid JSON: Expecting value at character 6"),
        ("{'a': 1}", "no valid JSON"),
        ('{"a": 1} {"b": 2}', "no valid JSON: Extra data"),
        ("[1]", "a JSON array, not an object"),
        ('"x"', "a JSON string, not an object"),
        ("5", "a JSON number, not an object"),
        ("null", "a JSON null, not an object"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": -Infinity}', "-Infinity is no JSON"),
        ('{"a": 1e999}', "1e999 is out of range"),
        ('{"a": 9007199254740992}', "arguments.a is an integer beyond"),
        ('{"a": ' + "9" * 5000 + "}", "too many digits"),
        ('{"a": ["\\ud800"]}', r"arguments.a\[0\] holds a lone surrogate"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "nested deeper than 64"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
    ],
)
def test_everything_else_is_refused_with_its_reason(text: str, sentence: str) -> None:
    """The model sees the reason, so it names the place or the key."""
    with pytest.raises(NotAnObject, match=sentence):
        parse_object(text)
