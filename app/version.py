"""The version of this server."""

from importlib.metadata import version

__all__ = ["VERSION"]

VERSION = version("threadmark")
