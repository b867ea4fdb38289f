"""Export and import over HTTP: streamed, with a bound of their own."""

from pathlib import Path

from tests.support.api import open_api
from threadmark.app.access import Scope


async def test_an_import_may_be_larger_than_other_bodies_up_to_its_own_bound(tmp_path: Path) -> None:
    """What was exported comes back, whatever bound other bodies have; beyond its own bound an import is 413."""
    environment = {"THREADMARK_BODY_BYTES_MAX": "1024", "THREADMARK_IMPORT_BYTES_MAX": "20000"}
    async with open_api(tmp_path, environment=environment) as api:
        key = await api.key(Scope.ADMIN)
        for number in range(4):
            item = {"namespace": ["users", "7"], "text": f"memory {number}"}
            await api.call("POST", "/memories", key, json={"items": [item]})
        exported = (await api.call("GET", "/memories/export?namespace=[]", key)).content

        again = await api.call("POST", "/memories/import?namespace=[]", key, content=exported)
        larger = await api.call("POST", "/memories/import?namespace=[]", key, content=exported + b"x" * 20_000)

        assert len(exported) > 1024
        assert again.status_code == 200, again.text
        assert again.json()["known"]["assertion"] == 4
        assert larger.status_code == 413, larger.text
