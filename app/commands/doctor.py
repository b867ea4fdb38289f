"""`threadmark doctor`: would a start succeed? Reads only, and says how to fix what it finds."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from threadmark import state
from threadmark.app.access.first_key import FIRST_KEY_FILE, token_in
from threadmark.app.access.key_store import find_key, has_operator
from threadmark.app.commands import doctor_parts
from threadmark.app.commands.common import environment_of
from threadmark.app.commands.doctor_parts import OTHERS, Finding, database_error, is_there
from threadmark.app.schema import gaps
from threadmark.app.server import CannotListen, listen
from threadmark.workers.agents.agent import load_registry
from threadmark.workers.agents.definition_errors import DefinitionRefused
from threadmark.workers.settings.settings import VARIABLES, Settings, SettingsRefused

__all__ = ["run_doctor"]


def run_doctor(arguments: argparse.Namespace) -> int:
    """Print what is found; 1 if a start would fail."""
    environment = environment_of(arguments)
    is_well = True
    for finding in _examine(environment):
        is_well &= finding.is_well
        print(f"{'ok' if finding.is_well else '!!'}  {finding.what}", flush=True)
    return 0 if is_well else 1


def _examine(environment: Mapping[str, str]) -> Iterator[Finding]:
    yield from _unknown_variables(environment)
    try:
        settings = Settings.from_environment(environment)
    except SettingsRefused as error:
        yield Finding(False, str(error))
        return
    yield Finding(True, "the settings are well")
    looks: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
        doctor_parts.data_dir,
        doctor_parts.disk,
        _key_file,
        _database,
        doctor_parts.memory_database,
        doctor_parts.redis,
        doctor_parts.index,
        doctor_parts.model,
        _agents,
        _port,
    )
    for look in looks:
        yield from look(settings)


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    known = [variable.name for variable in VARIABLES]
    for name in sorted(environment):
        # Reported and not refused: container platforms set variables named after services (THREADMARK_PORT_8123_TCP).
        if name.startswith("THREADMARK_") and name not in known:
            near = get_close_matches(name, known, 1)
            yield Finding(True, f"{name} is set and means nothing" + (f"; is it {near[0]}?" if near else ""))


def _key_file(settings: Settings) -> Iterator[Finding]:
    path = settings.data_dir / FIRST_KEY_FILE
    if is_there(path) and path.stat().st_mode & OTHERS:
        yield Finding(False, f"the key in {path} can be read by other users: chmod 600 {path}")


def _database(settings: Settings) -> Iterator[Finding]:
    url = make_url(settings.state_database_url)
    if url.get_backend_name() == "sqlite" and not is_there(Path(url.database or "")):
        yield Finding(True, "the state database will be made by the first start")
        return
    try:
        _sessions(settings)
        if found := gaps(settings):
            yield Finding(False, f"the state database is behind: {'; '.join(found)}: run `threadmark migrate`")
        else:
            yield Finding(True, "the state database is at the revision this version needs")
            yield from _operator(settings)
    except state.SessionsNotKept as error:
        yield Finding(False, str(error))
    except SQLAlchemyError as error:
        yield Finding(False, database_error("THREADMARK_STATE_DATABASE_URL", error))


def _sessions(settings: Settings) -> None:
    engine = state.open_engine(settings.state_database_url, write=False, limits=settings.limits)
    try:
        state.refuse_transaction_pooling(engine)
    finally:
        engine.dispose()


def _operator(settings: Settings) -> Iterator[Finding]:
    engine = state.open_engine(settings.state_database_url, write=False, limits=settings.limits)
    try:
        with engine.connect() as connection:
            is_there = has_operator(connection, datetime.now(UTC))
            token = token_in(settings.data_dir / FIRST_KEY_FILE)
            is_stray = token is not None and find_key(connection, token.key_id) is None
    finally:
        engine.dispose()
    if is_stray:
        yield Finding(False, f"the key in {settings.data_dir / FIRST_KEY_FILE} opens nothing: remove the file")
    if not is_there:
        yield Finding(False, "no key with the scope operator lives: threadmark keys create --label … --scope operator")


def _agents(settings: Settings) -> Iterator[Finding]:
    try:
        registry = load_registry(settings.agents, search=Path.cwd())
    except DefinitionRefused as error:
        yield Finding(False, f"THREADMARK_AGENTS: {error}")
        return
    names = [agent.name for agent in registry]
    yield Finding(True, f"agents: {', '.join(names)}; model: {settings.model}")
    yield from doctor_parts.parked_calls(settings, registry)


def _port(settings: Settings) -> Iterator[Finding]:
    try:
        listen(settings.host, settings.port).close()
    except CannotListen as error:
        yield Finding(False, str(error))
        return
    yield Finding(True, f"port {settings.port} of {settings.host} is free")
