"""The validator: it refuses what is no summary, before anything is accounted for."""

import re
from collections.abc import Sequence

from threadmark.compaction.clauses import clause_form
from threadmark.compaction.content_words import grams
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.keyword_prefilter import words
from threadmark.compaction.ledger import Judged, Passage, Status, UnitKind
from threadmark.compaction.summary.drafts import Draft, TokenCounter
from threadmark.compaction.summary.model import DraftRefused, Refused

__all__ = ["check_inventions", "check_summary"]

BANDS = 5
BANDS_MIN = 3
COPY_SHARE = 0.9  #: of a summary's runs of four characters that stand in one message
COPY_CHARACTERS_MIN = 160  #: a shorter summary may well be one sentence of one message
INTRODUCED_MIN = 3  #: a single slip is a row of the ledger, not a refusal
_TO_A_PERSON = re.compile(
    r"(?:\b(?:i'd be happy|i would be happy|happy to help|how can i help|let me know|would you like|please provide"
    r"|could you (?:please )?(?:provide|share|clarify)|feel free|i'm sorry|i am sorry|i apologi[sz]e|as an ai|i cannot"
    r"|i can't (?:help|assist|summari)|i'm unable|sure[,!]|certainly[,!]|of course[,!]|thank you for"
    r"|thanks for (?:the|your)|here(?:'s| is) (?:the|a|my|your) (?:summary|answer|response)"
    r"|i've (?:updated|added|created|fixed|completed)"
    r"|gerne[,!]|bitte geben sie|wie kann ich|es tut mir leid|natürlich[,!]|bien sûr|je suis désolé|pouvez-vous"
    r"|comment puis-je|claro[,!]|lo siento|¿en qué puedo|por favor,? proporcion))"
    r"|好的[，,]|当然[，,]|抱歉|请提供|我可以帮|承知しました|かしこまりました|申し訳|お手伝い|教えていただけ"
)
_ERROR_TEXT = re.compile(
    r"\A\W{0,3}(?:error|api error|rate limit|overloaded|internal server error|bad gateway|unauthorized"
    r"|timeout|\{\"error\")"
)
_SPEAKER = words("assistant: user: human: ai: model:")


def check_summary(
    draft: Draft,
    text: str,
    entries: Sequence[SourceEntry],
    passage: Passage,
    analyses: Analyses,
    *,
    covered_tokens: int,
    count: TokenCounter,
) -> None:
    """Raises DraftRefused unless the draft can be a summary of the entries.

    It must not address anybody, must tell of at least three of the five fifths of the range where these have values to
    tell of (a reply tells of the last one only), must not be a copy of one message, and must be shorter than the range.
    """
    bare = [line.text.strip().casefold() for line in draft.lines]
    joined = "\n".join(bare)
    if not joined:
        raise DraftRefused(Refused.EMPTY)
    if _ERROR_TEXT.match(joined):
        raise DraftRefused(Refused.REPLY, "it is an error text")
    if any(line.startswith(tuple(_SPEAKER)) for line in bare):
        raise DraftRefused(Refused.REPLY, "a speaker's line")
    # What the record itself says to a person may be quoted; what no message says is the model's own reply.
    said = "\n".join(entry.text() for entry in entries).casefold()
    for match in _TO_A_PERSON.finditer(joined):
        if match[0] not in said:
            raise DraftRefused(Refused.REPLY, match[0])
    if count(text) >= covered_tokens:
        raise DraftRefused(Refused.TOO_LONG, f"{count(text)} tokens for {covered_tokens}")
    _check_copy(joined, entries)
    _check_bands(draft, entries, passage, analyses)


def _check_copy(joined: str, entries: Sequence[SourceEntry]) -> None:
    if len(joined) < COPY_CHARACTERS_MIN or len(entries) == 1:
        return
    runs = grams(clause_form(joined))
    for entry in entries:
        text = entry.text()
        if len(text) >= len(joined) // 2 and len(runs & grams(clause_form(text))) >= COPY_SHARE * len(runs):
            raise DraftRefused(Refused.COPY, f"of entry {entry.seq}")


def _check_bands(draft: Draft, entries: Sequence[SourceEntry], passage: Passage, analyses: Analyses) -> None:
    """In how many fifths of the range the summary's values stand; a line's pointers count as well."""
    if len(entries) < BANDS:
        return
    values_in_summary = {(atom.cls, atom.canon) for atom in passage.found.atoms}
    pointed = {seq for line in draft.lines for seq in line.seqs}
    rich: set[int] = set()
    met: set[int] = set()
    for place, entry in enumerate(entries):
        band = place * BANDS // len(entries)
        values = (
            {(atom.cls, atom.canon) for part in analyses.of(entry) for atom in part.found.atoms}
            if not entry.erased
            else set()
        )
        if values and entry.role is not Role.SYSTEM:
            rich.add(band)
        if values & values_in_summary or (not values and entry.seq in pointed):
            met.add(band)
    if len(rich) >= BANDS_MIN and len(met) < BANDS_MIN:
        raise DraftRefused(Refused.ONE_SIDED, f"{len(met)} of {len(rich)} parts")


def check_inventions(judged: Judged, passage: Passage, introduced_share_max: float) -> None:
    """Raises DraftRefused where too much of the summary stands in no source."""
    invented = sum(1 for row in judged.introduced if row.unit is UnitKind.ATOM and row.status is Status.INTRODUCED)
    clauses = sum(1 for row in judged.introduced if row.unit is UnitKind.CLAUSE)
    atoms = len({(atom.cls, atom.canon) for atom in passage.found.atoms})
    if invented >= INTRODUCED_MIN and invented > introduced_share_max * max(1, atoms):
        raise DraftRefused(Refused.INVENTION, f"{invented} of {atoms} values")
    if clauses >= INTRODUCED_MIN and clauses > introduced_share_max * max(1, len(passage.found.clauses)):
        raise DraftRefused(Refused.INVENTION, f"{clauses} of {len(passage.found.clauses)} clauses")
