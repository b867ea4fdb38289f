"""What requests may weigh, how often they come, and from where."""

from typing import Annotated

from threadmark.workers.settings.declaration import Declared, Reads, declared
from threadmark.workers.settings.values import Network, hosts, networks, origins, seconds, whole

__all__ = ["EdgeSettings"]


class EdgeSettings(Declared):
    """Sizes, rates, proxies and origins."""

    body_bytes_max: Annotated[int, Reads(whole(1_024, 64 * 2**20), "bytes from 1024 to 67108864")] = declared(
        2**20, shown="`1048576` (1 MiB)", example="1048576"
    )
    """The largest request body that is read; more is answered with 413."""

    import_bytes_max: Annotated[int, Reads(whole(1_024, 2**40), "bytes from 1024 to 1099511627776")] = declared(
        16 * 2**30, shown="`17179869184` (16 GiB)", example="17179869184"
    )
    """The largest import of memory; more is answered with 413. Its lines lie in a temporary file meanwhile."""

    rate_per_s: Annotated[float, Reads(seconds(0.01, 100_000), "a number from 0.01 to 100000")] = declared(
        200.0, example="200"
    )
    """Requests a second that a key wins back, on average, in each process; more is answered with 429."""

    rate_burst: Annotated[int, Reads(whole(1, 1_000_000), "a whole number from 1 to 1000000")] = declared(
        1_000, example="1000"
    )
    """Requests a rested key may make at once."""

    trusted_proxies: Annotated[
        tuple[Network, ...], Reads(networks, "addresses or networks of proxies, with commas between them")
    ] = declared((), shown="none: the peer is the client", example="10.0.0.0/8,192.0.2.7")
    """Proxies whose `X-Forwarded-For` and `X-Request-Id` are believed."""

    allowed_hosts: Annotated[tuple[str, ...], Reads(hosts, "host names without a port, with commas between them")] = (
        declared((), shown="none: any well-formed name", example="agents.example.com,localhost")
    )
    """The names that the `Host` header may have; another is answered with 400."""

    allowed_origins: Annotated[
        tuple[str, ...], Reads(origins, "origins such as https://chat.example.com, with commas between them")
    ] = declared(
        (),
        shown="none: no page of another origin may call",
        example="https://chat.example.com,http://localhost:3000",
    )
    """Origins whose pages may call the API from a browser (CORS). There is no `*`."""
