"""A client that `openapi-python-client` makes from the API's document, as any customer of it would."""

import asyncio
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["GeneratedClient", "generate"]

_TIMEOUT_S = 120.0
#: The generator knows no JSON lines; it is configured to take them as bytes.
_CONFIG = {"post_hooks": [], "content_type_overrides": {"application/x-ndjson": "application/octet-stream"}}


@dataclass(frozen=True)
class GeneratedClient:
    """A client package, and a session with a key in it."""

    package: str
    session: Any

    async def call(self, operation: str, *arguments: Any, **named: Any) -> Any:
        """The response to an operation (`threads.create_thread`): its `status_code`, and `parsed`, a typed object."""
        module = importlib.import_module(f"{self.package}.api.{operation}")
        return await module.asyncio_detailed(*arguments, client=self.session, **named)

    def model(self, name: str, plain: dict[str, Any]) -> Any:
        """A body of the type `name`."""
        return getattr(importlib.import_module(f"{self.package}.models"), name).from_dict(plain)


async def generate(document: dict[str, Any], folder: Path, package: str) -> None:
    """Make the client in a new package of the folder; whatever the generator only warns of is an error."""
    (folder / "document.json").write_text(json.dumps(document))
    (folder / "config.json").write_text(json.dumps(_CONFIG))
    options = ["--path", "document.json", "--config", "config.json", "--output-path", package, "--meta", "none"]
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", *options],
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(_TIMEOUT_S):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
