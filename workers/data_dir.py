"""The data directory: made for its owner alone, and refused in a sentence where it cannot be."""

import errno
import os
import tempfile
from pathlib import Path

from threadmark.user_error import UserError

__all__ = ["DataDirRefused", "closed_by", "make_data_dir", "nearest", "writable_gap"]


class DataDirRefused(UserError, OSError):
    """The data directory cannot be made, or nothing can be written in it; nothing was started."""


def make_data_dir(path: Path) -> None:
    """Have the directory, with a file written in it as a proof. Raises DataDirRefused."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".written-"):
            pass
    except OSError as error:
        raise DataDirRefused(_sentence(path, error)) from error


def writable_gap(path: Path) -> str | None:
    """Why a start could not use the directory, a sentence; None if it could. Changes nothing."""
    return None if (error := closed_by(path)) is None else _sentence(path, error)


def closed_by(path: Path) -> OSError | None:
    """What keeps this user from having the directory and from writing in it; None if nothing does. Changes nothing."""
    existing = nearest(path)
    if not existing.is_dir():
        return NotADirectoryError(errno.ENOTDIR, f"{existing} is a file")
    if not os.access(existing, os.W_OK | os.X_OK):
        return PermissionError(errno.EACCES, f"{existing} is closed to this user")
    return None


def nearest(path: Path) -> Path:
    """The path itself where it is there and can be seen, or the first folder above it that can."""
    # `os.path`, and not `Path.exists`: behind a folder that is closed to this user the latter raises.
    return next(each for each in (path, *path.absolute().parents) if os.path.exists(each))


def _sentence(path: Path, error: OSError) -> str:
    return (
        f"THREADMARK_DATA_DIR is {str(path)!r}, where nothing can be written ({error.strerror}); give the directory to "
        "the user that runs this, or choose another, for example THREADMARK_DATA_DIR=/var/lib/threadmark"
    )
