"""Addresses of databases, in the spelling that this code uses."""

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from sqlalchemy import make_url

__all__ = ["is_sqlite", "normal_url"]

_SCHEMES = ("postgresql", "postgresql+psycopg")


def normal_url(url: str) -> str:
    """`url` with the driver that this code uses, and the folder of a Unix socket where SQLAlchemy looks for it.

    `postgresql://%2Fvar%2Frun%2Fpostgresql/name`, as libpq spells it, becomes `…/name?host=/var/run/postgresql`.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        return url
    user, at, place = parts.netloc.rpartition("@")
    query = parse_qsl(parts.query, keep_blank_values=True)
    host, _, port = place.partition(":")
    if host[:3].lower() == "%2f":
        query.append(("host", unquote(host)))
        if port:
            query.append(("port", port))
        place = ""
    asked = f"?{urlencode(query, safe='/')}" if query else ""
    return f"postgresql+psycopg://{user}{at}{place}{parts.path}{asked}"


def is_sqlite(url: str) -> bool:
    """Whether `url` names a SQLite file."""
    return make_url(normal_url(url)).get_backend_name() == "sqlite"
