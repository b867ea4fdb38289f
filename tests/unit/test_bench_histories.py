"""The measures of `bench/compactors.py`: what they count as an orphan and as shown."""

from bench.parts.histories import Sent, history, orphans, share_shown, source_entries
from threadmark.compaction import Role

NOBODY: frozenset[str] = frozenset()


def test_a_cut_through_a_batch_is_counted() -> None:
    """Two results whose call has gone, and a call whose result has gone, are three orphans."""
    whole = [Sent(calls=("a", "b")), Sent(answer="b"), Sent(answer="a"), Sent(), Sent(calls=("c",)), Sent(answer="c")]

    assert orphans(whole, NOBODY) == 0
    assert orphans(whole[1:], NOBODY) == 2
    assert orphans([*whole[1:5], Sent()], NOBODY) == 3


def test_a_call_that_waits_for_a_person_is_no_orphan_unless_it_is_gone() -> None:
    """Its result is still to come, and needs its call."""
    assert orphans([Sent(), Sent(calls=("a", "b")), Sent(answer="b")], frozenset({"a"})) == 0
    assert orphans([Sent()], frozenset({"a"})) == 1
    assert orphans([Sent(calls=("a",)), Sent()], frozenset({"a"})) == 1


def test_histories_are_sound_before_a_compaction() -> None:
    """So every orphan that is found later is the compactor's. Batches, approvals and shared results all occur."""
    histories = [history(seed, 3_000, 4) for seed in range(30)]
    for messages in histories:
        open_calls = {call for message in messages if message.is_open for call, _ in message.calls}
        sent = [
            Sent(answer=answer) if answer else Sent(calls=tuple(call for call, _ in message.calls))
            for message in messages
            for answer in (message.answers or (None,))
        ]
        assert orphans(sent, frozenset(open_calls - {each.answer for each in sent})) == 0
        assert len(source_entries(messages)) == len(messages)
    every = [message for messages in histories for message in messages]
    assert max(len(message.calls) for message in every) == 8
    assert max(len(message.answers) for message in every) == 3
    assert any(message.failed for message in every)
    assert any(message.is_open for message in every)


def test_what_was_shown_is_a_share_of_characters() -> None:
    """A prompt with the half of a sentence does not show it; arguments of calls count too."""
    messages = history(1, 2_000, 3)
    sentences = [sentence for message in messages for sentence in message.sentences()]

    assert share_shown(messages, ["\n".join(sentences)]) == 1.0
    assert share_shown(messages, []) == 0.0
    assert share_shown(messages, ["\n".join(sentences)[len(sentences[0]) // 2 :]]) < 1.0
    assert any(message.role is Role.AI and message.calls for message in messages)
