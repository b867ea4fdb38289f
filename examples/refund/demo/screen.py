"""What the watcher sees: scenes, words as they arrive, a table, and a verdict. Colours on a terminal alone."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO, TypeVar

__all__ = ["Screen"]

T = TypeVar("T")
POLL_S = 0.05
DOT_EVERY_S = 0.5
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"


class Screen:
    """Writes to `out`; `word_s` seconds pass after each word of a reply, so that one can see it arrive."""

    def __init__(self, out: TextIO = sys.stdout, *, word_s: float = 0.03) -> None:
        self._out = out
        self._word_s = word_s
        self._is_colourful = out.isatty() and "NO_COLOR" not in os.environ
        self._is_in_line = False

    def scene(self, title: str) -> None:
        """A new part of the story."""
        self._end_line()
        self._write(f"\n{self._in(BOLD, title)}\n")

    def tell(self, text: str) -> None:
        """A line of the story."""
        self._end_line()
        self._write(f"  {text}\n")

    def quote(self, speaker: str, text: str) -> None:
        """What somebody said, line by line."""
        for number, line in enumerate(text.splitlines()):
            self.tell(f"{speaker if number == 0 else '':>9}  {line}")

    def word(self, speaker: str, piece: str) -> None:
        """A piece of a reply, as it arrives."""
        if not self._is_in_line:
            self._write(f"  {speaker:>9}  ")
            self._is_in_line = True
        self._write(piece.replace("\n", f"\n  {'':>9}  "))
        time.sleep(self._word_s)

    def blow(self, text: str) -> None:
        """Something bad happens."""
        self._end_line()
        self._write(f"  {self._in(RED, text)}\n")

    def ask(self, text: str) -> None:
        """Somebody is asked."""
        self._end_line()
        self._write(f"  {self._in(YELLOW, text)}\n")

    def wait(self, what: str, is_done: Callable[[], T | None], *, s_max: float) -> T:
        """The first answer of `is_done` that is true, with dots while it takes. Raises TimeoutError after `s_max` s."""
        self._end_line()
        self._write(f"  {what} ")
        began_s = dotted_s = time.monotonic()
        try:
            while not (answer := is_done()):
                now_s = time.monotonic()
                if now_s - began_s > s_max:
                    raise TimeoutError(f"{what} took longer than {s_max:g} s")
                if now_s - dotted_s > DOT_EVERY_S:
                    self._write(".")
                    dotted_s = now_s
                time.sleep(POLL_S)
        finally:
            self._write(f" {time.monotonic() - began_s:.1f} s\n")
        return answer

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows under a head, each column as wide as it needs to be."""
        self._end_line()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for number, row in enumerate([head, *rows]):
            line = "  ".join(map(str.ljust, row, widths)).rstrip()
            self._write(f"  {self._in(DIM, line) if number == 0 else line}\n")

    def verdict(self, complaints: Sequence[str], praise: str) -> None:
        """How it ended."""
        self._end_line()
        for complaint in complaints:
            self._write(f"  {self._in(RED, complaint)}\n")
        text = self._in(RED, "FAILED") if complaints else self._in(GREEN, f"OK: {praise}")
        self._write(f"\n{text}\n")

    def _end_line(self) -> None:
        if self._is_in_line:
            self._write("\n")
            self._is_in_line = False

    def _in(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._is_colourful else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
