"""A database that cannot do what it is asked: 503 with a code of its own, `/ready` with the reason, and no restart."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from tests.support.api import Api, open_api
from tests.support.servers import PrivatePostgres
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.db import Condition

#: What the server itself sends, put into the mouth of a trigger: the way from there to the client is the real one.
SQLSTATES = {
    "53100": Condition.DISK_FULL,
    "53200": Condition.OUT_OF_MEMORY,
    "53400": Condition.OVERLOADED,
    "58030": Condition.IO_ERROR,
    "57014": Condition.QUERY_CANCELLED,
    "XX001": Condition.DAMAGED,
}
BIG = "x" * 200_000
READY_S_MAX = 30.0


@pytest.fixture
async def over_postgres(postgres_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """An API with both of its databases in one of PostgreSQL."""
    environment = {"THREADMARK_STATE_DATABASE_URL": postgres_url, "THREADMARK_MEMORY_DATABASE_URL": postgres_url}
    async with open_api(tmp_path, environment=environment) as api:
        yield api


async def ready_is(api: Api, status: int) -> Any:
    """What `/ready` says once it answers with this status: one probe serves a second."""

    async def asked() -> Any:
        answer = await api.call("GET", "/ready")
        return answer if answer.status_code == status else None

    answer = await wait_until(asked, description=f"{status} from /ready", timeout_s=READY_S_MAX)
    assert status == 200 or int(answer.headers["retry-after"]) >= 1
    return answer.json()


def administer(url: str, *statements: Any) -> None:
    """Do it as the superuser that the tests are."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for each in statements:
            connection.execute(each)


@pytest.mark.parametrize(("state", "condition"), SQLSTATES.items())
async def test_what_postgresql_cannot_do_is_said(
    over_postgres: Api, postgres_url: str, state: str, condition: Condition
) -> None:
    """By SQLSTATE: writes are refused while it lasts, reads go on, and nothing has to be restarted afterwards."""
    api, admin = over_postgres, await over_postgres.key(Scope.ADMIN)
    await ready_is(api, 200)
    administer(
        postgres_url,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'; END $$",
        *(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
            for table in ("thread", "receipt", "memory_assertion")
        ),
    )

    refused = await api.call("POST", "/threads", admin, json={})
    forgotten = await api.call("POST", "/memories", admin, json={"items": [{"text": "tea", "namespace": ["a"]}]})
    read = await api.call("POST", "/threads/search", admin, json={})
    not_ready = await ready_is(api, 503)
    administer(postgres_url, "DROP FUNCTION refuse() CASCADE")

    assert (refused.status_code, refused.json()["code"]) == (503, f"database_{condition}")
    assert (forgotten.status_code, forgotten.json()["code"]) == (503, f"memory_{condition}")
    assert int(refused.headers["retry-after"]) >= 1
    assert read.status_code == 200
    assert not_ready["reasons"] == [f"the state database {condition.sentence}"]
    assert (await api.call("POST", "/threads", admin, json={})).status_code == 200
    assert (await ready_is(api, 200))["reasons"] == []


