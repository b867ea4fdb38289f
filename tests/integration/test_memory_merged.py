"""What was merged while names were compared folded is named, and parted by hand."""

import shlex
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.folded_names import believed, bring_in, old_url
from tests.support.memory_house import CHANGE, HOME, NOW, draft, house, remembered
from threadmark.app.cli import main
from threadmark.memory import (
    CannotUndo,
    Database,
    MemoryIndex,
    Recollection,
    Role,
    Scope,
    merged_chains,
    split_chain,
)

WAYS = ["migrated", "imported"]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=WAYS)
async def memory(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Recollection]:
    """The memory of an older version, brought here by either way."""
    async with bring_in(url, request.param) as memory:
        yield memory


@pytest.fixture
async def database(memory: Recollection, url: str) -> AsyncIterator[Database]:
    """The same database, as a command opens it."""
    opened = Database.open(url)
    yield opened
    await opened.close()


async def test_the_report_names_every_chain_of_more_than_one_name(database: Database) -> None:
    """Where it is, under which folded name, and how many versions each name has."""
    found = await merged_chains(database)

    assert {(each.tenant_id, each.namespace, each.subject, each.attribute) for each in found} == {
        ("acme", HOME.namespace, "pena", "city"),
        ("acme", HOME.namespace, "ana", "born"),
    }
    names = {(name.subject, name.attribute): name for chain in found for name in chain.names}
    assert names.keys() == {("Pena", "city"), ("Pe\u00f1a", "city"), ("Ana", "Born"), ("ana", "born")}
    assert (names["Pena", "city"].version_count, names["Pena", "city"].held_count) == (3, 2)
    assert await merged_chains(database, "another tenant") == []


async def test_names_that_were_never_merged_are_not_in_the_report(tmp_path: Path) -> None:
    """Similar names that were distinct from the beginning, each with a history of its own."""
    url = f"sqlite:///{tmp_path}/memory.db"
    async with house(url, MemoryIndex()) as memory:
        for place in ("Oslo", "Rome"):
            for name in ("Pena", "Pe\u00f1a"):
                await remembered(memory, draft(f"{name} {place}", subject=name, attribute="city", value=place))
        database = Database.open(url)
        found = await merged_chains(database)
        await database.close()

    assert found == []


def test_the_command_prints_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 while something is merged; as JSON texts, so that every character can be identified."""
    url = old_url(tmp_path)
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("THREADMARK_MEMORY_DATABASE_URL", url)
    assert main(["migrate"]) == 0
    capsys.readouterr()

    code = main(["memory", "merged"])
    printed = capsys.readouterr().out
    elsewhere = main(["memory", "merged", "--tenant", "other"])

    assert (code, elsewhere) == (1, 0)
    assert 'tenant acme, namespace ["users", "7"], pena.city:\n' in printed
    assert '  "Pe\u00f1a" "city": ' in printed
    assert printed.endswith("2 chains of versions have more than one name\n")


def test_the_command_parts_what_the_report_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the lines that the report prints; what is no namespace is refused in a sentence."""
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("THREADMARK_MEMORY_DATABASE_URL", old_url(tmp_path))
    main(["migrate"])
    capsys.readouterr()
    main(["memory", "merged"])
    printed = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if "memory split" in line]

    tried = [main([*words[1:], "--dry-run"]) for words in printed]
    dry = capsys.readouterr().out
    parted = [main(words[1:]) for words in printed]
    output = capsys.readouterr().out
    again = main(printed[0][1:])
    refused = main(["memory", "split", "--namespace", "users", "--subject", "a", "--attribute", "b"])

    assert (tried, parted, again, refused) == ([0, 0], [0, 0], 0, 2)
    assert (dry.count("dry run"), output.count("dry run")) == (2, 0)
    assert '"Pena" "city": 1 versions believed no longer, 1 believed from now on\n' in output
    assert "is not JSON" in capsys.readouterr().err
    assert main(["memory", "merged"]) == 0


