"""A real worker that can do one kind of task: `python -m tests.crash.task_worker`, configured by its environment.

A task `append` writes a line `begun` into `effects.jsonl` of the data directory, waits until the file `gate` is there,
and then writes its line `done`, unless one is there: what is done twice is seen, and so is what is not.
"""

import asyncio
import json
import os
import signal

from threadmark.state.tasks.tasks import Task
from threadmark.workers.settings.settings import Settings
from threadmark.workers.tasks.task_context import TaskContext
from threadmark.workers.wiring import open_resources

__all__ = ["main"]

POLL_S = 0.02


async def main() -> None:
    """Work until SIGTERM."""
    settings = Settings.from_environment(os.environ)
    lines, gate = settings.data_dir / "effects.jsonl", settings.data_dir / "gate"

    def write(what: str, task: Task) -> None:
        with lines.open("a") as file:
            file.write(json.dumps({"what": what, "key": task.key, "pid": os.getpid(), "attempt": task.attempts}) + "\n")

    async def append(task: Task, context: TaskContext) -> dict[str, int]:
        write("begun", task)
        await context.report({"begun": task.attempts})
        while not gate.exists():  # noqa: ASYNC110 - it is the test, in another process, that opens the gate
            await asyncio.sleep(POLL_S)
        write("done", task)
        return {"attempt": task.attempts}

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    async with open_resources(settings, with_worker=True, with_readers=False, task_runner={"append": append}):
        (settings.data_dir / f"ready-{os.getpid()}").touch()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
