"""What texts look like: members and parameters of one name are of one form, wherever they stand."""

from collections.abc import Iterator, Mapping
from typing import Any

from threadmark.app.wire.compactions.compaction_policy_schema import PATTERN as POLICY_NAME

__all__ = ["add_formats"]

_UUID = {"format": "uuid"}
_DIGEST = {"pattern": "^[0-9a-f]{64}$"}
_AMOUNT = {"pattern": r"^[0-9]+(\.[0-9]+)?$"}

_FORMS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "thread_id",
            "run_id",
            "run_ids",
            "execution_id",
            "checkpoint_id",
            "parent_checkpoint_id",
            "wait_id",
            "compaction_id",
            "memory_id",
            "erasure_id",
            "quarantine_id",
            "job_id",
            "task_id",
            "thread_ids",
        ),
        _UUID,
    ),
    "shown_digest": _DIGEST,
    "cost": _AMOUNT,
    "Idempotency-Key": {"pattern": "^[!-~]{1,255}$"},
    "Last-Event-ID": {"pattern": "^([0-9]{1,10}-[0-9]{1,9}|-1|0)?$"},
}
#: Members and parameters of these names that are something else there: by schema or path, and name.
_ELSEWHERE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("/compaction-policies/{name}", "name"): {"pattern": POLICY_NAME},
    ("/compaction-policies/{name}/versions", "name"): {"pattern": POLICY_NAME},
    ("ThreadCount", "ids"): _UUID,
    ("ThreadSearch", "ids"): _UUID,
    ("ShownAssistant", "assistant_id"): _UUID,
    ("SelectedAssistant", "assistant_id"): _UUID,
    ("ShownRun", "assistant_id"): _UUID,
    ("SelectedRun", "assistant_id"): _UUID,
}


def add_formats(owner: str, name: str, schema: dict[str, Any]) -> None:
    """Say of a member or parameter, in `schema`, which form its texts have, where it is known."""
    form = _ELSEWHERE.get((owner, name), _FORMS.get(name))
    if form is not None:
        for text in _texts(schema):
            text.update({key: value for key, value in form.items() if key not in text})


def _texts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas of texts in a schema: itself, one of its alternatives, or its items."""
    if schema.get("type") == "string" and "enum" not in schema:
        yield schema
    for inner in (*schema.get("anyOf", ()), schema.get("items")):
        if isinstance(inner, dict):
            yield from _texts(inner)
