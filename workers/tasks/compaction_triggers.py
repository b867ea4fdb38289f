"""Compactions without an order: after a number of runs, and of idle threads.

A task is committed with the end of each run and holds no words; when it is due it looks whether there is work.
"""

from collections.abc import Callable, Iterator
from typing import Any

from threadmark.compaction import Live, Loaded, Order, Role, Trigger
from threadmark.state import Database, NotFound, Run, list_runs
from threadmark.state.tasks.tasks import NewTask, Task
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.compaction_policy import version_of
from threadmark.workers.agents.tools import NonRetryable
from threadmark.workers.tasks.compaction_tasks import Compactor, resolved_policy
from threadmark.workers.tasks.task_context import TaskContext

__all__ = ["COMPACT_IF_DUE", "compact_if_due", "compactions_after"]

COMPACT_IF_DUE = "compact_if_due"


def compactions_after(agent: ChatAgent, run: Run, now_us: int) -> Iterator[NewTask]:
    """What the agent's policy asks for when this run ends."""
    policy = agent.compaction
    if policy is None:
        return
    due = {Trigger.TURNS: None if policy.turns is None else 0.0, Trigger.IDLE: policy.idle_s}
    for trigger, delay_s in due.items():
        if delay_s is not None:
            yield NewTask(
                tenant_id=run.tenant_id,
                kind=COMPACT_IF_DUE,
                key=f"{trigger}/{run.run_id}",
                payload={
                    "thread_id": run.thread_id,
                    "run_id": run.run_id,
                    "assistant": run.assistant,
                    "trigger": str(trigger),
                },
                due_at_us=now_us + round(delay_s * 1_000_000),
            )


async def compact_if_due(
    task: Task,
    _: TaskContext,
    *,
    database: Database,
    registry: Registry,
    compactor: Compactor,
    on_ordered: Callable[[], None],
) -> dict[str, Any]:
    """The handler of COMPACT_IF_DUE: order a compaction, or say why none is needed. Raises NotFound for the thread.

    `on_ordered` is called after the commit that added the compaction's task.
    """
    agent = registry.find(task.payload["assistant"])
    if agent is None or agent.compaction is None:
        return {"skipped": "the agent compacts nothing any more"}
    trigger, thread_id = Trigger(task.payload["trigger"]), str(task.payload["thread_id"])
    loaded = await compactor.service.compactions.load(task.tenant_id, thread_id)
    last = await database.read(lambda connection: list_runs(connection, loaded.thread.number, limit=1))
    if not last or last[0].run_id != task.payload["run_id"]:
        return {"skipped": "a later run came"}
    if trigger is Trigger.TURNS and _turns_shown(loaded) < (agent.compaction.turns or 0):
        return {"skipped": "too few turns since the last compaction"}
    try:
        policy = await resolved_policy(agent.compaction, database, task.tenant_id)
    except NotFound as error:
        name = agent.compaction.policy
        raise NonRetryable(
            f"agent {agent.name!r} compacts by a policy {name!r}, which the tenant does not keep"
        ) from error
    order = Order(
        key=f"{trigger}/{task.payload['run_id']}{version_of(policy)}",
        policy=policy,
        trigger=trigger,
        summariser=agent.compaction.summariser,
        requested_by=f"agent {agent.name}",
    )
    ordered, _new = await compactor.order(task.tenant_id, thread_id, order)
    on_ordered()
    return {"compaction_id": ordered.compaction_id}


def _turns_shown(loaded: Loaded) -> int:
    """Messages of people that stand in the view's last, open stretch."""
    last = loaded.view.view.items[-1]
    first = last.from_seq if isinstance(last, Live) else 0
    return sum(entry.role is Role.HUMAN and entry.seq >= first for entry in loaded.entries)