async def test_a_database_that_takes_no_writes_is_said(over_postgres: Api, postgres_url: str) -> None:
    """As a standby after a failover; when it has become the primary, writes go on."""
    api, admin = over_postgres, await over_postgres.key(Scope.ADMIN)
    administer(postgres_url, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    try:
        not_ready = await ready_is(api, 503)
        refused = await api.call("POST", "/threads", admin, json={})
    finally:
        administer(
            postgres_url,
            "SET default_transaction_read_only = off",
            "ALTER SYSTEM RESET default_transaction_read_only",
            "SELECT pg_reload_conf()",
        )

    assert (refused.status_code, refused.json()["code"]) == (503, "database_read_only")
    assert not_ready["reasons"] == [f"the state database {Condition.READ_ONLY.sentence}"]
    await ready_is(api, 200)
    assert (await api.call("POST", "/threads", admin, json={})).status_code == 200


async def test_a_statement_that_takes_too_long_is_cancelled(postgres_url: str, tmp_path: Path) -> None:
    """By the server itself, which says so; nothing of the write is there."""
    environment = {"THREADMARK_STATE_DATABASE_URL": postgres_url, "THREADMARK_DATABASE_WRITE_S": "0.2"}
    async with open_api(tmp_path, environment=environment) as api:
        admin = await api.key(Scope.ADMIN)
        administer(
            postgres_url,
            "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$",
            "CREATE TRIGGER linger BEFORE INSERT ON thread FOR EACH ROW EXECUTE FUNCTION linger()",
        )

        refused = await api.call("POST", "/threads", admin, json={})
        administer(postgres_url, "DROP FUNCTION linger() CASCADE")

        assert (refused.status_code, refused.json()["code"]) == (503, "database_query_cancelled")
        assert (await api.call("POST", "/threads", admin, json={})).status_code == 200


async def test_a_server_without_a_connection_left_is_said(
    start_postgres: Callable[..., PrivatePostgres], tmp_path: Path
) -> None:
    """Others took them all; as soon as they let go, all is as before."""
    server = start_postgres(settings={"max_connections": "16", "superuser_reserved_connections": "0"})
    with server.fresh_database() as url:
        environment = {"THREADMARK_STATE_DATABASE_URL": url, "THREADMARK_DATABASE_REQUEST_S": "1"}
        async with open_api(tmp_path, environment=environment) as api:
            admin = await api.key(Scope.ADMIN)
            others: list[psycopg.Connection] = []
            administer(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name <> ''")
            try:
                while True:
                    others.append(psycopg.connect(url.replace("+psycopg", "")))
            except psycopg.OperationalError:
                pass

            refused = await api.call("POST", "/threads", admin, json={})
            not_ready = await ready_is(api, 503)
            for each in others:
                each.close()

            assert (refused.status_code, refused.json()["code"]) == (503, "database_too_many_connections")
            assert not_ready["reasons"] == [f"the state database {Condition.TOO_MANY_CONNECTIONS.sentence}"]
            await ready_is(api, 200)
            assert (await api.call("POST", "/threads", admin, json={})).status_code == 200


def limit_pages(connection: Connection, beyond: int) -> None:
    """Let the file grow by so many pages and no further: a disk of that size."""
    count = int(connection.exec_driver_sql("PRAGMA page_count").scalar_one())
    connection.exec_driver_sql(f"PRAGMA max_page_count = {count + beyond:d}").scalar_one()


async def test_a_full_disk_is_said_and_got_over(tmp_path: Path) -> None:
    """Both files of SQLite: 503, nothing is half done, and when there is room again writes go on."""
    async with open_api(tmp_path) as api:
        admin = await api.key(Scope.ADMIN)
        database, memory = api.resources.database, api.resources.wired.recollection._database
        await ready_is(api, 200)
        for each in (database, memory):
            await each.write(lambda connection: limit_pages(connection, 0))

        refused = await api.call("POST", "/threads", admin, json={"metadata": {"note": BIG}})
        items = [{"text": BIG[:4_000] + str(number), "namespace": ["a"]} for number in range(50)]
        forgotten = await api.call("POST", "/memories", admin, json={"items": items})
        said = database.condition
        for each in (database, memory):
            await each.write(lambda connection: limit_pages(connection, 1_000_000))

        assert (refused.status_code, refused.json()["code"]) == (503, "database_disk_full")
        assert (forgotten.status_code, forgotten.json()["code"]) == (503, "memory_disk_full")
        assert said is Condition.DISK_FULL
        assert (await api.call("POST", "/threads/search", admin, json={})).json() == []
        assert (await api.call("POST", "/threads", admin, json={"metadata": {"note": BIG}})).status_code == 200
        assert (await api.call("POST", "/memories", admin, json={"items": items})).status_code == 200
