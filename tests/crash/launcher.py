"""Starts real servers that die as planned: `python -m tests.crash.launcher` reads its orders as lines of JSON.

It imports the product once and forks for each start, so that hundreds of starts cost no more than their work. An order
is one line in, `{"name": "1", "arguments": ["serve", …], "environment": {…}, "log": "path"}`, and two lines out:
`{"name": "1", "pid": n}` at once, and `{"name": "1", "code": n}` when the process has ended (negative: the signal that
ended it). The child runs the entry of the command `threadmark`. PLAN_VARIABLE in its environment names the file in
which its kill plan is, or may appear later.
"""

import ctypes
import json
import os
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

# Before the first fork: what is imported here no child imports again.
import threadmark.examples.registry  # noqa: F401
from tests.crash.fault_injection import Doom, bring_upon
from tests.crash.plan import PLAN_VARIABLE
from tests.support.launch import PR_SET_PDEATHSIG
from threadmark.app import cli, commands
from threadmark.workers.tokens import count_tokens

__all__ = ["main"]

READ_BYTES = 65_536


def main() -> None:
    """Start the ordered processes and report those that have exited, until the input ends."""
    _warm_up()
    bell, rung = _bell_of_ends()
    names: dict[int, str] = {}
    unread = b""
    _say({"ready": os.getpid()})
    while True:
        readable, _, _ = select.select([0, bell], [], [])
        if bell in readable:
            os.read(bell, READ_BYTES)
            _report_ends(names)
        if 0 in readable:
            data = os.read(0, READ_BYTES)
            if not data:
                return
            *orders, unread = (unread + data).split(b"\n")
            for order in map(json.loads, orders):
                if (pid := os.fork()) == 0:
                    _become(order, [bell, rung])
                names[pid] = order["name"]
                _say({"name": order["name"], "pid": pid})


def _warm_up() -> None:
    """Load every command and count tokens once: what that reads and builds, the children find done.

    In this thread, and not as a model would: a pool that has begun its threads has none of them in a child.
    """
    for name in commands.__all__:
        getattr(commands, name)
    count_tokens("hello")


def _bell_of_ends() -> tuple[int, int]:
    """A pipe that becomes readable when a child has ended."""
    bell, rung = os.pipe()
    os.set_blocking(rung, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(rung)
    return bell, rung


def _report_ends(names: dict[int, str]) -> None:
    while names:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _say({"name": names.pop(pid), "code": os.waitstatus_to_exitcode(status)})


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _become(order: Mapping[str, Any], inherited: list[int]) -> NoReturn:
    """Be the server, in the child."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _tie_to_parent()
        _take_over(Path(order["log"]), inherited)
        os.environ.update(order["environment"])
        if PLAN_VARIABLE in os.environ:
            bring_upon(Doom(Path(os.environ[PLAN_VARIABLE])))
        code = cli.main(order["arguments"])
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


def _take_over(log: Path, inherited: list[int]) -> None:
    for each in inherited:
        os.close(each)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


if __name__ == "__main__":
    main()
