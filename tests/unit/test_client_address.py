"""Whose request it is: X-Forwarded-For counts only as far as trusted proxies wrote it."""

from ipaddress import ip_network

import pytest

from threadmark.app.http.client_address import UNKNOWN, client_address, source_of

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["1.1.1.1"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.9"], "192.0.2.9"),
        ("10.0.0.1", ["1.1.1.1, 192.0.2.9"], "192.0.2.9"),
        ("10.0.0.1", ["1.1.1.1", "192.0.2.9, 10.2.2.2"], "192.0.2.9"),
        ("10.0.0.1", ["10.9.9.9, 10.2.2.2"], "10.9.9.9"),
        ("10.0.0.1", ["192.0.2.9, not-an-address"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.9, "], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.9:1234"], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1" + ", 10.0.0.2" * 1_000], "10.0.0.2"),
        ("::ffff:10.0.0.1", ["192.0.2.9"], "192.0.2.9"),
        ("fd00::1", ["2001:db8::5"], "2001:db8::5"),
        ("fe80::1%eth0", [], "fe80::1"),
        (None, ["192.0.2.9"], UNKNOWN),
        ("testclient", ["192.0.2.9"], UNKNOWN),
    ],
)
def test_the_client_is_the_first_address_that_no_trusted_proxy_wrote(
    peer: str | None, forwarded: list[str], client: str
) -> None:
    """What the client itself puts into the header never counts."""
    assert client == client_address(peer, forwarded, PROXIES)


def test_without_trusted_proxies_the_header_says_nothing() -> None:
    """The default: the peer is the client."""
    assert client_address("10.0.0.1", ["192.0.2.9"], []) == "10.0.0.1"


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_a_host_is_one_source_however_many_addresses_it_takes(address: str, source: str) -> None:
    """One machine owns a whole /64 of IPv6: limits count it once."""
    assert source == source_of(address)
