"""Two hundred injected texts, through five rounds of compaction (G15)."""

import re

import pytest

from tests.support.bad_summarisers import Recorder
from tests.support.compaction_threads import Thread, ai, human, talk, tool
from tests.support.tool_injections import INJECTED
from threadmark.compaction.input.source import SourceEntry, Trust
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.proposal import Proposal
from threadmark.compaction.view import PartRole, Pin, render

TOGETHER, ROUND_COUNT = 20, 5
_TURNS_ROUND = re.compile("[\u202a-\u202e\u2066-\u2069]")


def tool_results(texts: tuple[str, ...]) -> list[SourceEntry]:
    """A thread in which a page, read by a tool, says each of the texts."""
    entries = [human(1, "hello")]
    for number, text in enumerate(texts):
        seq = 2 + 2 * number
        entries += [ai(seq, "", f"c{seq}"), tool(seq + 1, text, f"c{seq}", trust=Trust.WEB)]
    return [*entries, *talk(6, 1, start=200)]


@pytest.mark.parametrize("first", range(0, len(INJECTED), TOGETHER))
@pytest.mark.parametrize("model", [None, Recorder], ids=["excerpts", "a model that repeats"])
async def test_injected_texts_stay_what_a_page_said(first: int, model: type[Recorder] | None) -> None:
    """None ends or opens a frame, becomes a rule, a memory or a pin, or gains trust, however often it is repeated."""
    texts = INJECTED[first : first + TOGETHER]
    entries = tool_results(texts)
    injected_seqs = {entry.seq for entry in entries if entry.trusted is Trust.WEB}
    thread = Thread(entries, Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=600))
    compacted = 0
    for number in range(ROUND_COUNT):
        proposal = await thread.compact(model() if model else None)
        if proposal is not None:
            assert isinstance(proposal, Proposal)
            compacted += 1
            assert not any(
                source.seq in injected_seqs for row in proposal.ledger.rows if row.critical for source in row.sources
            )
            assert not any(text[:12] in promotion.text for promotion in proposal.promotions for text in texts)
        thread.entries = [*thread.entries, *talk(4, number, start=thread.entries[-1].seq + 1)]
    assert compacted == ROUND_COUNT

    assert not any(isinstance(item, Pin) for item in thread.view.items)
    covering = [each for each in thread.segments.values() if injected_seqs & set(each.covered)]
    assert {each.trust for each in covering} == {Trust.WEB}
    summaries = [
        part for part in render(thread.view, thread.entries, thread.segments).parts if part.kind is PartRole.SUMMARY
    ]
    assert summaries
    for part in summaries:
        body = str(part.content)
        assert body.lower().count("<compacted") == body.lower().count("</compacted") == 1
        assert body.endswith("</compacted>")
        assert not re.search(r"<(?:/?pinned|/?reference|/?transcript|\|im_)", body, re.IGNORECASE)
        assert not _TURNS_ROUND.search(body)
