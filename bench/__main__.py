"""Every measurement, one after the other: `make bench`, or some by name: `make bench ARGS="journal recall"`."""

import subprocess
import sys

__all__ = ["NAMES", "main"]

NAMES = (
    "journal", "postgresql", "load", "recall", "memory", "embedders", "imports",
    "compaction", "compactors", "long_threads", "long_writes", "takeover",
)  # fmt: skip


def main() -> int:
    """Run each in a process of its own; the number of those that failed."""
    chosen = sys.argv[1:] or list(NAMES)
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        print(f"there is no bench {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    failed = 0
    for name in chosen:
        print(f"== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
