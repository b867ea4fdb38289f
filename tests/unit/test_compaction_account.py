"""The account: it balances whatever the summariser says, and nothing that binds is lost."""

import random

import msgspec
import pytest

from tests.support.bad_summarisers import FAULTS, BadSummariser
from tests.support.compaction_recount import recount
from tests.support.compaction_threads import PLANTED, Thread, ai, fuzzed_history, human, talk, tool
from threadmark.compaction.ledger import GENESIS, Reason, Status, UnitKind, totals_of, verify_rows
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.next_view import current_entries
from threadmark.compaction.run.proposal import Proposal
from threadmark.compaction.summary import passage_of
from threadmark.compaction.view import PartRole, first_view, render

SOME, MANY = 60, 10_000


async def balance_fuzzed(seeds: range) -> int:
    """Compact fuzzed threads against a summariser that does something else each time; recount each account."""
    committed = 0
    for seed in seeds:
        chance = random.Random(seed)
        entries = fuzzed_history(seed, 60) if seed % 2 else talk(chance.randint(4, 14), seed, planted=PLANTED[:5])
        thread = Thread(
            entries, Policy(keep_last_turns=1, min_gain=0.0, introduced_share_max=chance.choice((0.25, 1.0)))
        )
        for round_number in range(2):
            before = render(thread.view, thread.entries, thread.segments).render_hash
            view = thread.view
            proposal = await thread.compact(BadSummariser(None, seed * 2 + round_number))
            if not isinstance(proposal, Proposal):
                assert render(view, thread.entries, thread.segments).render_hash == before
                break
            recount_proposal(thread, proposal)
            committed += 1
            last = entries[-1].seq
            thread.entries = [*thread.entries, *talk(2, seed, start=last + 1)]
    return committed


def recount_proposal(thread: Thread, proposal: Proposal) -> None:
    """Recount against the view as it was proposed."""
    segment = proposal.segment
    gone = set(segment.covered) if segment else {source.seq for row in proposal.ledger.rows for source in row.sources}
    covered = [entry for entry in thread.entries if entry.seq in gone and (segment or entry.role == "tool")]
    texts = [
        text
        for entry in current_entries(proposal.view, thread.entries)
        if not entry.erased
        for _, text in entry.texts()
    ]
    for segment_id in proposal.view.segment_ids():
        body = thread.segments[segment_id].text
        texts.append(passage_of(segment_id, body.split("\nNot in this summary:")[0]).text)
    recount(proposal.ledger, covered, texts)
    verify_rows(proposal.ledger.rows, proposal.ledger.previous_root, proposal.ledger.root)


async def test_fuzzed_accounts_balance() -> None:
    """The sum of the statuses is the number of units, by class, and a second counter agrees (G1)."""
    assert await balance_fuzzed(range(SOME)) > SOME // 2


@pytest.mark.soak
async def test_many_fuzzed_accounts_balance() -> None:
    """The same for 10,000 compactions."""
    assert await balance_fuzzed(range(MANY)) >= MANY


@pytest.mark.parametrize("fault", sorted(FAULTS))
async def test_no_fault_of_a_model_loses_what_binds(fault: str) -> None:
    """Whatever the model says, the view is the old one or carries every planted sentence, and the account balances."""
    thread = Thread(talk(30, 7, planted=PLANTED))
    proposal = await thread.compact(BadSummariser(fault))

    assert isinstance(proposal, Proposal)
    recount_proposal(thread, proposal)
    shown = view_text(thread)
    assert [sentence for sentence in PLANTED if sentence not in shown] == []


async def test_nothing_that_binds_is_lost_in_ten_rounds() -> None:
    """A summariser that drops everything, ten times over: all is still there, depth and size are bounded (G10, G11)."""
    thread = Thread(talk(30, 3, planted=PLANTED))
    sizes = []
    for round_number in range(10):
        proposal = await thread.compact(BadSummariser("empty sections"))
        assert isinstance(proposal, Proposal), round_number
        recount_proposal(thread, proposal)
        shown = view_text(thread)
        assert [sentence for sentence in PLANTED if sentence not in shown] == [], round_number
        sizes.append(sum(thread.segments[each].tokens for each in thread.view.segment_ids()))
        thread.entries = [*thread.entries, *talk(8, 50 + round_number, start=thread.entries[-1].seq + 1)]

    assert max(thread.segments[each].rank for each in thread.segments) <= 3
    assert len(thread.view.segment_ids()) <= 4
    assert sizes[-1] <= 2 * max(sizes[:5])


