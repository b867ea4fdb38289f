"""`python -m threadmark.examples.refund.demo`: plays the story, shows the account of it, and says whether all promises
held.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from threadmark.examples.refund.demo import account
from threadmark.examples.refund.demo.api import Api
from threadmark.examples.refund.demo.screen import Screen
from threadmark.examples.refund.demo.server import DemoFailed, DemoServer
from threadmark.examples.refund.demo.story import Story

__all__ = ["main"]

STEP_MS = 2_500
WORD_S = 0.04
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Play it; the exit code: 0 all promises held, 1 they did not, 130 the watcher left."""
    arguments = _parser().parse_args(argv)
    screen = Screen(word_s=0.0 if arguments.fast else WORD_S)
    # As Ctrl-C does: the blocks below end, and with them the server.
    signal.signal(signal.SIGTERM, _leave)
    try:
        complaints = _play(screen, doubt=arguments.doubt)
    except DemoFailed as error:
        complaints = [str(error)]
    except KeyboardInterrupt:
        screen.tell("Stopped; nothing is left behind.")
        return INTERRUPTED
    screen.verdict(complaints, "killed in the middle, nothing lost, nothing done twice that must not be.")
    return 1 if complaints else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m threadmark.examples.refund.demo", description=main.__doc__)
    parser.add_argument("--doubt", action="store_true", help="kill it once more, while the refund is being paid")
    parser.add_argument("--fast", action="store_true", help="do not slow the words down for a reader")
    return parser


def _play(screen: Screen, *, doubt: bool) -> list[str]:
    screen.scene("A server")
    with DemoServer(screen) as server:
        server.start()
        with Api(server.url, server.key) as api:
            story = Story(screen, server, api, step_ms=STEP_MS)
            story.ask()
            story.go_on()
            story.approve(then_kill=doubt)
            if doubt:
                story.settle()
            return _account(screen, server, story)


def _account(screen: Screen, server: DemoServer, story: Story) -> list[str]:
    screen.scene("What it came to")
    told, lines = story.steps(), server.effects()
    screen.table(account.HEAD, account.rows(told["items"], lines))
    for worker_id, letter in account.servers(told["items"]).items():
        end = "killed" if any(f"-{pid}-" in worker_id for pid in story.killed_pids) else "still there"
        screen.tell(f"{letter} is worker {worker_id} ({end}).")
    totals = told["totals"]
    screen.tell(f"Tokens paid: {totals['tokens_paid']}.")
    screen.tell(f"Tokens that later turns did not pay again: {totals['tokens_saved_by_replay']}.")
    screen.tell(f"Calls that reached the outside world: {len(lines)}, for {totals['step_count']} steps.")
    broken = account.broken_promises(told, lines, last_words=story.last_words(), journal_holds=story.journal_holds())
    return list(broken)


def _leave(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
