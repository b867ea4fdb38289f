"""What the model sees of a thread: the view that the thread has, compacted first where the request would be too large.

Between two compactions what is sent only ever grows at its end, so a provider's prompt cache holds.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from threadmark.compaction import (
    WHOLE_VIEW,
    Compaction,
    CompactionService,
    Loaded,
    Order,
    Plan,
    Rendered,
    Trigger,
    act_of,
    change_to,
    erased_in,
    read_current_view,
    read_loaded,
    render,
    view_messages,
)
from threadmark.state import Claim, Database, Entry, Message, NotFound, SeenView
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.compaction_policy import CompactionPolicy, version_of
from threadmark.workers.tasks.compaction_tasks import Compactor, resolved_policy
from threadmark.workers.turn.action import CallModel
from threadmark.workers.turn.memory_recall import instructions_of, recalled_block
from threadmark.workers.turn.turn_journal import TurnJournal

__all__ = ["PromptView", "RenderedPrompt"]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The messages of a request, and the view that they were rendered from; None for the transcript as it is."""

    messages: tuple[Message, ...]
    view: SeenView | None = None


class PromptView:
    """One turn's view of its thread. Only the turn moves the view while it holds the thread."""

    def __init__(self, claim: Claim, agent: ChatAgent, database: Database, compactor: Compactor | None) -> None:
        self._claim, self._agent = claim, agent
        self._database, self._compactor = database, compactor
        self._is_plain = compactor is None
        self.prompt = RenderedPrompt(())

    def refresh(self, journal: TurnJournal) -> bool:
        """Whether the next request shows the transcript as it is, and nothing has to be looked up: `seen` is that."""
        self.prompt = RenderedPrompt(tuple(journal.state.messages))
        return self._is_plain

    async def load(self, journal: TurnJournal, action: CallModel) -> Sequence[Entry]:
        """Find what the next request shows, for `seen`. What was noted is on disk.

        To be recorded is at most that the thread has another view than the journal says: one that this turn made, that
        was made while the run was waiting, or that fits no longer.
        """
        if self.refresh(journal) or self._compactor is None:
            return ()
        service = self._compactor.service
        if self._agent.compaction is None and await self._database.read(self._is_whole):
            self._is_plain = True
            return ()
        loaded = await self._load(service, journal)
        rendered = render(loaded.view.view, loaded.entries, loaded.segments)
        if self._agent.compaction is not None:
            done = await self._compact(self._compactor, self._agent.compaction, journal, action, loaded, rendered)
            if done is not None:
                loaded = await self._load(service, journal)
                rendered = render(loaded.view.view, loaded.entries, loaded.segments)
        view = loaded.view.view
        if view.view_id != WHOLE_VIEW or any(entry.erased for entry in loaded.entries):
            seen = SeenView(view_id=view.view_id, version=view.version, render_hash=rendered.render_hash)
            self.prompt = RenderedPrompt(tuple(view_messages(rendered)), seen)
        return await self._news(service, journal, loaded)

    async def _news(self, service: CompactionService, journal: TurnJournal, loaded: Loaded) -> Sequence[Entry]:
        kept = loaded.view
        if kept.view.view_id == (journal.state.view_id or WHOLE_VIEW):
            return ()
        if kept.view.view_id != loaded.current_view.view_id:
            return (change_to(kept, "fell_back"),)
        compaction_id = kept.view.compaction_id
        if compaction_id is None:
            return (change_to(kept, act_of(kept)),)
        done = await service.compactions.get(self._claim.thread.tenant_id, compaction_id)
        return (change_to(kept, act_of(kept), done),)

    def _is_whole(self, connection: Connection) -> bool:
        number = self._claim.thread.number
        return read_current_view(connection, number).view_id == WHOLE_VIEW and not erased_in(connection, number)

    async def _load(self, service: CompactionService, journal: TurnJournal) -> Loaded:
        thread = replace(self._claim.thread, head_seq=journal.state.seq)
        count = service.compactions.count_message
        return await self._database.read(lambda connection: read_loaded(connection, thread, journal.state, count))

    async def _compact(
        self,
        compactor: Compactor,
        policy: CompactionPolicy,
        journal: TurnJournal,
        action: CallModel,
        loaded: Loaded,
        rendered: Rendered,
    ) -> Compaction | None:
        """Compact the thread if the request would be too large and compacting can help; returns the outcome."""
        service = compactor.service
        base = self._base_tokens(service, journal)
        if base + rendered.tokens <= policy.request_tokens_max:
            return None
        try:
            chosen = policy.aimed(await resolved_policy(policy, self._database, self._claim.run.tenant_id))
        except NotFound as error:
            await self._unnamed(service, str(policy.policy), str(error))
            return None
        execution = journal.state.execution
        occasion = f"tokens/{execution.execution_id if execution else self._claim.run.run_id}/{action.step_key}"
        order = Order(
            key=occasion + version_of(chosen),
            policy=chosen,
            trigger=Trigger.TOKENS,
            summariser=policy.summariser,
            requested_by=f"agent {self._agent.name}",
            base_tokens=base,
        )
        if not isinstance(await service.compactions.plan(loaded, order), Plan):
            return None  # the floor alone is too large, or compacting did not help: the model's server decides
        thread = self._claim.thread
        ordered, _ = await service.compactions.begin(thread.tenant_id, thread.thread_id, order)
        return await service.compactions.perform(
            ordered.compaction_id,
            holder=f"{self._claim.run.run_id}/{journal.fence}",
            worker_id=thread.owner,
            summariser=compactor.summariser(policy.summariser),
            price=compactor.price,
            fence=journal.fence,
        )

    async def _unnamed(self, service: CompactionService, name: str, why: str) -> None:
        """The tenant keeps no such policy. The run goes on with what it has, and the thread's compactions say why."""
        run = self._claim.run
        order = Order(
            key=f"unnamed/{run.run_id}",
            trigger=Trigger.TOKENS,
            requested_by=f"agent {self._agent.name}",
        )
        await service.compactions.give_up(
            run.tenant_id, run.thread_id, order, "policy_unknown", f"the agent's policy {name!r}: {why}"
        )

    def _base_tokens(self, service: CompactionService, journal: TurnJournal) -> int:
        texts = [instructions_of(self._agent), recalled_block(journal.state) or ""]
        texts.extend(json.dumps(each, ensure_ascii=False) for each in self._agent.definitions)
        return sum(service.compactions.count(text) for text in texts if text)
