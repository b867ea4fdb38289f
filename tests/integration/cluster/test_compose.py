"""compose.yaml without Docker: each service's command, with its environment, over servers of this machine."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.crash.client import Client
from tests.support.daemon import Daemon, PrivateServer, free_port
from tests.support.scenario import Plot, play
from tests.support.servers import PrivatePostgres, redis_binary
from tests.support.waiting import wait_until
from threadmark.workers.settings.settings import VARIABLES

ROOT = Path(__file__).parents[3]
FILE = ROOT / "compose.yaml"
OURS = {"migrate", "app", "workers"}
PINNED = re.compile(r"[a-z0-9./-]+:v?[0-9][A-Za-z0-9.-]*")
#: ${NAME:-default}, as far as the file goes; of the variables that are required (${NAME:?why}) one is set.
VARIABLE = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")
REQUIRED = re.compile(r"\$\{([A-Z_]+):\?[^}]+\}")
PASSWORD = "a1b2c3"
COMMAND_S_MAX = 60.0


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """The services by name, with the defaults of their variables."""
    services: dict[str, dict[str, Any]] = interpolated(yaml.safe_load(FILE.read_text())["services"])
    return services


def interpolated(node: Any) -> Any:
    """The values with defaults put in, as Compose does once the file is parsed."""
    match node:
        case dict():
            return {key: interpolated(value) for key, value in node.items()}
        case list():
            return [interpolated(value) for value in node]
        case str():
            return VARIABLE.sub(r"\1", REQUIRED.sub(PASSWORD, node))
        case _:
            return node


class RedisOfTheFile(PrivateServer):
    """The redis service's own command, on a port of the test."""

    def __init__(self, command: list[str]) -> None:
        super().__init__("compose-redis")
        self._command = command

    def spawn(self) -> Daemon:
        """Start the process."""
        assert self._command[0] == "redis-server"
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return Daemon([redis_binary(), *self._command[1:], *where], log=self.folder / "server.log")

    def answers(self) -> bool:
        """Whether a connection is accepted."""
        return "Ready to accept connections" in (self.folder / "server.log").read_text()


@dataclass(frozen=True)
class Program:
    """A service of ours that runs."""

    daemon: Daemon
    log_file: Path
    port: int

    @property
    def log(self) -> str:
        """What it has written."""
        return self.log_file.read_text(errors="replace")


@dataclass(frozen=True)
class Host:
    """This machine as the services see it: their environment, with the names of hosts replaced."""

    services: dict[str, dict[str, Any]]
    folder: Path
    addresses: dict[str, str]

    def environment(self, service: str, port: int) -> dict[str, str]:
        """The service's environment variables."""
        variables = {name: self._here(str(value)) for name, value in self.services[service]["environment"].items()}
        return {**variables, "HOST": "127.0.0.1", "PORT": str(port), "PYTHONPATH": str(ROOT)}

    def command(self, service: str) -> list[str]:
        """The service's command: the image's entry point is `threadmark`."""
        return [sys.executable, "-m", "threadmark.app.cli", *self.services[service]["command"]]

    def run(self, service: str) -> "subprocess.CompletedProcess[str]":
        """The service, to its end."""
        environment = {**os.environ, **self.environment(service, 0)}
        command = self.command(service)
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
        )

    def begin(self, service: str, number: int) -> Program:
        """One replica of the service."""
        port, log = free_port(), self.folder / f"{service}-{number}.log"
        assignments = [f"{name}={value}" for name, value in self.environment(service, port).items()]
        return Program(Daemon(["/usr/bin/env", *assignments, *self.command(service)], log=log), log, port)

    def _here(self, value: str) -> str:
        if value == "/data":
            return str(self.folder / "data")
        for inside, outside in self.addresses.items():
            value = re.sub(inside, outside, value)
        return value


