"""What routes are given: `caller: given.Caller` in a handler's signature is the caller of its request.

Their validation is skipped: the framework would otherwise take each of these values apart on every request.
"""

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from threadmark.app import access, resources
from threadmark.app.listing import cursors
from threadmark.app.requests import request_key

__all__ = ["Caller", "CursorSigner", "Keys", "RequestKey", "Resources", "TraceParent"]

Caller = NamedDependency[SkipValidation[access.Caller]]  #: `caller`: who makes the request
Resources = NamedDependency[SkipValidation[resources.Resources]]  #: `resources`: what the application is built from
Keys = NamedDependency[SkipValidation[access.KeyRing]]  #: `keys`: the keys that are known, to forget one
CursorSigner = NamedDependency[SkipValidation[cursors.CursorSigner]]  #: `sealer`: makes and opens cursors
#: `request_key`: the Idempotency-Key; None without one
RequestKey = NamedDependency[SkipValidation[request_key.RequestKey | None]]
#: `trace_parent`: the request's `traceparent`, if it names a span
TraceParent = NamedDependency[SkipValidation[str | None]]
