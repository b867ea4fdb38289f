"""The views of a thread: shown, compared, and moved back and forth. Nothing is ever copied back."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.drops.restore import restore_all, restore_drops, restore_range
from threadmark.compaction.errors import NothingToUndo, ViewBroken
from threadmark.compaction.ledger import Source
from threadmark.compaction.loading.thread_loader import Loaded, MessageCounter, load_by_number, load_thread
from threadmark.compaction.model.records import Cause, Compaction, KeptView
from threadmark.compaction.run.commit import ViewMove, move_view
from threadmark.compaction.store import ledger_rows, orders, recalls, views
from threadmark.compaction.view import Rendered, Segment, View, ViewDiff, check_view, diff_views, render
from threadmark.compaction.view.items import live_seqs
from threadmark.state import Database, FoldCache, NotFound, ViewAct, get_thread, new_id, to_us

__all__ = ["ShownView", "Views"]


class ShownView(msgspec.Struct, frozen=True, kw_only=True):
    """A view, and what it is rendered to over the thread as it is now. `is_current`: the model is sent this one."""

    kept: KeptView
    rendered: Rendered
    is_current: bool


class Views:
    """The verbs over views.

    The moves raise NotFound, RunInProgress while a run holds the thread, and ViewMoved when another caller was faster:
    nothing was written then.
    """

    def __init__(
        self,
        database: Database,
        count_message: MessageCounter,
        now: Callable[[], datetime],
        fold_cache: FoldCache | None = None,
    ) -> None:
        self._database, self._count_message, self._now, self._fold_cache = database, count_message, now, fold_cache

    async def show(self, tenant_id: str, thread_id: str, view_id: str | None = None) -> ShownView:
        """The thread's view, or an earlier one of it, rendered. Raises NotFound, and ViewBroken for a view that does
        not fit the thread's history any more.
        """
        loaded, asked, segments = await self._read(tenant_id, thread_id, view_id)
        return ShownView(
            kept=asked,
            rendered=render(asked.view, loaded.entries, segments),
            is_current=asked.view.view_id == loaded.view.view.view_id,
        )

    async def of_thread(
        self, tenant_id: str, thread_id: str, count_max: int = 50, *, below: int | None = None
    ) -> list[KeptView]:
        """The thread's views, newest first, those below a version; the last of all, `whole`, is not listed.

        Raises NotFound.
        """

        def query(connection: Connection) -> list[KeptView]:
            thread = get_thread(connection, tenant_id, thread_id)
            return views.list_views(connection, thread.number, count_max, below=below)

        return await self._database.read(query)

    async def diff(self, tenant_id: str, thread_id: str, before_id: str, after_id: str) -> ViewDiff:
        """What the second view has that the first has not, and the other way round. Raises NotFound."""
        loaded, before, _ = await self._read(tenant_id, thread_id, before_id)
        _, after, _ = await self._read(tenant_id, thread_id, after_id)
        return diff_views(before.view, after.view, loaded.entries)

    async def restore(self, tenant_id: str, compaction_id: str, *, requested_by: str = "") -> KeptView:
        """Show again all that the compaction took away, and what later ones did: the view before it.

        Raises NotFound, also for a compaction that is in effect nowhere.
        """
        done = await self._compaction(tenant_id, compaction_id)
        made = await self._kept(done.thread, done.view_id)
        loaded = await self._loaded(done)
        earlier = await self._kept(done.thread, made.view.parent_id)
        view = restore_all(loaded.view.view, earlier.view, self._new_id())
        return await self._move(loaded, view, earlier.ledgers, requested_by)

    async def restore_range(
        self, tenant_id: str, compaction_id: str, from_seq: int, to_seq: int, *, requested_by: str = ""
    ) -> KeptView:
        """Show the entries of a range as they are, whole groups of them; the summaries stay.

        Raises NotFound, and ViewBroken for a range without messages.
        """
        loaded = await self._loaded(await self._compaction(tenant_id, compaction_id))
        view = restore_range(loaded.view.view, self._new_id(), from_seq, to_seq, loaded.entries)
        return await self._move(loaded, view, loaded.view.ledgers, requested_by)

    async def restore_drops(
        self, tenant_id: str, compaction_id: str, drop_ids: Sequence[str], *, requested_by: str = ""
    ) -> KeptView:
        """Pin the spans of single drops, each at its first place. Raises NotFound for an id that is no drop of this
        compaction with a place, and ViewBroken for one whose source is erased.
        """
        done = await self._compaction(tenant_id, compaction_id)
        loaded = await self._loaded(done)
        found = await self._database.read(
            lambda connection: [ledger_rows.find_drop(connection, tenant_id, each) for each in drop_ids]
        )
        spans = []
        for drop_id, drop in zip(drop_ids, found, strict=True):
            if drop is None or drop.compaction_id != compaction_id or not drop.row.sources:
                raise NotFound("Drop", drop_id)
            spans.append(drop.row.sources[0])
        view = restore_drops(loaded.view.view, self._new_id(), spans, loaded.entries)
        now_us = to_us(self._now())

        def note(connection: Connection) -> None:
            for drop_id in drop_ids:
                key = f"{view.view_id}/{drop_id}"
                recalls.add_recall(connection, key, done.thread, drop_id, "restored", requested_by, now_us)

        return await self._move(loaded, view, loaded.view.ledgers, requested_by, "pinned", extra_writes=note)

    async def pin(self, tenant_id: str, thread_id: str, spans: Sequence[Source], *, requested_by: str = "") -> KeptView:
        """Pin spans of entries that a summary covers, word for word. A pin stays through later compactions.

        Raises NotFound, and ViewBroken for a span that is not there, or that the view shows as it is.
        """
        loaded, now, _ = await self._read(tenant_id, thread_id, None)
        shown = live_seqs(now.view, loaded.thread.head_seq)
        for span in spans:
            if span.seq in shown:
                raise ViewBroken(now.view.view_id, f"entry {span.seq} is in it as it is, and needs no pin")
        view = restore_drops(now.view, self._new_id(), spans, loaded.entries)
        return await self._move(loaded, view, now.ledgers, requested_by, "pinned")

    async def undo(self, tenant_id: str, thread_id: str, view_id: str, *, requested_by: str = "") -> KeptView:
        """Undo the restore that made this view, the thread's present one. An undo is a restore and can be undone.

        Raises NothingToUndo for any other view.
        """
        loaded, asked, _ = await self._read(tenant_id, thread_id, view_id)
        if asked.view.view_id != loaded.current_view.view_id:
            raise NothingToUndo(view_id, "the thread has another view now")
        if asked.cause is not Cause.RESTORE:
            raise NothingToUndo(view_id, "no restore made it")
        before = await self._kept(loaded.thread.number, asked.view.parent_id)
        view = restore_all(loaded.view.view, before.view, self._new_id())
        return await self._move(loaded, view, before.ledgers, requested_by, "undone")

    async def activate(self, tenant_id: str, thread_id: str, view_id: str, *, requested_by: str = "") -> KeptView:
        """Show what an earlier view showed, and all that was appended since. Raises NotFound."""
        loaded, earlier, _ = await self._read(tenant_id, thread_id, view_id)
        view = restore_all(loaded.view.view, earlier.view, self._new_id())
        return await self._move(loaded, view, earlier.ledgers, requested_by, "activated")

    async def _move(
        self,
        loaded: Loaded,
        view: View,
        ledgers: tuple[str, ...],
        requested_by: str,
        act: ViewAct = "restored",
        *,
        extra_writes: Callable[[Connection], None] | None = None,
    ) -> KeptView:
        check_view(view, loaded.entries, await self._segments(loaded.thread.number, view))
        move = ViewMove(
            loaded=loaded,
            view=view,
            cause=Cause.RESTORE,
            ledgers=ledgers,
            requested_by=requested_by,
            now=self._now(),
            act=act,
        )

        def unit(connection: Connection) -> KeptView:
            if extra_writes is not None:
                extra_writes(connection)
            return move_view(connection, move)

        return await self._database.write(unit, thread=loaded.thread.number)

    async def _read(
        self, tenant_id: str, thread_id: str, view_id: str | None
    ) -> tuple[Loaded, KeptView, dict[str, Segment]]:
        def query(connection: Connection) -> tuple[Loaded, KeptView, dict[str, Segment]]:
            loaded = load_thread(connection, tenant_id, thread_id, self._count_message, self._fold_cache)
            if view_id is None:
                return loaded, loaded.view, dict(loaded.segments)
            asked = views.find_view(connection, loaded.thread.number, view_id)
            if asked is None:
                raise NotFound("View", view_id)
            segments, _ = views.read_segments(connection, loaded.thread.number, asked.view.segment_ids())
            return loaded, asked, segments

        return await self._database.read(query)

    async def _segments(self, thread: int, view: View) -> dict[str, Segment]:
        return (
            await self._database.read(lambda connection: views.read_segments(connection, thread, view.segment_ids()))
        )[0]

    async def _compaction(self, tenant_id: str, compaction_id: str) -> Compaction:
        found = await self._database.read(
            lambda connection: orders.find_compaction(connection, compaction_id, tenant_id)
        )
        if found is None or found.view_id is None:
            raise NotFound("Committed compaction", compaction_id)
        return found

    async def _kept(self, thread: int, view_id: str | None) -> KeptView:
        found = await self._database.read(lambda connection: views.find_view(connection, thread, view_id))
        if found is None:
            raise NotFound("View", str(view_id))
        return found

    async def _loaded(self, done: Compaction) -> Loaded:
        return await self._database.read(
            lambda connection: load_by_number(connection, done.thread, self._count_message, self._fold_cache)
        )

    def _new_id(self) -> str:
        return new_id(to_us(self._now()))