@pytest.fixture
def host(services: dict[str, dict[str, Any]], tmp_path: Path) -> Iterator[Host]:
    """PostgreSQL with the file's own settings, and Redis with its own command."""
    program, *options = services["postgres"]["command"]
    assert program == "postgres"
    given = dict(option.split("=") for option in options[1::2])
    with ExitStack() as stack:
        postgres = stack.enter_context(PrivatePostgres(settings=given))
        redis = stack.enter_context(RedisOfTheFile(services["redis"]["command"]))
        databases = {name: stack.enter_context(postgres.fresh_database()) for name in ("threadmark", "memory")}
        addresses = {rf"postgresql://.*@postgres:5432/{name}$": url for name, url in databases.items()}
        yield Host(services, tmp_path, {**addresses, "redis:6379": f"127.0.0.1:{redis.port}"})


async def test_the_services_make_one_deployment(host: Host) -> None:
    """APIs and workers say that they wait for the migration, which may run again; one API tells what another did."""
    replicas = host.services["app"]["deploy"]["replicas"]
    apps = [host.begin("app", number) for number in range(replicas)]
    worker = host.begin("workers", 1)
    try:
        for each in [*apps, worker]:
            await wait_until(says(each, "waiting for the schema"), description="it to wait", timeout_s=COMMAND_S_MAX)
        for said in ("state has no tables yet", "nothing to do"):
            migrated = host.run("migrate")
            assert migrated.returncode == 0, migrated.stderr
            assert said in migrated.stdout
        for app in apps:
            app.daemon.await_ready(answering(app))
        worker.daemon.await_ready(says(worker, "The worker is ready."))
        key = (host.folder / "data" / "admin.key").read_text().strip()
        async with Client(f"http://127.0.0.1:{apps[0].port}", key) as one:
            conversation = await play(one, Plot(order_id="compose"), list)
        async with Client(f"http://127.0.0.1:{apps[1].port}", key) as other:
            thread = await other.get(f"/threads/{conversation.thread_id}")
        assert [run["status"] for run in conversation.runs] == ["success"] * 3
        assert thread["status"] == "idle"
    finally:
        for each in [*apps, worker]:
            each.daemon.end(signal.SIGTERM)


def says(program: Program, text: str) -> Callable[[], bool]:
    """Whether the program has written it."""
    return lambda: text in program.log


def answering(program: Program) -> Callable[[], bool]:
    """Whether the API is ready."""

    def is_ready() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{program.port}/ready", timeout=5).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    return is_ready


def test_every_part_of_a_deployment_is_there(services: dict[str, dict[str, Any]]) -> None:
    """Database, Redis, index, migration, two APIs behind one port, and workers."""
    assert set(services) == OURS | {"postgres", "redis", "qdrant", "proxy"}
    assert services["app"]["deploy"]["replicas"] == 2
    assert services["workers"]["deploy"]["replicas"] >= 2
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert all(port.startswith("127.0.0.1:") for port in services["proxy"]["ports"])


def test_no_password_has_a_default() -> None:
    """Without one, Compose refuses with a message instead of starting a deployment that anyone can open."""
    text = FILE.read_text()

    assert set(REQUIRED.findall(text)) == {"POSTGRES_PASSWORD"}
    assert [name for name in re.findall(r"\$\{([A-Z_]*(?:PASSWORD|SECRET)[A-Z_]*):-", text)] == []
    assert re.findall(r"(?i)password\w*\s*[:=]\s*[a-z0-9]+\s*$", text, flags=re.M) == []


def test_images_of_others_are_pinned(services: dict[str, dict[str, Any]]) -> None:
    """A deployment that is made again is the same one."""
    images = {name: service["image"] for name, service in services.items() if name not in OURS}

    assert {name: image for name, image in images.items() if not PINNED.fullmatch(image)} == {}


def test_every_variable_that_is_set_is_read(services: dict[str, dict[str, Any]]) -> None:
    """Every variable of our services is a setting."""
    known = {variable.name for variable in VARIABLES}

    assert {name for service in OURS for name in services[service]["environment"]} - known == set()


def test_nothing_begins_before_the_schema(services: dict[str, dict[str, Any]]) -> None:
    """The migration waits for the database, and every other service for the migration."""
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("app", "workers"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_docker_accepts_the_file() -> None:
    """`docker compose config`, where there is one."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no `docker compose` here")
    checked = subprocess.run(
        [docker, "compose", "--file", str(FILE), "config", "--quiet"],
        env={**os.environ, "POSTGRES_PASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stderr
