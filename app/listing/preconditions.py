"""Conditional changes: `If-Match` and `If-None-Match`, over entity tags that are version numbers."""

import re
from typing import Annotated

from litestar.params import HeaderParameter

from threadmark.app.http.body_errors import BodyRefused
from threadmark.compaction import Precondition

__all__ = ["IfMatch", "IfNoneMatch", "condition_of", "tag_of"]

TAG_COUNT_MAX = 20
_TAG = re.compile(r'(W/)?"([^"]{0,100})"')
_VERSION = re.compile(r"[1-9][0-9]{0,9}")
IfMatch = Annotated[
    str | None,
    HeaderParameter(name="If-Match", description="Only if its `ETag` is one of these; `*`: only if it is there."),
]
IfNoneMatch = Annotated[
    str | None, HeaderParameter(name="If-None-Match", description="`*`: only if it is not there yet.")
]


def tag_of(version: int) -> str:
    """The entity tag of a version."""
    return f'"{version}"'


def condition_of(if_match: str | None, if_none_match: str | None = None) -> Precondition:
    """What the headers ask for. Raises BodyRefused for what no tag can be, and for what is not supported."""
    is_there: bool | None = None
    versions: frozenset[int] | None = None
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise BodyRefused("If-None-Match", "can be * alone here")
        is_there = False
    if if_match is not None and if_match.strip() == "*":
        if is_there is False:
            raise BodyRefused("If-None-Match", "does not go with If-Match")
        is_there = True
    elif if_match is not None:
        versions = _versions(if_match)
    return Precondition(versions=versions, is_there=is_there)


def _versions(text: str) -> frozenset[int]:
    tags = [_TAG.fullmatch(each.strip()) for each in text.split(",")]
    if not tags or len(tags) > TAG_COUNT_MAX or not all(tags):
        raise BodyRefused("If-Match", 'is * or entity tags such as "3", with commas between them')
    # A weak tag, and one that we never gave, matches nothing: it is no error, and the condition does not hold.
    strong = [each[2] for each in tags if each is not None and each[1] is None]
    return frozenset(int(each) for each in strong if _VERSION.fullmatch(each))
