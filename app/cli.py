"""The command `threadmark`: it imports nothing before it can be interrupted without a traceback."""

import sys
from collections.abc import Sequence

__all__ = ["main"]

#: What shells make of a program that Ctrl-C ended.
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv`; the exit code: 0 done, 1 something was found, 2 refused, 130 interrupted."""
    try:
        # Most of a start is imports, so an early Ctrl-C arrives here.
        from threadmark.app.command_line import run  # noqa: PLC0415

        return run(argv)
    except KeyboardInterrupt:
        print("threadmark: interrupted", file=sys.stderr)
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
