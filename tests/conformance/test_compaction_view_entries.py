"""The journal says when a thread's view changed, in the commit that changed it: over both databases."""

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.support.factories import TENANT
from threadmark.compaction import DropFilter
from threadmark.state import ModelReplied, ViewChanged

__all__ = ["compacting", "compaction_engine"]


async def view_changes(work: Compacting, thread_id: str = "thread-1") -> list[ViewChanged]:
    """The journal's entries about views, in order."""
    thread = await work.seen(thread_id)
    entries = await work.store.entries(thread.number)
    assert await work.store.journal.verify(thread) == []
    return [each.entry for each in entries if isinstance(each.entry, ViewChanged)]


async def test_every_move_of_a_view_is_an_entry(compacting: Compacting) -> None:
    """Compacted, restored, undone, pinned, activated: each with the view that it led to, who did it, and no words."""
    views = compacting.service.views
    await compacting.thread()
    done = await compacting.compact(requested_by="ann")
    restored = await views.restore(TENANT, done.compaction_id, requested_by="ben")
    undone = await views.undo(TENANT, "thread-1", restored.view.view_id)
    drop = (await compacting.service.drops.page(TENANT, done.compaction_id, DropFilter()))[0]
    pinned = await views.restore_drops(TENANT, done.compaction_id, [drop.drop_id])
    active = await views.activate(TENANT, "thread-1", "whole")
    await compacting.say()

    acts = await view_changes(compacting)

    assert acts[0] == ViewChanged(
        view_id=str(done.view_id),
        version=done.ordinal,
        act="compacted",
        by="ann",
        compaction_id=done.compaction_id,
        covers=done.covers,
    )
    assert [(each.act, each.view_id, each.by) for each in acts[1:]] == [
        ("restored", restored.view.view_id, "ben"),
        ("undone", undone.view.view_id, ""),
        ("pinned", pinned.view.view_id, ""),
        ("activated", active.view.view_id, ""),
    ]
    assert [each.version for each in acts] == sorted({each.version for each in acts})


async def test_an_entry_about_a_view_changes_no_message(compacting: Compacting) -> None:
    """The transcript, the next compaction and its account are what they would be without it."""
    await compacting.thread()
    before = (await compacting.service.compactions.load(TENANT, "thread-1")).entries
    done = await compacting.compact()
    after = await compacting.service.compactions.load(TENANT, "thread-1")

    assert after.entries == before
    assert after.view.view.view_id == done.view_id
    assert all(check.damage is None for check in await compacting.service.verify_thread(TENANT, "thread-1"))


async def test_while_a_run_is_unfinished_its_holder_journals(compacting: Compacting) -> None:
    """The entries of a run stand together, so nothing is written between them from outside."""
    await compacting.thread()
    await compacting.store.accept("and now?", thread_id="thread-1")

    done = await compacting.compact()

    assert (done.view_id is not None, await view_changes(compacting)) == (True, [])


async def test_a_copy_has_no_entries_of_a_view(compacting: Compacting) -> None:
    """It has none: everything is shown."""
    await compacting.thread()
    await compacting.compact()
    store = compacting.store
    copied = await store.copy("thread-1")
    entries = await store.entries(copied.number)

    assert not any(isinstance(each.entry, ViewChanged) for each in entries)
    assert any(isinstance(each.entry, ModelReplied) for each in entries)
    assert await store.journal.verify(copied) == []
