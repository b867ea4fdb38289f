"""Who may call what: API keys, their scopes, and the gate every request passes."""

from threadmark.app.access.gate import Gate
from threadmark.app.access.key import ApiKey, Caller, Token
from threadmark.app.access.ring import KeyRing
from threadmark.app.access.scopes import PUBLIC, Scope, check_declared, needs, scope_needed

__all__ = ["PUBLIC", "ApiKey", "Caller", "Gate", "KeyRing", "Scope", "Token", "check_declared", "needs", "scope_needed"]
