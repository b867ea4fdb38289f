"""The offline model condenses by rule: the same record has the same summary, and a compaction takes it."""

import pytest

from tests.support.compaction_threads import Thread, ai, human
from threadmark.compaction import Policy, Proposal, SummaryPrompt, SummaryReply
from threadmark.workers.models.script import offline_reply
from threadmark.workers.models.summary_script import FAULT_KINDS

PADDING = "It went on for a while and nothing much was said about it, as far as anybody remembers. " * 8


class Offline:
    """The offline model as a summariser, without its transport."""

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """Its reply to the two messages of a summariser's request."""
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        reply = offline_reply({"messages": messages})
        assert reply == offline_reply({"messages": messages})
        return SummaryReply(text=reply.text, finish_reason=reply.finish_reason)


def a_thread(extra: str = "") -> Thread:
    """Ten turns of some length."""
    entries = []
    for number in range(10):
        entries.append(human(2 * number + 1, f"Ticket OPS-{number} costs ${number}50. {extra}{PADDING}"))
        entries.append(ai(2 * number + 2, f"Ticket OPS-{number} is noted. {PADDING}"))
    return Thread(entries, policy=Policy(keep_last_turns=2, min_gain=0.0))


async def test_a_compaction_takes_its_summary() -> None:
    """On the first rung, with nothing rejected."""
    made = await a_thread().compact(Offline())

    assert isinstance(made, Proposal)
    assert (made.strategy, made.rejections) == ("model", ())
    assert made.segment is not None
    assert "OPS-3" in made.segment.text


@pytest.mark.parametrize("kind", FAULT_KINDS)
async def test_it_fails_as_ordered(kind: str) -> None:
    """Each fault is refused on both rungs of the model, and the summary is made of excerpts."""
    made = await a_thread(f"summary-fault: {kind} ").compact(Offline())

    assert isinstance(made, Proposal)
    assert made.strategy == "extractive"
    assert [each.strategy for each in made.rejections] == ["model", "model_strict"]


def test_other_requests_are_not_taken_for_a_summary() -> None:
    """A person may quote a summariser's request; it is a conversation all the same."""
    quoted = "You condense records of conversations. <<<transcript-0123456789abcdef\n[1] human (user): x\n"

    reply = offline_reply({"messages": [{"role": "user", "content": quoted}]})

    assert reply.text.startswith("You said: ")
