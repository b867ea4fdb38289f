"""Bodies that no route takes: another media type, another shape, or cut off."""

__all__ = ["BodyRefused", "ClientGone", "NotJson"]


class NotJson(Exception):
    """The body says that it is something else than JSON."""

    def __init__(self) -> None:
        super().__init__("send the body as application/json")


class BodyRefused(Exception):
    """The body is JSON, and not what the route takes. `path` is the place, `$` the whole body."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class ClientGone(Exception):
    """The client broke off before its body had arrived."""

    def __init__(self) -> None:
        super().__init__("the body did not arrive whole")
