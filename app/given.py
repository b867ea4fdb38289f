"""What routes are given: `caller: given.Caller` in a handler's signature is the caller of its request.

The framework would otherwise check, and so rebuild, each of these values on every request.
"""

from typing import Annotated

from litestar.params import Dependency

from app import access, cursors, receipts, resources

__all__ = ["Caller", "Keys", "RequestKey", "Resources", "Sealer"]

_AS_IT_IS = Dependency(skip_validation=True)

Caller = Annotated[access.Caller, _AS_IT_IS]  #: `caller`: who makes the request
Resources = Annotated[resources.Resources, _AS_IT_IS]  #: `resources`: what the application is built from
Keys = Annotated[access.KeyRing, _AS_IT_IS]  #: `keys`: the keys that are known, to forget one
Sealer = Annotated[cursors.Sealer, _AS_IT_IS]  #: `sealer`: makes and opens cursors
#: `request_key`: the Idempotency-Key; None without one
RequestKey = Annotated[receipts.RequestKey | None, _AS_IT_IS]
