"""The words of the account: units, statuses and reasons."""

from enum import StrEnum

__all__ = ["KEPT", "Reason", "Shown", "Status", "UnitKind"]


class UnitKind(StrEnum):
    """What is counted."""

    MESSAGE = "message"
    PART = "part"
    CLAUSE = "clause"
    ATOM = "atom"


class Status(StrEnum):
    """What became of a unit. Each unit of the covered range has exactly one; `introduced` is for what has no source."""

    KEPT_VERBATIM = "kept_verbatim"  #: the string is in the view; not that the model will use it
    KEPT_NORMALISED = "kept_normalised"  #: the value is in the view, written otherwise
    PARAPHRASED = "paraphrased"  #: by a heuristic on words, atoms and polarity; the sense is not verified
    MERGED = "merged"  #: the view has it inside of, or as one with, another unit
    PROMOTED = "promoted"  #: it left the view and went to memory
    DROPPED = "dropped"
    ALTERED = "altered"  #: the view says otherwise in its place
    ERASED = "erased"
    INTRODUCED = "introduced"


#: Statuses of units whose string or value is in the view.
KEPT = frozenset({Status.KEPT_VERBATIM, Status.KEPT_NORMALISED, Status.MERGED})


class Reason(StrEnum):
    """Why a unit was dropped."""

    SUMMARISER_OMITTED = "summariser_omitted"
    NOT_SHOWN = "not_shown_to_summariser"
    TOOL_OUTPUT_MASKED = "tool_output_masked"
    OVER_BUDGET = "over_budget"
    POLICY_EXCLUDED = "policy_excluded"
    SUPERSEDED = "superseded"
    DUPLICATE = "duplicate"
    MEDIA = "media"
    OPAQUE = "opaque"


class Shown(StrEnum):
    """In which form the summariser saw a message."""

    FULL = "full"
    MASKED = "masked"  #: its output was replaced by a stub before anything was summarised
    LEFT_OUT = "left_out"
