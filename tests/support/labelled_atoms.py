"""Texts with atoms marked by hand, and the score of an extractor against them.

`python -m tests.support.labelled_atoms` prints precision and recall by class, and every miss and false find.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from threadmark.compaction.atoms import Atom, AtomClass, extract_atoms

__all__ = ["CLASSES", "LabelledText", "Score", "read_labelled", "score"]

FOLDER = Path(__file__).parents[1] / "data" / "compaction"
EVERYTHING = ("atoms-*.txt", "later-*.txt", "second-*.txt", "third-*.txt", "held-atoms-*.txt")
CLASSES = {
    "url": AtomClass.URL,
    "email": AtomClass.EMAIL,
    "uuid": AtomClass.UUID,
    "hash": AtomClass.HASH,
    "path": AtomClass.PATH,
    "money": AtomClass.MONEY,
    "pct": AtomClass.PERCENT,
    "date": AtomClass.DATE,
    "time": AtomClass.TIME,
    "qty": AtomClass.QUANTITY,
    "num": AtomClass.NUMBER,
    "ref": AtomClass.REFERENCE,
    "code": AtomClass.CODE,
    "ver": AtomClass.VERSION,
    "quote": AtomClass.QUOTED,
    "cmd": AtomClass.COMMAND,
    "name": AtomClass.NAME,
    "handle": AtomClass.HANDLE,
    "phone": AtomClass.PHONE,
    "host": AtomClass.HOST,
    "err": AtomClass.ERROR,
}
_MARK = re.compile(r"⟦([a-z]+)\||⟧")

Span = tuple[AtomClass, int, int]


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text without its marks, and the spans that were marked."""

    language: str
    text: str
    spans: frozenset[Span]


@dataclass(slots=True)
class Score:
    """How often a class was found rightly, wrongly, and not at all."""

    right: Counter[AtomClass] = field(default_factory=Counter)
    wrong: Counter[AtomClass] = field(default_factory=Counter)
    missed: Counter[AtomClass] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)

    def precision(self, *classes: AtomClass) -> float:
        """The share of what was found that is right, over the classes (all without any)."""
        return self._share(self.wrong, classes or tuple(AtomClass))

    def recall(self, *classes: AtomClass) -> float:
        """The share of what is there that was found, over the classes (all without any)."""
        return self._share(self.missed, classes or tuple(AtomClass))

    def _share(self, failures: Counter[AtomClass], classes: Iterable[AtomClass]) -> float:
        chosen = list(classes)
        right = sum(self.right[each] for each in chosen)
        failed = sum(failures[each] for each in chosen)
        return right / (right + failed) if right + failed else 1.0


def read_labelled(*patterns: str) -> list[LabelledText]:
    """The labelled texts of the files that match (all without any), one a line."""
    texts = []
    for file in sorted(file for pattern in patterns or EVERYTHING for file in FOLDER.glob(pattern)):
        for line in file.read_text("utf-8").splitlines():
            if line.strip():
                texts.append(_parse(file.stem.rpartition("-")[2], line))
    return texts


def _parse(language: str, line: str) -> LabelledText:
    plain: list[str] = []
    length = 0
    opened: list[tuple[str, int]] = []
    spans: set[Span] = set()
    at = 0
    for mark in _MARK.finditer(line):
        piece = line[at : mark.start()]
        plain.append(piece)
        length += len(piece)
        at = mark.end()
        if mark[1]:
            opened.append((mark[1], length))
        else:
            tag, start = opened.pop()
            end, cls = length, CLASSES[tag]
            if cls is AtomClass.QUOTED:
                start, end = _without_marks("".join(plain), start, end)
            spans.add((cls, start, end))
    plain.append(line[at:])
    assert not opened, line
    return LabelledText(language, "".join(plain).replace("\\n", "\n"), frozenset(spans))


def _without_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """A quotation's span without its quotation marks and the blanks beside them."""
    while start < end and text[start] in "“„«»「『‘\"' ":
        start += 1
    while end > start and text[end - 1] in "”“«»」』’\"' ":
        end -= 1
    return start, end


def score(texts: Iterable[LabelledText], extract: Callable[[str], list[Atom]] = extract_atoms) -> Score:
    """Compare class and exact span."""
    result = Score()
    for each in texts:
        found = {(atom.cls, atom.start, atom.end) for atom in extract(each.text)}
        for kind, spans, counter in (
            ("right", found & each.spans, result.right),
            ("wrong", found - each.spans, result.wrong),
            ("missed", each.spans - found, result.missed),
        ):
            for cls, start, end in sorted(spans, key=lambda span: span[1]):
                counter[cls] += 1
                if kind != "right":
                    result.remarks.append(f"{kind:6} {cls:16} {each.text[start:end]!r:40} in {each.text!r}")
    return result


def _print_report(result: Score) -> None:
    print("\n".join(result.remarks))
    print(f"{'class':16} {'right':>6} {'wrong':>6} {'missed':>6} {'precision':>9} {'recall':>7}")
    for cls in AtomClass:
        print(
            f"{cls:16} {result.right[cls]:6} {result.wrong[cls]:6} {result.missed[cls]:6}"
            f" {result.precision(cls):9.3f} {result.recall(cls):7.3f}"
        )
    labelled = sum(result.right.values()) + sum(result.missed.values())
    print(f"all: {labelled} labelled, precision {result.precision():.3f}, recall {result.recall():.3f}")


if __name__ == "__main__":
    _print_report(score(read_labelled(*sys.argv[1:])))
