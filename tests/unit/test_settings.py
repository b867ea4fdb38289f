"""Settings: what is taken from the environment, and the sentence that refuses the rest."""

from pathlib import Path
from traceback import format_exception

import pytest

from threadmark.workers.settings.declaration import Variable
from threadmark.workers.settings.settings import VARIABLES, Settings, SettingsRefused

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def refusal_of(**environment: str) -> str:
    """The sentence that the start stops with."""
    with pytest.raises(SettingsRefused) as refused:
        Settings.from_environment(environment)
    return str(refused.value)


def test_without_an_environment_everything_is_embedded() -> None:
    """The defaults need no other server, no network and no key."""
    settings = Settings.from_environment({})

    assert (settings.host, settings.port) == ("127.0.0.1", 8123)
    assert Path.cwd() / ".threadmark" == settings.data_dir
    assert f"sqlite:///{settings.data_dir}/state.db" == settings.state_database_url
    assert f"sqlite:///{settings.data_dir}/memory.db" == settings.memory_database_url
    assert (settings.model, settings.openai_api_key) == ("offline", None)
    assert (settings.redis_url, settings.qdrant_url) == (None, None)
    assert (settings.trusted_proxies, settings.allowed_hosts, settings.allowed_origins) == ((), (), ())


def test_an_empty_variable_is_none_at_all() -> None:
    """`PORT= threadmark serve` is what shells and compose files make of an unset variable."""
    assert Settings.from_environment({}) == Settings.from_environment({each.name: "" for each in VARIABLES})


def test_what_is_set_is_what_counts(tmp_path: Path) -> None:
    """Every variable reaches its field, in the form the code works with."""
    settings = Settings.from_environment(
        {
            "HOST": "::1",
            "PORT": "0",
            "THREADMARK_DATA_DIR": str(tmp_path),
            "THREADMARK_STATE_DATABASE_URL": "postgresql://u:p@db:5432/state",
            "THREADMARK_REDIS_URL": "redis://:pw@cache:6379/0",
            "THREADMARK_QDRANT_URL": "http://qdrant:6333/",
            "THREADMARK_MODEL": "large-1",
            "OPENAI_API_KEY": "sk-1",
            "THREADMARK_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.7",
            "THREADMARK_ALLOWED_ORIGINS": "https://Chat.example.com,http://localhost:3000",
            "THREADMARK_ALLOWED_HOSTS": "Agents.example.com, [::1]",
            "THREADMARK_LEASE_TTL_S": "0.5",
            "THREADMARK_HEARTBEAT_S": "0.1",
        }
    )

    assert (settings.host, settings.port) == ("::1", 0)
    assert settings.state_database_url == "postgresql+psycopg://u:p@db:5432/state"
    assert f"sqlite:///{tmp_path}/memory.db" == settings.memory_database_url
    assert settings.qdrant_url == "http://qdrant:6333"
    assert [str(each) for each in settings.trusted_proxies] == ["10.0.0.0/8", "192.0.2.7/32"]
    assert settings.allowed_origins == ("https://chat.example.com", "http://localhost:3000")
    assert settings.allowed_hosts == ("agents.example.com", "::1")
    assert (settings.lease_ttl_s, settings.heartbeat_s) == (0.5, 0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST", "not a host"),
        ("HOST", "-a"),
        ("PORT", "80a"),
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("PORT", "８"),
        ("THREADMARK_DATA_DIR", __file__),
        ("THREADMARK_DATA_DIR", "a\nb"),
        ("THREADMARK_STATE_DATABASE_URL", "mysql://h/x"),
        ("THREADMARK_STATE_DATABASE_URL", "sqlite://"),
        ("THREADMARK_STATE_DATABASE_URL", "sqlite:///:memory:"),
        ("THREADMARK_STATE_DATABASE_URL", "state.db"),
        ("THREADMARK_STATE_DATABASE_URL", "postgresql://host"),
        ("THREADMARK_MEMORY_DATABASE_URL", "sqlite://host/x"),
        ("THREADMARK_MEMORY_DATABASE_URL", "postgresql://h:99999/x"),
        ("THREADMARK_REDIS_URL", "http://h"),
        ("THREADMARK_QDRANT_URL", "qdrant:6333"),
        ("THREADMARK_QDRANT_API_KEY", "two words"),
        ("THREADMARK_MEMORY_INDEX", "server"),
        ("THREADMARK_EMBEDDER", "large-1"),
        ("THREADMARK_EMBEDDER", "openai:large-1:0"),
        ("THREADMARK_EMBEDDER_URL", "localhost"),
        ("THREADMARK_RECALLS_KEPT_DAYS", "0"),
        ("THREADMARK_AGENTS", "examples"),
        ("THREADMARK_AGENTS", "../agents:X"),
        ("THREADMARK_MODEL", "two words"),
        ("OPENAI_API_KEY", "sk 1"),
        ("OPENAI_BASE_URL", "localhost"),
        ("THREADMARK_LEASE_TTL_S", "nan"),
        ("THREADMARK_LEASE_TTL_S", "inf"),
        ("THREADMARK_LEASE_TTL_S", "-1"),
        ("THREADMARK_HEARTBEAT_S", "0"),
        ("THREADMARK_SWEEP_S", "0"),
        ("THREADMARK_SWEEP_S", "soon"),
        ("THREADMARK_BODY_BYTES_MAX", "1e6"),
        ("THREADMARK_RATE_PER_S", "0"),
        ("THREADMARK_RATE_BURST", "0"),
        ("THREADMARK_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("THREADMARK_TRUSTED_PROXIES", "proxy.internal"),
        ("THREADMARK_ALLOWED_HOSTS", "a b"),
        ("THREADMARK_ALLOWED_ORIGINS", "*"),
        ("THREADMARK_ALLOWED_ORIGINS", "https://a.example/path"),
        ("THREADMARK_LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence_that_says_how_to_fix_it(name: str, value: str) -> None:
    """The sentence names the variable, the value, what is allowed, and an example that is taken."""
    (variable,) = (each for each in VARIABLES if each.name == name)

    sentence = refusal_of(**{name: value})

    assert sentence.startswith(f"{name} is ")
    assert f"must be {variable.reads.allowed}; for example {name}={variable.example}" in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda each: each.name)
def test_every_example_is_taken(variable: Variable) -> None:
    """An example that is refused in its turn would send the reader in a circle."""
    assert variable.reads.value(variable.example) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THREADMARK_STATE_DATABASE_URL", "mysql://user:hunter2@db/x"),
        ("THREADMARK_REDIS_URL", "http://:hunter2@cache"),
        ("THREADMARK_QDRANT_URL", "https://q/?api_key=hunter2"),
        ("OPENAI_BASE_URL", "hunter2"),
        ("OPENAI_API_KEY", "hunter2 "),
        ("THREADMARK_QDRANT_API_KEY", "hunter2 "),
    ],
)
def test_a_secret_is_not_repeated(name: str, value: str) -> None:
    """What may hold a password or a key is named and not quoted, even where it is wrong, nor in a traceback."""
    with pytest.raises(SettingsRefused) as refused:
        Settings.from_environment({name: value})

    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in "".join(format_exception(refused.value))


