"""Erasure: a summary loses what an erased entry said, and is written again from the entries that are left."""

from collections.abc import Iterable, Sequence

import msgspec

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.ledger import Row, dropped_in
from threadmark.compaction.ledger.collect import collect_units
from threadmark.compaction.ledger.weights import is_critical
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.summary import TokenCounter, estimate_tokens, extractive_draft, text_of
from threadmark.compaction.summary.appendix import make_appendix
from threadmark.compaction.summary.footer import footer_of
from threadmark.compaction.view.items import Pin, Segment, View
from threadmark.compaction.view.stubs import segment_text

__all__ = ["without_erased_pins", "written_again"]


def written_again(
    segment: Segment,
    covered: Sequence[SourceEntry],
    rows: Iterable[Row],
    analyses: Analyses,
    policy: Policy,
    count: TokenCounter = estimate_tokens,
) -> Segment:
    """The segment with a text made of the entries that are left, by excerpts and kept facts; no model is asked.

    `covered` are its entries, the erased ones without words; `rows` its ledger after the erasure. A model's words may
    hold what was erased in any disguise, so none of them stay.
    """
    left = [entry for entry in covered if not entry.erased]
    tokens = sum(entry.tokens for entry in left)
    draft = extractive_draft(left, analyses, policy.summary_budget(tokens), count)
    excerpts = text_of(draft.lines)
    critical = [
        unit
        for unit in collect_units(left, analyses).values()
        if is_critical(unit, policy.rules.critical_atoms, policy.rules.critical_clauses) and unit.text not in excerpts
    ]
    entries = {entry.position: entry for entry in left}
    appendix = make_appendix(critical, entries, analyses, policy.appendix_budget(tokens), count)
    ledger = list(rows)
    text = text_of((*draft.lines, *appendix.lines)) + footer_of(ledger)
    dropped = dropped_in(ledger)
    again = msgspec.structs.replace(
        segment,
        text=text,
        message_count=len(left),
        dropped_count=dropped.unit_count,
        critical_dropped_count=dropped.critical_count,
    )
    return msgspec.structs.replace(again, tokens=count(segment_text(again)))


def without_erased_pins(view: View, erased: frozenset[int], view_id: str) -> View:
    """A view without the pins on erased entries; the same view where there are none."""
    items = tuple(item for item in view.items if not (isinstance(item, Pin) and item.seq in erased))
    if items == view.items:
        return view
    return View(view_id=view_id, items=items, version=view.version + 1, parent_id=view.view_id)