async def test_survival_is_reported_for_each_unit() -> None:
    """A unit says which compactions of its range it survived, and which one lost it."""
    thread = Thread([*talk(6, 1, planted=PLANTED[:2]), human(100, "the code is 4711-ZZ"), ai(101, "noted")])
    for start in (200, 300, 400):
        thread.entries = [*thread.entries, *talk(4, start, start=start)]
        assert isinstance(await thread.compact(), Proposal)
    rule = [row for row in thread.ledgers["c2"].rows if row.text == PLANTED[0]]
    assert [row.survived for row in rule] == [("c1", "c2")]
    lost = [row for row in thread.ledgers["c2"].rows if row.lost_at == "c1"]
    assert lost


async def test_counts_that_the_model_sees_come_from_the_ledger() -> None:
    """Whatever a summary claims of itself, the frame says what the account says."""
    thread = Thread(talk(20, 2, planted=PLANTED[:3]))
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    assert proposal.segment is not None
    gone = [row for row in proposal.ledger.rows if row.status is Status.DROPPED]
    assert UnitKind.MESSAGE in {row.unit for row in gone}
    summary = next(
        part for part in render(thread.view, thread.entries, thread.segments).parts if part.kind is PartRole.SUMMARY
    )
    assert f' dropped="{len(gone)}"' in str(summary.content)
    assert f' critical_dropped="{sum(row.critical for row in gone)}"' in str(summary.content)


@pytest.mark.parametrize(
    ("said", "summarised"),
    [
        ("The budget for the fair is $47,500.", "The budget for the fair is $45,700."),
        ("The contract ends on 2026-12-04 in Berlin.", "The contract ends on 2026-12-14 in Berlin."),
        ("Send the report to anna@example.org on Monday.", "Send the report to anne@example.org on Monday."),
        ("The discount for partners is 15% this year.", "The discount for partners is 50% this year."),
        ("Ticket OPS-2211 blocks the release train.", "Ticket OPS-2212 blocks the release train."),
        ("The keys are in /srv/keys/main.pem on the host.", "The keys are in /srv/keys/old.pem on the host."),
    ],
)
async def test_an_altered_value_is_found_and_undone(said: str, summarised: str) -> None:
    """A wrong value is introduced, its line is taken out, and the true sentence stands among the kept facts (G14)."""
    thread = Thread([*talk(4, 9), human(50, said), ai(51, "Good."), *talk(4, 10, start=60)])

    class Liar(BadSummariser):
        async def summarise(self, prompt):  # type: ignore[no-untyped-def]
            reply = await super().summarise(prompt)
            return msgspec.structs.replace(reply, text=reply.text.replace(said, summarised))

    proposal = await thread.compact(Liar("shuffled", 4))
    assert isinstance(proposal, Proposal)
    assert said in view_text(thread)
    assert summarised not in view_text(thread)


def test_an_introduced_value_is_a_row_of_its_own() -> None:
    """It has a place in the summary and no source, and counts apart."""
    from threadmark.compaction.input.analysis import Analyses
    from threadmark.compaction.ledger import Account, Shown, close, judge

    entries = [human(1, "The budget for the fair is $47,500."), human(2, "Never call the customer directly.")]
    account = Account(
        compaction_id="c",
        covered=entries,
        others=[],
        passages=[
            passage_of(
                "s", "Facts:\n- [1] The budget for the fair is $45,700.\n- [2] Always call the customer directly."
            )
        ],
        new_segments={"s"},
        shown={entry.position: Shown.FULL for entry in entries},
    )
    analyses = Analyses()
    rows = close(account, judge(account, analyses), b"x" * 32, GENESIS).rows
    status = {row.text: row.status for row in rows}
    assert status["$45,700"] is Status.INTRODUCED
    assert status["$47,500"] is Status.ALTERED
    flipped = [row for row in rows if row.flipped]
    assert [row.text for row in flipped] == ["Never call the customer directly."]
    assert next(row for row in rows if row.text == "$47,500").altered_to == "$45,700"


