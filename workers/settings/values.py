"""How the text of a setting becomes its value."""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from threadmark.compaction import Price, price_of
from threadmark.db import normal_url

__all__ = [
    "Network",
    "WrongValue",
    "address",
    "choice",
    "database_url",
    "directory",
    "embedder",
    "hosts",
    "http_url",
    "name",
    "networks",
    "object_reference",
    "origins",
    "port",
    "prices",
    "redis_url",
    "seconds",
    "secret",
    "shown_url",
    "whole",
]

Network = IPv4Network | IPv6Network
T = TypeVar("T")

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,30}")
_REFERENCE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_EMBEDDER = re.compile(r"wordllama|minilm|openai:[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}:[1-9][0-9]{0,4}")
_SECRET = re.compile(r"[\x21-\x7e]+")
_PORT_MAX = 65_535


class WrongValue(ValueError):
    """This text is not a value of its setting."""


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A reader of finite numbers within [least, most]."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError as error:
            raise WrongValue from error
        return _wanted(value, math.isfinite(value) and least <= value <= most)

    return read


def whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers within [least, most], in decimal digits alone."""

    def read(text: str) -> int:
        _wanted(text, text.isascii() and text.isdigit() and len(text) <= len(str(most)))
        return _wanted(int(text), least <= int(text) <= most)

    return read


def choice(*allowed: str) -> Callable[[str], str]:
    """A reader of one of the words."""
    return lambda text: _wanted(text, text in allowed)


port = whole(0, _PORT_MAX)


def address(text: str) -> str:
    """An IP address or a host name."""
    return _wanted(text, _is_ip(text) or _HOST_NAME.fullmatch(text) is not None)


def directory(text: str) -> Path:
    """An absolute path. Whether it can be made is seen when it is made; a file in its place is refused now."""
    # A question mark would begin the query of the SQLite addresses made from this path.
    _wanted(text, text.isprintable() and "?" not in text)
    path = Path(text).expanduser().absolute()
    # `os.path`: behind a folder that is closed to this user `Path.exists` raises, and `make_data_dir` says it better.
    return _wanted(path, not os.path.exists(path) or path.is_dir())


def database_url(text: str) -> str:
    """The address of a database, in SQLAlchemy's spelling."""
    url = _split(text)
    if url.scheme == "sqlite":
        # A database in memory alone would forget every acknowledged run.
        _wanted(url, not url.netloc and url.path not in {"", "/"} and ":memory:" not in url.path)
        return text
    _wanted(url, url.scheme in {"postgresql", "postgresql+psycopg"})
    # A server on this machine may have no port at all: its socket is a file in a folder, the host of the query.
    socket_folder = dict(parse_qsl(url.query)).get("host", "")
    _wanted(url, bool(url.hostname or socket_folder.startswith("/")) and len(url.path) > 1)
    return normal_url(text)


def redis_url(text: str) -> str:
    """The address of a Redis server."""
    url = _split(text)
    return _wanted(text, url.scheme in {"redis", "rediss"} and bool(url.hostname))


def http_url(text: str) -> str:
    """An address of HTTP, without the trailing slash."""
    url = _split(text)
    return _wanted(text, url.scheme in {"http", "https"} and bool(url.hostname) and not url.query).rstrip("/")


def object_reference(text: str) -> str:
    """`module:name`; whether it can be imported is seen when it is."""
    return _wanted(text, _REFERENCE.fullmatch(text) is not None)


def name(text: str) -> str:
    """The name of a model."""
    return _wanted(text, _NAME.fullmatch(text) is not None)


def embedder(text: str) -> str:
    """One that comes with the server, or a model of an endpoint with the length of its vectors."""
    return _wanted(text, _EMBEDDER.fullmatch(text) is not None)


def secret(text: str) -> str:
    """Something that is never shown."""
    return _wanted(text, _SECRET.fullmatch(text) is not None)


def prices(text: str) -> Mapping[str, Price]:
    """What models cost, by their names: amounts of money per million tokens, as decimals in texts."""
    try:
        given = json.loads(text, object_pairs_hook=_each_once)
        read = {name(model): price_of(given[model]["input"], given[model]["output"]) for model in given}
        _wanted(given, all(each.keys() == {"input", "output"} for each in given.values()))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WrongValue from error
    return MappingProxyType(read)


def networks(text: str) -> tuple[Network, ...]:
    """Addresses and networks, between commas."""
    try:
        return tuple(ip_network(item) for item in _items(text))
    except ValueError as error:
        raise WrongValue from error


def hosts(text: str) -> tuple[str, ...]:
    """Host names in lower case, between commas."""
    return tuple(address(item.strip("[]")).lower() for item in _items(text))


def origins(text: str) -> tuple[str, ...]:
    """Origins (scheme, host, port), between commas."""

    def read(item: str) -> str:
        url = _split(item)
        _wanted(url, url.scheme in {"http", "https"} and bool(url.hostname))
        return _wanted(item.lower(), item.lower() == f"{url.scheme}://{url.netloc}".lower() and "@" not in url.netloc)

    return tuple(read(item) for item in _items(text))


def shown_url(text: str) -> str:
    """An address as it may be repeated: without user, password and query."""
    try:
        url = urlsplit(text)
        place = url.netloc.rpartition("@")[2]
    except ValueError:
        return "not an address (it is not shown)"
    if not url.netloc and url.scheme != "sqlite":
        return "not an address (it is not shown)"
    if "@" not in url.netloc and not url.query:
        return repr(text)
    return repr(f"{url.scheme}://…@{place}{url.path}")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _wanted(dict(pairs), len(dict(pairs)) == len(pairs))


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _split(text: str) -> SplitResult:
    _wanted(text, text.isprintable() and " " not in text)
    try:
        url = urlsplit(text)
        _wanted(url, url.port is None or url.port <= _PORT_MAX)
    except ValueError as error:
        raise WrongValue from error
    return url


def _wanted(value: T, is_right: bool) -> T:
    if not is_right:
        raise WrongValue
    return value
