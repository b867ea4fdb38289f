"""`threadmark memory merged` and `memory split`: what was merged while names were compared folded, and parting it."""

import argparse
import asyncio
import json
import shlex

from threadmark.app.commands.common import open_memory_database, settings_of
from threadmark.memory import Chain, Change, Scope, ScopeRefused, Trust, merged_chains, split_chain
from threadmark.user_error import UserError
from threadmark.workers.wiring import now_utc

__all__ = ["NotLabels", "run_merged", "run_split"]


class NotLabels(UserError, ValueError):
    """The given value is not a JSON list of labels; nothing was changed."""

    def __init__(self, given: str, why: str) -> None:
        super().__init__(f"--namespace {given} {why}; give a JSON list of labels, as `memory merged` prints it")


def run_merged(arguments: argparse.Namespace) -> int:
    """Print the chains of versions that have more than one name; returns 1 if there are any. Raises MigrationGap."""
    return asyncio.run(_merged(arguments))


async def _merged(arguments: argparse.Namespace) -> int:
    async with open_memory_database(settings_of(arguments)) as database:
        found = await merged_chains(database, arguments.tenant)
    for chain in found:
        _tell(chain)
    print(f"{len(found)} chains of versions have more than one name")
    return int(bool(found))


def run_split(arguments: argparse.Namespace) -> int:
    """Give each name of a chain the timeline of its own statements, in one transaction; repeating it changes nothing.

    Raises MigrationGap, NotLabels.
    """
    return asyncio.run(_split(arguments))


async def _split(arguments: argparse.Namespace) -> int:
    scope = _scope(arguments.tenant, arguments.namespace)
    change = Change(by="threadmark memory split", now=now_utc(), trust=Trust.OPERATOR)
    names = (arguments.subject, arguments.attribute)
    async with open_memory_database(settings_of(arguments)) as database:
        parted = await split_chain(database, scope, *names, change=change, dry_run=arguments.dry_run)
    for name in parted:
        counted = f"{name.ended} versions believed no longer, {name.begun} believed from now on"
        print(f"{_shown(name.subject)} {_shown(name.attribute)}: {counted}")
    if not parted:
        print("nothing is merged there")
    elif arguments.dry_run:
        print("nothing was changed: this was a dry run")
    return 0


def _scope(tenant_id: str, given: str) -> Scope:
    try:
        return Scope(tenant_id=tenant_id, namespace=json.loads(given))
    except ScopeRefused as error:
        raise NotLabels(given, error.why) from error
    except ValueError as error:
        raise NotLabels(given, "is not JSON") from error


def _tell(chain: Chain) -> None:
    print(f"tenant {chain.tenant_id}, namespace {_shown(list(chain.namespace))}, {chain.subject}.{chain.attribute}:")
    for name in chain.names:
        counted = f"{name.version_count} versions, {name.held_count} believed"
        print(f"  {_shown(name.subject)} {_shown(name.attribute)}: {counted}")
    named = {"tenant": chain.tenant_id, "namespace": _shown(list(chain.namespace))}
    named |= {"subject": chain.subject, "attribute": chain.attribute}
    given = " ".join(f"--{name} {shlex.quote(value)}" for name, value in named.items())
    print(f"  threadmark memory split {given}")


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
