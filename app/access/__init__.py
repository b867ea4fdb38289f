"""Who may call what: API keys, their scopes, and the gate every request passes."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.app.access.gate import Gate
    from threadmark.app.access.key import ApiKey, Caller, Token
    from threadmark.app.access.ring import KeyRing
    from threadmark.app.access.route_scopes import PUBLIC, check_declared, needs, scope_needed
    from threadmark.app.access.scopes import Scope
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["PUBLIC", "ApiKey", "Caller", "Gate", "KeyRing", "Scope", "Token", "check_declared", "needs", "scope_needed"]
