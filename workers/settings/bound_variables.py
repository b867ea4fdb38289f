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
    """

    compactions_per_tenant: int = 8
    compactions_per_process: int = 32


DEFAULT_BOUNDS = Bounds()
_MEANINGS = {
    "compactions_per_tenant": "Compactions that requests of one tenant wait for at once in a process, dry runs among "
    "them. Those in the background are not counted.",
    "compactions_per_process": "The same of all tenants together.",
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
