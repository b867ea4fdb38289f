"""The API over HTTP and the command `threadmark`. It translates: no rule about threads or memories lives here."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadmark.app.factory import create_app
    from threadmark.app.resources import Resources

__all__ = ["Resources", "create_app"]


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: the command answers Ctrl-C from its first moment, which heavy imports would delay.
    if name == "create_app":
        from threadmark.app.factory import create_app  # noqa: PLC0415

        return create_app
    if name == "Resources":
        from threadmark.app.resources import Resources  # noqa: PLC0415

        return Resources
    raise AttributeError(name)
