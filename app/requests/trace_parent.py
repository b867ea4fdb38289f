"""The `traceparent` of a request (W3C Trace Context): what the trace of its run is linked to."""

from typing import Annotated

from litestar.params import HeaderParameter

from threadmark.app.requests.request import ApiRequest
from threadmark.workers.telemetry.spans import link_of

__all__ = ["provide_trace_parent"]

_DESCRIPTION = "The span of the caller, which the run's trace is linked to. One that cannot be read is left out."


async def provide_trace_parent(
    request: ApiRequest,
    traceparent: Annotated[str | None, HeaderParameter(name="traceparent", description=_DESCRIPTION)] = None,
) -> str | None:
    """Dependency `trace_parent`: None without the header, and for one that names no span, as the standard wants it."""
    # The parameter is there for the API's description; only all headers together show that there is but one.
    del traceparent
    sent = request.headers.getall("traceparent", [])
    return sent[0] if len(sent) == 1 and link_of(sent[0]) is not None else None
