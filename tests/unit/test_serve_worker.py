"""Which processes move runs: the one that serves the API, unless others are configured to."""

import pytest

from threadmark.workers.settings.settings import Settings

REDIS = "redis://127.0.0.1:6379/0"


@pytest.mark.parametrize(
    ("environment", "moves_runs"),
    [
        ({}, True),
        ({"THREADMARK_REDIS_URL": REDIS}, False),
        ({"THREADMARK_REDIS_URL": REDIS, "THREADMARK_SERVE_WORKER": "auto"}, False),
        ({"THREADMARK_REDIS_URL": REDIS, "THREADMARK_SERVE_WORKER": "yes"}, True),
        ({"THREADMARK_SERVE_WORKER": "no"}, False),
        ({"THREADMARK_SERVE_WORKER": "yes"}, True),
    ],
)
def test_the_api_moves_runs_unless_others_do(environment: dict[str, str], moves_runs: bool) -> None:
    """Redis means a deployment with workers of its own; the setting overrules it either way."""
    assert Settings.from_environment(environment).serves_with_worker is moves_runs
