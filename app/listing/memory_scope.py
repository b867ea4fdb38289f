"""The namespace in a query: labels that come one by one, or once as a JSON list; `[]` is the whole tenant."""

from typing import Annotated

import msgspec
from litestar.exceptions import ValidationException
from litestar.params import QueryParameter

from threadmark.memory import Scope, ScopeRefused

__all__ = ["NamespaceText", "scope_in_query", "tenant_scope"]

NamespaceText = Annotated[
    list[str],
    QueryParameter(
        name="namespace",
        description="The labels, each as a parameter or all in one JSON list; `[]` is the whole tenant.",
    ),
]


def scope_in_query(tenant_id: str, values: list[str]) -> Scope:
    """The scope that the labels name. Raises ValidationException."""
    labels = values
    if len(values) == 1 and values[0].startswith("["):
        try:
            labels = msgspec.json.decode(values[0], type=list[str])
        except msgspec.MsgspecError as error:
            raise _refused("is not a JSON list of labels") from error
    elif not values:
        raise _refused("is missing; `[]` is the whole tenant")
    try:
        return Scope(tenant_id=tenant_id, namespace=tuple(labels))
    except ScopeRefused as error:
        raise _refused(error.why) from error


def tenant_scope(tenant_id: str) -> Scope:
    """Everything of the tenant: for what is asked for by its id."""
    return Scope(tenant_id=tenant_id, namespace=())


def _refused(why: str) -> ValidationException:
    return ValidationException(extra=[{"key": "namespace", "message": why}])
