"""The API over HTTP and the command `threadmark`. It translates: no rule about threads or memories lives here."""

from app.factory import create_app
from app.resources import Resources

__all__ = ["Resources", "create_app"]
