"""The policy of compaction that an agent names, as its tenant keeps it."""

from threadmark.compaction import Policy, named_policy
from threadmark.state import Database
from threadmark.workers.agents.compaction_policy import CompactionPolicy

__all__ = ["resolved_policy"]


async def resolved_policy(policy: CompactionPolicy, database: Database, tenant_id: str) -> Policy:
    """What the agent gives, or what the tenant keeps now under the name that it gives. Raises NotFound."""
    name = policy.policy
    if not isinstance(name, str):
        return name
    return await database.read(lambda connection: named_policy(connection, tenant_id, name))
