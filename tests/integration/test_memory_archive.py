"""Imports merge or are refused with their line, whole; exports keep to their namespace."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_house import HOME, NOW, city, draft, house, moment, remembered
from threadmark.memory import EdgeIndex, Recollection, Refused, Scope, SpooledLines

TENANT = Scope(tenant_id="acme", namespace=())


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Recollection]:
    """The embedded set."""
    async with house(f"sqlite:///{tmp_path}/memory.db", EdgeIndex(tmp_path / "index")) as opened:
        yield opened


async def exported(folder: Path, *drafts: Any) -> list[str]:
    """The export of another deployment, which remembers `drafts`."""
    await asyncio.to_thread(folder.mkdir)
    async with house(f"sqlite:///{folder}/memory.db", EdgeIndex(folder / "index")) as other:
        await remembered(other, *drafts)
        return list(await other.export(scope=TENANT))


def line_of(lines: list[str], kind: str) -> int:
    """The number of the first line of a kind, from 1."""
    return next(at for at, line in enumerate(lines, 1) if json.loads(line).get("kind") == kind)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (city("Rome"), city("Paris")),
        (draft("likes tea"), draft("likes tea")),
    ],
    ids=["another current version of a single-valued attribute", "the same statement"],
)
async def test_an_import_that_contradicts_a_belief_is_refused_with_its_line(
    memory: Recollection, tmp_path: Path, here: Any, there: Any
) -> None:
    """The database's own rules are met by a refusal that names the line and the memory, and nothing is kept."""
    (held,) = await remembered(memory, here)
    lines = await exported(tmp_path / "other", draft("kept as well"), there)
    at = next(at for at, line in enumerate(lines, 1) if '"kind":"assertion"' in line and "kept as well" not in line)

    with pytest.raises(Refused, match=held.assertion_id) as refused:
        await memory.import_(lines, scope=TENANT)

    assert refused.value.path == f"line {at}"
    assert [each.assertion_id for _, each in await memory.list(scope=TENANT)] == [held.assertion_id]


async def test_a_moment_that_is_known_already_is_a_further_source(memory: Recollection, tmp_path: Path) -> None:
    """A superseded version comes in beside one that rests on the same moment here."""
    lines = await exported(tmp_path / "other", city("Rome", origin=moment(1)), city("Paris", origin=moment(2), at=NOW))
    (held,) = await remembered(memory, draft("city is Rome", origin=moment(1)))
    evidence = [json.loads(line) for line in await memory.export(scope=TENANT)]
    known = next(each["row"] for each in evidence if each.get("kind") == "evidence")
    changed = []
    for line in lines:
        entry = json.loads(line)
        if entry.get("kind") == "evidence" and entry["row"]["once"]:
            entry["row"] |= {name: known[name] for name in ("origin_key", "digest", "role")}
        changed.append(json.dumps(entry))

    imported = await memory.import_(changed, scope=TENANT)

    assert imported.added["evidence"] == 2
    assert len(await memory.provenance(held.assertion_id, scope=HOME)) == 1


CELLS: list[tuple[str, str, Any]] = [
    ("assertion", "trust", "boss"),
    ("assertion", "hold", "perhaps"),
    ("assertion", "text", "no JSON"),
    ("assertion", "text", "7"),
    ("assertion", "text", '"\\ud800"'),
    ("assertion", "subject", "\ud800"),
    ("assertion", "value", "[1"),
    ("assertion", "value", str(2**70)),
    ("assertion", "valid_from", 2**63),
    ("assertion", "known_from", 2**61),
    ("assertion", "known_to", 0),
    ("assertion", "confidence", 2.0),
    ("assertion", "cardinality", "few"),
    ("evidence", "role", "denies"),
    ("evidence", "trust", "boss"),
    ("evidence", "quote", "no JSON"),
    ("evidence", "seq", -1),
    ("evidence", "once", 2),
    ("attribute", "cardinality", "few"),
]


async def test_a_cell_that_reads_would_stumble_over_is_refused_with_its_line(
    memory: Recollection, tmp_path: Path
) -> None:
    """Bad enums, texts that are no JSON, surrogates and numbers beyond the columns: nothing is kept."""
    lines = await exported(tmp_path / "other", city("Rome", origin=moment(1)))
    for kind, name, value in CELLS:
        at = line_of(lines, kind)
        entry = json.loads(lines[at - 1])
        entry["row"][name] = value
        bad = [*lines[: at - 1], json.dumps(entry), *lines[at:]]

        with pytest.raises(Refused) as refused:
            await memory.import_(bad, scope=TENANT)

        assert refused.value.path.startswith(f"line {at}"), (kind, name)
    assert await memory.list(scope=TENANT) == []


@pytest.mark.parametrize("kind", ["assertion", "evidence"])
async def test_a_row_cannot_hang_on_a_statement_of_another_tenant(
    memory: Recollection, tmp_path: Path, kind: str
) -> None:
    """A source that names another tenant's statement would appear in its provenance."""
    (held,) = await remembered(memory, draft("likes tea"))
    lines = await exported(tmp_path / "other", city("Rome", origin=moment(1)))
    at = line_of(lines, kind)
    entry = json.loads(lines[at - 1])
    entry["row"]["root_id"] = held.assertion_id
    lines[at - 1] = json.dumps(entry)

    with pytest.raises(Refused, match=f"line {at}.root_id"):
        await memory.import_(lines, scope=Scope(tenant_id="other", namespace=()))


async def test_an_export_of_a_namespace_names_its_own_attributes_only(memory: Recollection) -> None:
    """What others note about themselves is nobody's business."""
    await remembered(memory, city("Rome"))
    elsewhere = Scope(tenant_id="acme", namespace=("elsewhere",))

    lines = await memory.export(scope=elsewhere)
    own = await memory.export(scope=HOME)

    assert len(lines) == 1
    assert sum('"kind":"attribute"' in line for line in own) == 1


@pytest.mark.parametrize("body", [b"", b"\xff\n", b"{}\n"])
async def test_a_body_that_is_no_export_is_refused_with_its_line(memory: Recollection, body: bytes) -> None:
    """Empty, not UTF-8, another heading."""
    with SpooledLines() as spool:
        spool.write(body)
        with pytest.raises(Refused, match="line 1"):
            await memory.import_(spool, scope=TENANT)
