"""Export and import over HTTP: streamed, with a bound of their own."""

import re
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


async def test_an_import_that_is_sent_again_with_its_key_has_the_first_answer(tmp_path: Path) -> None:
    """A repeat returns what was added, and not that it is known by now; another body with the key is refused."""
    async with open_api(tmp_path) as api:
        key = await api.key(Scope.ADMIN)
        await api.call("POST", "/memories", key, json={"items": [{"namespace": ["users", "7"], "text": "likes tea"}]})
        lines = (await api.call("GET", "/memories/export?namespace=[]", key)).content
        other = await api.key(Scope.ADMIN, tenant_id="other")
        renamed = re.sub(rb'"(assertion_id|root_id|evidence_id)":"(........)', rb'"\1":"aaaaaaaa', lines)
        named = {"idempotency-key": "import-1"}

        first = await api.call("POST", "/memories/import?namespace=[]", other, content=renamed, headers=named)
        again = await api.call("POST", "/memories/import?namespace=[]", other, content=renamed, headers=named)
        another = await api.call("POST", "/memories/import?namespace=[]", other, content=lines, headers=named)
        bad = await api.call(
            "POST", "/memories/import?namespace=[]", other, content=renamed, headers={"idempotency-key": "a b"}
        )

        assert first.json()["added"]["assertion"] == 1, first.text
        assert again.content == first.content
        assert again.headers["idempotent-replayed"] == "true"
        assert (another.status_code, another.json()["code"]) == (422, "idempotency_key_reused")
        assert (bad.status_code, bad.json()["code"]) == (400, "bad_idempotency_key")
