"""The daily sweep of a worker: ledgers older than the setting lose their words, and nothing else changes."""

from datetime import timedelta

from tests.support.api import Api
from tests.support.compacting import compacted, long_thread, receipt
from threadmark.workers.fleet.housekeeping import tidy


async def test_the_sweep_takes_the_words_of_old_ledgers(api: Api, admin: str) -> None:
    """Not before their time, and never without the setting; what is shown then still verifies."""
    made = await compacted(api, admin, await long_thread(api, admin))
    path = f"/compactions/{made['compaction_id']}"
    wired = api.resources.wired

    async def sweep(ledger_words_kept: timedelta | None) -> None:
        service = wired.compactor.service
        await tidy(wired.now_us(), database=wired.database, compaction=service, ledger_words_kept=ledger_words_kept)

    words = await receipt(api, admin, f"{path}/drops", status="any", limit=200)

    await sweep(timedelta(days=2))
    assert await receipt(api, admin, f"{path}/drops", status="any", limit=200) == words
    api.hands.pass_s(3 * 86_400)
    await sweep(None)
    assert await receipt(api, admin, f"{path}/drops", status="any", limit=200) == words
    await sweep(timedelta(days=2))

    hashed = await receipt(api, admin, f"{path}/drops", status="any", limit=200)
    assert {each["text"] for each in hashed["items"]} == {""}
    assert [each["status"] for each in hashed["items"]] == [each["status"] for each in words["items"]]
    assert await receipt(api, admin, path) == made
    assert (await receipt(api, admin, f"{path}/verify"))["holds"] is True
