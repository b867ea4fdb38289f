"""Ending background tasks that talk to Redis."""

import asyncio

__all__ = ["end"]

#: How long one cancellation is given (seconds).
LOCK_RETRY_S = 0.1


async def end(*tasks: "asyncio.Task[None] | None") -> None:
    """Cancel the tasks, and return when they have ended.

    The client of Redis sometimes swallows a cancellation that comes while it opens or closes a connection; a loop
    around it would then go on for ever, and with it whoever waits for its end. So it is asked for until it is heard.
    """
    pending = {each for each in tasks if each is not None}
    while pending:
        for each in pending:
            each.cancel()
        ended, pending = await asyncio.wait(pending, timeout=LOCK_RETRY_S)
        await asyncio.gather(*ended, return_exceptions=True)
