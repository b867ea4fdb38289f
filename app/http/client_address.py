"""Whose request it is, by address: the peer, or what a trusted proxy says about the peer."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

__all__ = ["UNKNOWN", "Network", "client_address", "is_trusted", "source_of"]

Network = IPv4Network | IPv6Network
UNKNOWN = "unknown"
#: Hops of X-Forwarded-For that are looked at.
HOP_COUNT_MAX = 32


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """The address a request counts for.

    `forwarded_for` holds the values of all X-Forwarded-For headers, in order. They are read from the right, and only as
    far as trusted proxies wrote them: the first address that is no trusted proxy is the client. A header from a peer
    that is not trusted says nothing, and neither does one that is not made of addresses.
    """
    if peer is None:
        return UNKNOWN
    client = _address_of(peer)
    if client is None:
        return UNKNOWN
    hops = [hop.strip() for value in forwarded_for for hop in value.split(",")]
    for hop in reversed(hops[-HOP_COUNT_MAX:]):
        if not _is_within(client, trusted):
            break
        said = _address_of(hop)
        if said is None:
            break
        client = said
    return str(client)


def source_of(address: str) -> str:
    """What limits count by: an IPv4 address, or the /64 of an IPv6 one, because one host owns all of it."""
    parsed = _address_of(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, 64), strict=False))
    return address


def is_trusted(peer: str | None, trusted: Sequence[Network]) -> bool:
    """Whether the peer is one of the trusted proxies."""
    parsed = None if peer is None else _address_of(peer)
    return parsed is not None and _is_within(parsed, trusted)


def _is_within(address: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _address_of(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, IPv4Address):
        return parsed
    # An IPv4 peer of a dual-stack socket would pass by the IPv4 networks that are trusted; a scope is no address.
    return parsed.ipv4_mapped or IPv6Address(int(parsed))
