"""Starts real servers that die as planned: `python -m tests.crash.launcher`, told what to do by lines of JSON.

It imports the product once and forks for each start, so that hundreds of starts cost no more than their work. A start
is one line in, `{"arguments": ["serve", …], "environment": {…}, "log": "path"}`, and two lines out: `{"pid": n}` at
once, and `{"code": n}` when the process has ended (negative: the signal that ended it). The child runs the entry of
the command `threadmark`. CRASH_PLAN in its environment names the file in which its kill plan is, or may appear later.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Before the first fork, and more than the entry needs at once: what is imported here no child imports again.
import examples.registry  # noqa: F401
from app import cli
from tests.crash.doom import Doom, bring_upon
from tests.launch import PR_SET_PDEATHSIG

__all__ = ["PLAN_VARIABLE", "main"]

PLAN_VARIABLE = "CRASH_PLAN"


def main() -> None:
    """Serve one start after the other, until the input ends."""
    _say({"ready": os.getpid()})
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(order["arguments"], order["environment"], Path(order["log"]))
        _say({"pid": pid})
        _, status = os.waitpid(pid, 0)
        _say({"code": os.waitstatus_to_exitcode(status)})


def _say(answer: Mapping[str, int]) -> None:
    print(json.dumps(answer), flush=True)


def _become(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Be the server, in the child; never returns."""
    code = 1
    try:
        _tie_to_parent()
        _take_over(log)
        os.environ.update(environment)
        if PLAN_VARIABLE in environment:
            bring_upon(Doom(Path(environment[PLAN_VARIABLE])))
        code = cli.main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tie_to_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    os.setsid()


def _take_over(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


if __name__ == "__main__":
    main()
