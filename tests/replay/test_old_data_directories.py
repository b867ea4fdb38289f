"""A data directory that an older version wrote opens with this one, and everything in it is still there.

Each archive in `data_dirs` is the data directory of the version that it is named after, stopped by SIGTERM, with
`facts.json` beside the databases: what that version's own API said about the threads. Never write one again: such
directories are on people's disks.
"""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.service import Service

ARCHIVES = sorted((Path(__file__).parent / "data_dirs").glob("*.tar.xz"))


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def opened(request: pytest.FixtureRequest, start_service: Callable[..., Service]) -> tuple[Service, dict[str, Any]]:
    """This version's server over a copy of the directory, and the facts that the old version wrote down."""

    def unpack(folder: Path) -> None:
        with tarfile.open(request.param) as archive:
            archive.extractall(folder, filter="data")

    service = start_service(prepare=unpack)
    return service, json.loads((service.data_dir / "facts.json").read_text())


async def test_every_thread_of_an_old_data_directory_reads_as_it_did(opened: tuple[Service, dict[str, Any]]) -> None:
    """Messages, the open question and the digest of each journal are those that the old version reported."""
    service, facts = opened
    async with service.http() as http:
        for fact in facts.values():
            state = await _get(http, f"/threads/{fact['thread_id']}/state")
            verified = await _get(http, f"/threads/{fact['thread_id']}/journal/verify")

            assert len(state["values"].get("messages", [])) == fact["messages"]
            assert state["next"] == fact["next"]
            assert verified == fact["head"]


async def test_an_open_approval_of_an_old_data_directory_can_be_answered(
    opened: tuple[Service, dict[str, Any]],
) -> None:
    """The refund that waited for a person when the old version stopped is paid once after the answer."""
    service, facts = opened
    async with service.http() as http:
        thread_id = facts["refund_open"]["thread_id"]
        run = {"assistant_id": "refund", "command": {"resume": True}}

        answered = await http.post(f"/threads/{thread_id}/runs/wait", json=run)

        assert answered.status_code == httpx.codes.OK, answered.text
        assert "refunded" in answered.json()["messages"][-1]["content"]
        effects = [json.loads(line) for line in (service.data_dir / "effects.jsonl").read_text().splitlines()]
        paid = [line for line in effects if (line["tool"], line["arguments"]["order_id"]) == ("refund", "o-17")]
        assert len(paid) == 1


async def test_the_compaction_and_the_memories_of_an_old_data_directory_are_found(
    opened: tuple[Service, dict[str, Any]],
) -> None:
    """A ledger verifies, a memory is recalled, and the store answers."""
    service, facts = opened
    async with service.http() as http:
        chat = facts["chat"]["thread_id"]
        (compaction,) = (await _get(http, f"/threads/{chat}/compactions"))["items"]
        verified = await _get(http, f"/threads/{chat}/compactions/verify")
        recall = {"query": "Where does Ada live?", "namespace": ["users", "ada"]}
        recalled = await http.post("/memories/recall", json=recall)
        stored = await _get(http, "/store/items?namespace=notes&key=k1")

    assert compaction["status"] == "committed"
    assert verified["holds"] is True
    assert "Ada lives in Porto." in [each["text"] for each in recalled.json()["answers"]]
    assert stored["value"] == {"a": 1}


async def _get(http: httpx.AsyncClient, path: str) -> Any:
    response = await http.get(path)
    assert response.status_code == httpx.codes.OK, f"{path}: {response.status_code} {response.text}"
    return response.json()