async def test_a_split_gives_each_name_the_timeline_of_its_own_statements(
    memory: Recollection, database: Database
) -> None:
    """As if the other had never been mentioned: what one ended in the other is believed again, and nothing else is."""
    parted = await split_chain(database, HOME, "Pena", "city", change=CHANGE)

    assert {each.subject for each in parted} == {"Pena", "Pe\u00f1a"}
    assert await believed(memory, "Pena") == [("Oslo", 30, 10), ("Rome", 10, None)]
    assert await believed(memory, "Pe\u00f1a") == [("Bergen", 20, None)]
    assert [each.subject for each in await merged_chains(database)] == ["ana"]


async def test_a_split_keeps_sources_and_what_was_believed_before(memory: Recollection, database: Database) -> None:
    """The moment that a statement rests on, a note of who parted it, and every version that there was."""
    before = {each.assertion_id: each for each in await memory.timeline("Pe\u00f1a", "city", scope=HOME)}

    await split_chain(database, HOME, "pena", "city", change=CHANGE)

    (held,) = [each for each in await memory.timeline("Pe\u00f1a", "city", scope=HOME) if each.is_held]
    roles = [(each.role, each.origin.message_ref, each.asserted_by) for each in held.provenance]
    assert roles == [(Role.CORRECTS, "message-2", "user"), (Role.RESTORES, None, CHANGE.by)]
    after = {each.assertion_id: each for each in await memory.timeline("Pe\u00f1a", "city", scope=HOME)}
    assert {key: after[key].known_from for key in before} == {key: each.known_from for key, each in before.items()}
    history = await memory.history(held.assertion_id, scope=HOME)
    assert {each.subject for each in history} == {"Pe\u00f1a"}
    then = await memory.held_at("Pe\u00f1a", "city", scope=HOME, valid_at=NOW, known_at=NOW - timedelta(days=1))
    assert then == []


async def test_a_split_that_is_repeated_changes_nothing(memory: Recollection, database: Database) -> None:
    """By any of the names; also what one name superseded of the other is undone no more."""
    await split_chain(database, HOME, "Pena", "city", change=CHANGE)
    lines = [*await memory.export(scope=HOME)]

    again = [await split_chain(database, HOME, name, "City", change=CHANGE) for name in ("Pena", "pena", "Pe\u00f1a")]
    rome = next(each for each in await memory.timeline("Pena", "city", scope=HOME) if each.value == "Rome")
    with pytest.raises(CannotUndo, match="superseded nothing"):
        await memory.undo(rome.assertion_id, scope=HOME, change=CHANGE)

    assert again == [[], [], []]
    assert [*await memory.export(scope=HOME)] == lines


async def test_a_dry_run_says_what_a_split_would_do_and_changes_nothing(
    memory: Recollection, database: Database
) -> None:
    """Counted by name; elsewhere there is nothing to part."""
    lines = [*await memory.export(scope=HOME)]
    elsewhere = Scope(tenant_id="acme", namespace=("nowhere",))

    shown = await split_chain(database, HOME, "Ana", "Born", change=CHANGE, dry_run=True)
    none = await split_chain(database, elsewhere, "Ana", "Born", change=CHANGE)

    assert [*await memory.export(scope=HOME)] == lines
    assert none == []
    assert list(await split_chain(database, HOME, "ana", "born", change=CHANGE)) == list(shown)
    assert {(each.subject, each.ended, each.begun) for each in shown} == {("Ana", 1, 1), ("ana", 0, 0)}
    assert await believed(memory, "Ana", "Born") == [("Porto", 6, None)]


async def test_what_was_parted_goes_out_and_in_as_parted(
    memory: Recollection, database: Database, tmp_path: Path
) -> None:
    """An export says that it was parted: it is not in the report elsewhere."""
    await split_chain(database, HOME, "Pena", "city", change=CHANGE)

    async with house(f"sqlite:///{tmp_path}/elsewhere.db", MemoryIndex()) as elsewhere:
        await elsewhere.import_([*await memory.export(scope=HOME)], scope=HOME)
        other = Database.open(f"sqlite:///{tmp_path}/elsewhere.db")
        found = await merged_chains(other)
        await other.close()
        assert await believed(elsewhere, "Pe\u00f1a") == [("Bergen", 20, None)]

    assert [each.subject for each in found] == ["ana"]
