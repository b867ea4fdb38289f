"""Lines of any number in a file without a name: it is gone when it is closed, or when its process dies."""

import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType

from threadmark.memory.errors import Refused

__all__ = ["LINE_LENGTH_MAX", "SpooledLines"]

LINE_LENGTH_MAX = 1_000_000
#: A code point has at most four bytes.
LINE_BYTES_MAX = 4 * LINE_LENGTH_MAX + 2


class SpooledLines:
    """Bytes written one after the other, and read as lines as often as needed. Used by one thread at a time."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> "SpooledLines":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, part: bytes) -> None:
        """Append bytes, wherever they end."""
        self._file.write(part)

    def write_lines(self, lines: Iterable[str]) -> None:
        """Replace everything by these lines."""
        self._file.seek(0)
        self._file.truncate()
        self._file.writelines(f"{line}\n".encode() for line in lines)

    def __iter__(self) -> Iterator[str]:
        """The lines from the first. Raises Refused for one that is too long or is not UTF-8."""
        self._file.seek(0)
        number = 0
        while line := self._file.readline(LINE_BYTES_MAX):
            number += 1
            if len(line) == LINE_BYTES_MAX:
                raise Refused(f"line {number}", f"is longer than {LINE_LENGTH_MAX} characters")
            try:
                yield line.decode().removesuffix("\n")
            except UnicodeDecodeError as error:
                raise Refused(f"line {number}", "is not UTF-8") from error

    def rewind(self) -> None:
        """Have `read` begin at the first byte."""
        self._file.seek(0)

    def read(self, count: int) -> bytes:
        """The next bytes, at most `count`; none at the end."""
        return self._file.read(count)

    def close(self) -> None:
        """Let go of the file, which is gone then."""
        self._file.close()
