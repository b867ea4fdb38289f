"""The environment variables that bound what tenants have at once; part of the one list of variables."""

from dataclasses import dataclass

from threadmark.workers.settings.values import seconds, whole
from threadmark.workers.settings.variable import Variable

__all__ = ["BOUND", "BOUND_VARIABLES", "DEFAULT_BOUNDS", "Bounds"]

#: What the fields of these variables begin with: the rest is an attribute of `Bounds`.
BOUND = "bounds."
_COUNT_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may be going on at once; a request for more is answered with 429 and the name of its bound.

    Attributes:
        compactions_per_tenant: Compactions that requests of one tenant wait for, dry runs among them, in one process.
        compactions_per_process: The same of all tenants together.
        open_streams: Answers to one tenant that stay open in one process: streams, runs that are waited for, events.
        scheduled_runs: Runs of one tenant that wait for their time.
        open_waits: Questions of one tenant that nobody has answered; with so many, no run begins that could ask more.
        background_jobs: Compactions in the background and jobs of compactions that one tenant has open.
    """

    compactions_per_tenant: int = 8
    compactions_per_process: int = 32
    open_streams: int = 1_000
    scheduled_runs: int = 10_000
    open_waits: int = 10_000
    background_jobs: int = 1_000


DEFAULT_BOUNDS = Bounds()
_MEANINGS = {
    "compactions_per_tenant": "Compactions that requests of one tenant wait for at once in a process, dry runs among "
    "them. Those in the background are not counted.",
    "compactions_per_process": "The same of all tenants together.",
    "open_streams": "Answers to one tenant that are open at once in a process: streams of runs, runs that are waited "
    "for and joined, and events of jobs.",
    "scheduled_runs": "Runs of one tenant that wait for their time (`after_seconds`).",
    "open_waits": "Questions of one tenant that nobody has answered. With so many, no run is accepted but those that "
    "answer, and those on a thread that asks for an approval itself.",
    "background_jobs": "Compactions in the background and jobs of compactions that one tenant has open, "
    "paused ones too.",
}

BOUND_VARIABLES: tuple[Variable, ...] = (
    *(
        Variable(
            name=f"THREADMARK_{name.upper()}_MAX",
            field=f"{BOUND}{name}",
            default=str(getattr(DEFAULT_BOUNDS, name)),
            shown_default=f"`{getattr(DEFAULT_BOUNDS, name)}`",
            read_value=whole(1, _COUNT_MAX),
            allowed=f"a whole number from 1 to {_COUNT_MAX}",
            example=str(getattr(DEFAULT_BOUNDS, name)),
            meaning=meaning,
        )
        for name, meaning in _MEANINGS.items()
    ),
    Variable(
        name="THREADMARK_ANSWER_S",
        field="answer_s",
        default="15",
        shown_default="`15`",
        read_value=seconds(0.1, 3600),
        allowed="seconds from 0.1 to 3600",
        example="15",
        meaning="How long reading, ranking and wording for one answer may take, with its turns among other tenants; "
        "then it is 503 `took_too_long`. Answers that come in parts have it for each part. Runs and compactions that "
        "are waited for do not count.",
    ),
)