async def test_totals_are_the_sums_of_the_statuses() -> None:
    """By unit: the total is the number of units of the range, and inventions are no part of it."""
    thread = Thread(talk(20, 2, planted=PLANTED[:3]), Policy(keep_last_turns=1, min_gain=0.0, introduced_share_max=1.0))
    proposal = await thread.compact(BadSummariser("invented"))
    assert isinstance(proposal, Proposal)
    totals = totals_of(proposal.ledger.rows)
    assert set(totals) == {"message", "part", "clause", "atom"}
    for unit, counts in totals.items():
        rows = [row for row in proposal.ledger.rows if row.unit == unit and row.status is not Status.INTRODUCED]
        assert counts["total"] == len(rows)
        assert sum(count for status, count in counts.items() if status not in ("total", "introduced")) == len(rows)


async def test_reasons_say_why_a_thing_is_gone() -> None:
    """Masked outputs, omissions, and values that a later one replaced have different reasons."""
    entries = [
        human(1, "hello there"),
        human(2, "x"),
        ai(3, "The price of the new machine is $900 now."),
        ai(4, "", "c"),
        tool(5, "host db-1.example.com " * 60, "c"),
        ai(6, "The price of the new machine is $950 now."),
        human(7, "The price of the new machine is $950, I agree."),
        *talk(2, 1, start=8),
    ]
    thread = Thread(entries, Policy(keep_last_turns=2, min_gain=0.0, summary_tokens=0))
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    reasons = {row.text: row.reason for row in proposal.ledger.rows if row.unit is UnitKind.ATOM}
    assert reasons["$900"] is Reason.SUPERSEDED
    assert reasons["db-1.example.com"] is Reason.SUMMARISER_OMITTED

    masking = Thread(entries, Policy(keep_last_turns=2, min_gain=0.0, target_tokens=300))
    masked = await masking.compact()
    assert isinstance(masked, Proposal)
    assert masked.strategy == "mask"
    assert {row.reason for row in masked.ledger.rows if row.text == "db-1.example.com"} == {Reason.TOOL_OUTPUT_MASKED}
    recount_proposal(masking, masked)


async def test_what_finds_no_room_is_pointed_at() -> None:
    """Over the budget, a critical thing is dropped with that reason, counted in the frame, and its entry is named."""
    thread = Thread(
        talk(20, 5, planted=PLANTED), Policy(keep_last_turns=2, min_gain=0.0, summary_tokens=0, appendix_tokens=60)
    )
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    assert proposal.segment is not None
    missed = [row for row in proposal.ledger.rows if row.reason is Reason.OVER_BUDGET or row.status is Status.PROMOTED]
    assert missed
    assert {row.critical for row in missed if row.reason is Reason.OVER_BUDGET} <= {True}
    assert proposal.promotions


async def test_an_entry_that_was_erased_before_is_accounted_as_erased() -> None:
    """It has no words left; its message is a unit with that status."""
    entries = talk(8, 3)
    entries[3] = msgspec.structs.replace(entries[3], erased=True, parts=(), calls=())
    thread = Thread(entries)
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    recount_proposal(thread, proposal)
    assert [row.status for row in proposal.ledger.rows if row.sources[:1] and row.sources[0].seq == entries[3].seq] == [
        Status.ERASED
    ]


def view_text(thread: Thread) -> str:
    """All that the model is sent."""
    parts = render(thread.view, thread.entries, thread.segments).parts
    return "\n".join(str(part.content) for part in parts)


def test_a_first_view_shows_everything() -> None:
    """Before any compaction the view is the thread."""
    entries = talk(3, 1)
    assert len(render(first_view("v"), entries, {}).parts) == len(entries)