def test_secrets_stay_out_of_a_printed_settings() -> None:
    """Settings in a log line or a traceback show neither the key nor an address that may hold a password."""
    settings = Settings.from_environment(
        {"OPENAI_API_KEY": "hunter2", "THREADMARK_STATE_DATABASE_URL": "postgresql://u:hunter2@db/x"}
    )

    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({"THREADMARK_HEARTBEAT_S": "3", "THREADMARK_LEASE_TTL_S": "3"}, "THREADMARK_HEARTBEAT_S is 3"),
        ({"THREADMARK_MODEL": "large-1"}, "THREADMARK_MODEL is 'large-1'"),
        (
            {"THREADMARK_STATE_DATABASE_URL": "sqlite:////x.db", "THREADMARK_MEMORY_DATABASE_URL": "sqlite:////x.db"},
            "THREADMARK_MEMORY_DATABASE_URL is 'sqlite:////x.db'",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(environment: dict[str, str], names: str) -> None:
    """What is right alone and wrong together is refused with the relation and an example."""
    sentence = refusal_of(**environment)

    assert sentence.startswith(names)
    assert "for example " in sentence


def test_the_page_lists_what_the_code_reads() -> None:
    """docs/settings.md has one row per variable, in order, with the code's own default, bounds and meaning."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert [row_of(variable) for variable in VARIABLES] == rows


def row_of(variable: Variable) -> str:
    """The row of the page that tells of the variable."""
    allowed = f"{variable.reads.allowed}, e.g. `{variable.example}`"
    return f"| `{variable.name}` | {variable.shown_default} | {allowed} | {variable.meaning} |"
